/**
 * docs/operations/move-traffic.md and hold-deliveries.md, with their own commands: a region moves
 * to a second release while keys read and events are delivered.
 */
import { expect, inject, it, vi } from 'vitest';
import { callOrgctl } from '#test/orgctl.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase, startTestApi } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { startTestWorker } from '#test/worker.ts';
import { api as apiLabels, worker as workerLabels } from '../charts/alerts-data.ts';
import { expectQuietAlerts } from './alerts.ts';
import { carryOut, readSection, without } from './page.ts';

const patient = { timeout: 60_000, interval: 100 };

it('a region moves to a second release, each event arrives once, and all alerts are quiet', {
  timeout: 240_000,
}, async () => {
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  const { orgId } = professional;
  await make.webhook({ orgId, url: receiver.url });
  const { key } = await make.apiKey({ creator: professional });
  const install = async () => ({
    api: await startTestApi(database, { REDIS_URL: inject('redisUrl') }),
    worker: await startTestWorker(database),
  });
  const releases = new Map([['$RELEASE', await install()]]);
  let count = 0;
  /** Expects that every release answers a read, and that one more event arrives. */
  async function expectWorking(): Promise<void> {
    for (const { api } of releases.values()) expect((await api.get(`/v1/orgs/${orgId}`, { key })).status).toBe(200);
    await make.grant({ professional });
    count += 1;
    await vi.waitFor(() => expect(receiver.received).toHaveLength(count), patient);
  }
  await expectWorking();

  await carryOut(readSection('move-traffic.md', 'Move'), [
    [
      /^helm upgrade --install blue /,
      async () => {
        releases.set('blue', await install());
        await expectWorking();
      },
    ],
    [/^# us-values\.yaml, also: a tenth/, without('the test reads from both releases')],
    [/^helm upgrade (\$RELEASE|blue) /, expectWorking],
    [
      /^helm uninstall \$RELEASE /,
      async () => {
        const first = releases.get('$RELEASE');
        releases.delete('$RELEASE');
        await Promise.all([first?.api.stop(), first?.worker.stop()]);
        await expectWorking();
      },
    ],
  ]);

  // A move of PostgreSQL itself: no attempt begins while deliveries are held.
  const env = { DATABASE_URL: database.ownerUrl, REGION: 'us', ORG_API_STATE: temporaryFolder() };
  const orgctl = async (command: string): Promise<string> => {
    const called = await callOrgctl(env, command.split(' ').slice(1));
    expect(called, command).toMatchObject({ code: 0 });
    return called.stdout;
  };
  await carryOut(readSection('hold-deliveries.md', 'Stop'), [
    [/^orgctl delivery switch --set draining$/, orgctl],
    [
      /^orgctl delivery switch$/,
      (command) => vi.waitFor(async () => expect(await orgctl(command)).toMatch(/^drained +true$/m), patient),
    ],
    [/^# us-values\.yaml|^helm upgrade|^kubectl .* wait region/, without('no operator runs')],
  ]);
  await make.grant({ professional });
  const { rows } = await owner.pool.query(`select attempts from delivery where state <> 'delivered'`);
  expect(rows).toEqual([{ attempts: 0 }]);
  await carryOut(readSection('hold-deliveries.md', 'Start again'), [
    [/^orgctl delivery switch --set running$/, orgctl],
  ]);
  count += 1;
  await vi.waitFor(() => expect(receiver.received).toHaveLength(count), patient);

  expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(count);
  const [blue] = releases.values();
  await vi.waitFor(async () => {
    const text = await (await fetch(`${blue?.worker.metricsUrl}/metrics`)).text();
    expect(text).toMatch(new RegExp(`^org_api_ledger_delivered ${count}$`, 'm'));
  }, patient);
  await expectQuietAlerts([
    { labels: apiLabels, metricsUrl: blue?.api.metricsUrl ?? '' },
    { labels: workerLabels, metricsUrl: blue?.worker.metricsUrl ?? '' },
  ]);
});
