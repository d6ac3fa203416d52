/** What pages of the guide have a Region declare, with their own values and commands. */
import { expect, it } from 'vitest';
import { rotatedWebhookSecretKeys } from '#test/sealed-rows.ts';
import { carryOut, readSection, type Step, without } from '../../operations/page.ts';
import { installRegion } from '../guide-region.ts';
import { shareApiServer } from '../share-api-server.ts';

const server = shareApiServer();

it('a Region holds the deliveries, sets Temporal up and seals again as the guide declares it', {
  timeout: 300_000,
}, async () => {
  const t = await installRegion(server());
  const upgrade = () => t.runHelm('helm upgrade $RELEASE charts/org-api -n $NS --values us-values.yaml');
  const byRegion: Step[] = [
    [/^# us-values\.yaml/, t.addValues],
    [/^helm upgrade \$RELEASE /, t.runHelm],
    [/^kubectl -n \$NS wait region\/region /, t.shell],
  ];
  const readSwitch = async () => (await t.rows('select state from delivery_switch'))[0];
  await carryOut(readSection('hold-deliveries.md', 'Stop'), [
    ...byRegion,
    [/^orgctl /, without('the Region declares it')],
  ]);
  expect(await readSwitch()).toEqual({ state: 'draining' });
  t.addValues('# us-values.yaml', { operator: { region: { spec: { delivery: { state: 'Running' } } } } });
  await upgrade();
  await t.waitForReason('Delivering', 'Sending');
  expect(await readSwitch()).toEqual({ state: 'running' });

  t.addValues('# us-values.yaml', { temporal: { namespace: `org-api-test-${crypto.randomUUID()}` } });
  await upgrade();
  await t.waitForReason('TemporalReady', 'NamespaceMissing');
  await carryOut(readSection('run-the-operator.md', "Set up Temporal's namespace"), byRegion.slice(0, 2));
  await t.waitForReason('TemporalReady', 'NamespaceAnswers');

  await t.make.webhook();
  await t.make.apiKey();
  const keys = JSON.stringify({ stringData: { WEBHOOK_SECRET_KEYS: rotatedWebhookSecretKeys } });
  await t.shell(`kubectl -n $NS patch secret org-api-us -p '${keys}'`);
  await t.rollOutOperator(); // a new one reads the Secret at once
  await t.waitForReason('KeysFresh', 'OldKeySeals');
  const others: Step = [/^(set_secret|select|kubectl|orgctl) /, without('the rotation of all secrets runs these')];
  await carryOut(readSection('rotate-secrets.md', 'WEBHOOK_SECRET_KEYS'), [...byRegion.slice(0, 1), others]);
  await upgrade();
  await t.waitForReason('KeysFresh', 'NewestKeySeals');
  const printPeppers: Step = [
    /jsonpath='\{\.status\.secrets\.peppers\}'/,
    async (command) => expect(JSON.parse(await t.shell(command))).toEqual([{ version: 1, count: 1 }]),
  ];
  await carryOut(readSection('rotate-secrets.md', 'KEY_PEPPERS'), [printPeppers, others]);

  await carryOut(readSection('run-the-operator.md', 'Field conflicts'), [[/^kubectl patch region /, t.shell]]);
  await t.waitForReason('Delivering', 'Sending');
  await t.expectQuietOperator();
});
