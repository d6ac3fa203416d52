import { Client, Connection } from '@temporalio/client';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { startAppProcess } from '#test/app-processes.ts';
import { type ReceivingWebhook, startReceivers } from '#test/receiver-process.ts';
import { type ChaosServers, startServers } from '#test/region-servers.ts';
import { insertOrganization, insertWebhook, makeChange } from '#test/webhook-changes.ts';
import { sealingKeys, workerEnvironment } from '#test/worker-settings.ts';
import { judge } from '../chaos/judge.ts';

const seed = 4;
const events = 8;
const webhookCount = 3;

it('no delivery is lost when the whole Temporal store is deleted while deliveries wait for their retry', async () => {
  const servers = await startServers(() => {});
  onTestFinished(() => servers.stop());
  const owner = await openDatabase({ server: parsePostgresUrl(servers.ownerUrl), applicationName: 'test', poolMax: 4 });
  onTestFinished(() => owner.close());
  const { organization, webhookIds, receivers } = await arrange(owner.pool);
  await owner.pool.query('update webhook set ordered = false'); // so that all events fail at once
  const settings = { DELIVERY_SCHEDULE: '300ms,25s,1s,1s,1s', REQUEUE_AFTER: '2s' };
  const environment = workerEnvironment(servers, settings);
  const worker = await startAppProcess({ name: 'worker', label: 'worker', folder: servers.folder, environment });
  onTestFinished(() => worker.stop());
  for (let index = 0; index < events; index += 1) await makeChange(owner.pool, organization, seed, index, 10_000);

  await vi.waitFor(
    async () => {
      const { rows } = await owner.pool.query(
        `select count(*)::int as waiting from delivery where state = 'running' and attempts = 2
          and due_at > now() + interval '2 seconds'`,
      );
      expect(rows).toEqual([{ waiting: events * webhookCount }]);
    },
    { timeout: 60_000, interval: 100 },
  );
  await servers.kill('temporal');
  servers.loseTemporalStore();
  await servers.restart('temporal');
  expect(await countWorkflows(servers)).toBe(0);

  await vi.waitFor(
    async () => {
      const { rows } = await owner.pool.query(
        'select state, failures, count(*)::int as count from delivery group by 1, 2',
      );
      expect(rows).toEqual([{ state: 'delivered', failures: 2, count: events * webhookCount }]);
    },
    { timeout: 90_000, interval: 250 },
  );
  const { problems, figures } = await judge({ database: owner, posts: receivers.posts, webhookIds, events });
  expect(problems).toEqual([]);
  expect(figures).toMatchObject({ attempts: 3 * events * webhookCount, duplicates: 0 });
}, 240_000);

/** Webhooks whose receivers reject the first two posts of every event. */
async function arrange(pool: Parameters<typeof insertOrganization>[0]) {
  const organization = await insertOrganization(pool, seed);
  const webhooks = new Map<string, ReceivingWebhook>();
  const receivers = await startReceivers(webhooks);
  onTestFinished(() => receivers.stop());
  for (let index = 0; index < webhookCount; index += 1) {
    const webhookId = crypto.randomUUID();
    const url = receivers.buildUrl(webhookId);
    const fields = { organizationId: organization.id, webhookId, number: index + 1, url, keys: sealingKeys };
    const { secret } = await insertWebhook(pool, fields);
    webhooks.set(webhookId, { secret, plan: (_, nth) => ({ kind: 'answer', status: nth <= 2 ? 500 : 200 }) });
  }
  return { organization, webhookIds: [...webhooks.keys()], receivers };
}

async function countWorkflows({ temporalAddress, temporalNamespace }: ChaosServers): Promise<number> {
  const connection = await Connection.connect({ address: temporalAddress });
  try {
    const client = new Client({ connection, namespace: temporalNamespace });
    return (await client.workflow.count()).count;
  } finally {
    await connection.close();
  }
}
