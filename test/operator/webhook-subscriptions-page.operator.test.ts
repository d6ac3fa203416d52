/** docs/operations/webhook-subscriptions.md, with its own commands, on real servers. */
import { Webhook } from 'svix';
import { expect, inject, it, vi } from 'vitest';
import { callOrgctl } from '#test/orgctl.ts';
import { startReceiver } from '#test/receiver.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { startTestWorker, testNamespace } from '#test/worker.ts';
import { worker as workerLabels } from '../charts/alerts-data.ts';
import { expectQuietAlerts } from '../operations/alerts.ts';
import { carryOut, readSection } from '../operations/page.ts';
import { waiting } from './declared.ts';
import { installRegion } from './guide-region.ts';
import { shareApiServer } from './share-api-server.ts';

const page = 'webhook-subscriptions.md';

const server = shareApiServer();

it('a declared webhook gets events, what failed is sent again, and members have it after its Region is gone', {
  timeout: 300_000,
}, async () => {
  const t = await installRegion(server());
  const receiver = await startReceiver();
  const worker = await startTestWorker(t.database, { DELIVERY_SCHEDULE: '200ms' });
  const professional = await t.make.member({ orgId: t.orgId });
  const ids = () => receiver.received.map(({ headers }) => String(headers['webhook-id']));
  const [organization = ''] = /[0-9a-f-]{36}/.exec(readSection(page, 'Declare a webhook').text) ?? [];
  const ofTest = (text: string) =>
    text.replaceAll(organization, t.orgId).replace('https://hooks.example.com/org-api', `${receiver.url}/`);
  await carryOut(readSection(page, 'Declare a webhook'), [
    [/^# (us|operator)-values\.yaml/, (block) => t.addValues(ofTest(block))],
    [
      /^helm upgrade operator /,
      async (command) => {
        await t.runHelm(command);
        await t.rollOutOperator();
      },
    ],
    [/^helm upgrade \$RELEASE /, t.runHelm],
    [/^# webhook\.yaml/, (text) => t.writeFile('webhook.yaml', ofTest(text))],
    [/^kubectl -n \$NS (apply|wait) /, t.shell],
  ]);
  await t.make.grant({ professional });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(1), waiting);
  const [post] = receiver.received;
  const published = await t.shell("kubectl -n $NS get secret orders-webhook -o jsonpath='{.data.secret}' | base64 -d");
  new Webhook(published).verify(String(post?.body), post?.headers as Record<string, string>);

  receiver.respond = (response) => void response.writeHead(500).end();
  await t.make.grant({ professional });
  const countExhausted = () => t.rows(`select from delivery where state = 'exhausted'`);
  await vi.waitFor(async () => expect(await countExhausted()).toHaveLength(1), waiting);
  receiver.respond = (response) => void response.writeHead(200).end();
  const [webhook] = await t.rows<{ id: string }>('select id from webhook');
  const env = {
    ...t.secrets,
    REGION: 'us',
    ORG_API_STATE: temporaryFolder(),
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TEMPORAL_NAMESPACE: testNamespace(),
  };
  const orgctl = async (command: string): Promise<void> => {
    const args = command.replace('WEBHOOK', webhook?.id ?? '').split(' ');
    expect(await callOrgctl(env, args.slice(1)), command).toMatchObject({ code: 0 });
  };
  await carryOut(readSection(page, 'Send events again'), [[/^orgctl delivery redeliver /, orgctl]]);
  await vi.waitFor(async () => expect(await countExhausted()).toHaveLength(0), waiting);
  expect(new Set(ids()).size).toBe(2);
  expect(ids().at(-1)).toBe(ids().at(1));
  await vi.waitFor(async () => {
    const text = await (await fetch(new URL('/metrics', worker.metricsUrl))).text();
    expect(text).toMatch(/^org_api_ledger_delivered 2$/m);
  }, waiting);
  await expectQuietAlerts([{ labels: workerLabels, metricsUrl: worker.metricsUrl }]);
  await t.expectQuietOperator();

  await t.shell('helm uninstall $RELEASE -n $NS');
  await carryOut(readSection(page, 'How to undo'), [[/^kubectl -n \$NS delete whsub /, t.shell]]);
  const changes: unknown[] = [];
  await carryOut(readSection(page, 'Pause, resume, delete'), [
    [
      /^orgctl webhook (detach|delete) /,
      async (command) => {
        await orgctl(command);
        changes.push(...(await t.rows('select state, managed_by from webhook')));
      },
    ],
  ]);
  expect(changes).toEqual([
    { state: 'active', managed_by: null },
    { state: 'deleted', managed_by: null },
  ]);
});
