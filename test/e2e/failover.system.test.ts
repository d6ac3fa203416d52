/** A real failover: the primary becomes read-only, its standby is promoted, then the old primary stops. */
import type { CoreV1Api } from '@kubernetes/client-node';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { isServerUnavailable } from '#domain/db/driver/errors.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { startApp } from '#test/child-app.ts';
import { startChildWorker } from '#test/child-worker.ts';
import { createFactories } from '#test/make.ts';
import { spawnOrgctl } from '#test/orgctl.ts';
import { startReceiver } from '#test/receiver.ts';
import { testKeySettings, testWebhookSecretKeys } from '#test/secrets.ts';
import { apiEnvironment, consoleEnvironment } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { testNamespace, workerEnvironment } from '#test/worker.ts';
import { cookieName } from '../../apps/console/middleware/cookies.ts';
import type { Region } from '../../apps/operator/kube/resources.ts';
import { Connections } from '../../apps/operator/region/connections.ts';
import { startPair } from './standby.ts';

it('every process rejects with 503 while its server is a standby, works soon after the promotion, and no delivery is lost', {
  timeout: 180_000,
}, async () => {
  const t = await setup();
  for (let n = 0; n < 5; n += 1) await t.changeClients();
  await t.untilAllDelivered(5);

  await Promise.all(Array.from({ length: 5 }, t.changeClients));
  await t.pair.demote();
  await vi.waitFor(async () => expect(await t.look()).toEqual(unavailable), { timeout: 20_000, interval: 200 });
  const { code, stderr } = await t.orgctl();
  expect([code, stderr]).toEqual([1, expect.stringContaining('read-only, such as a standby')]);

  await t.pair.promote();
  await vi.waitFor(async () => expect(await t.look()).toEqual(working), { timeout: 10_000, interval: 200 });
  expect((await t.orgctl()).code).toBe(0);
  await t.reconnect();
  await t.changeClients();
  await t.untilAllDelivered(11);
  await t.pair.stopOldPrimary();
  expect(await t.look()).toEqual(working);
  expect(t.ended()).toEqual([]);
});

const working = { api: [200, null], console: [303, null], operator: 'works', worker: 200 };
const unavailable = {
  api: [503, expect.stringMatching(/^\d+$/)],
  console: [503, '5'],
  operator: 'unavailable',
  worker: expect.any(Number),
};

async function setup() {
  const pair = await startPair();
  const { database } = pair;
  const owner = await openDatabase({
    server: parsePostgresUrl(database.ownerUrl),
    applicationName: 'test',
    poolMax: 5,
  });
  onTestFinished(() => owner.close());
  const make = createFactories(owner);
  const receiver = await startReceiver();
  const professional = await make.member();
  const { orgId } = professional;
  await make.webhook({ orgId, url: receiver.url });
  const key = await make.apiKey({ creator: professional });

  const origin = 'http://localhost:3000';
  const [api, console, worker] = await Promise.all([
    startApp('api', apiEnvironment(database)),
    startApp('console', consoleEnvironment(database, origin)),
    startChildWorker(workerEnvironment(database)),
  ]);
  const connections = new Connections({
    // The Secret that names the database.
    api: {
      readNamespacedSecret: async () => ({
        data: { OPERATOR_DATABASE_URL: Buffer.from(database.urls.operator).toString('base64') },
      }),
    } as unknown as CoreV1Api,
    namespace: 'test',
    report: { onRead: () => {}, onChanged: () => {}, onRejected: () => {}, onForgotten: () => {} },
  });
  onTestFinished(() => connections.close());
  const region = { spec: { database: { secretRef: { name: 'database' } } } } as Region;

  async function operate(): Promise<string> {
    try {
      const { pool } = await connections.openDatabase(region);
      await pool.query('select from webhook limit 1');
      return 'works';
    } catch (error) {
      return isServerUnavailable(error) ? 'unavailable' : String(error);
    }
  }

  const readResponse = async (url: string, headers: Record<string, string>) => {
    const { status, headers: given } = await fetch(url, { headers, redirect: 'manual' });
    return [status, given.get('retry-after')];
  };
  const cookie = `${cookieName('session', origin)}=${'x'.repeat(43)}`;
  const orgctlSettings = {
    ...testKeySettings,
    DATABASE_URL: database.ownerUrl,
    REGION: 'us',
    ORG_API_STATE: temporaryFolder(),
    WEBHOOK_SECRET_KEYS: testWebhookSecretKeys,
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TEMPORAL_NAMESPACE: testNamespace(),
  };

  return {
    pair,
    /** Starts a client of the professional, which is an event. */
    changeClients: () => make.grant({ professional }),
    /** The first write of the test's own pool finds that the old primary is read-only. */
    reconnect: () => owner.pool.query('delete from family where false').catch(() => {}),
    orgctl: () => spawnOrgctl(orgctlSettings, ['audit-log', 'verify', '--region', 'us']),
    /** What each process answers. */
    look: async () => ({
      api: await readResponse(`${api.url}/v1/orgs/${orgId}`, { authorization: `Bearer ${key.key}` }),
      // At 127.0.0.1 the console leads to localhost.
      console: await readResponse(`${console.url.replace('127.0.0.1', 'localhost')}/account`, { cookie }),
      operator: await operate(),
      worker: (await fetch(`${worker.metricsUrl}/readyz`)).status,
    }),
    async untilAllDelivered(count: number): Promise<void> {
      await vi.waitFor(
        async () => {
          const { rows } = await owner.pool.query<{ id: string; state: string }>(
            'select event_id as id, state from delivery',
          );
          expect(rows.map(({ state }) => state)).toEqual(Array.from({ length: count }, () => 'delivered'));
          const received = new Set(receiver.received.map(({ headers }) => headers['webhook-id']));
          expect(rows.filter(({ id }) => !received.has(id))).toEqual([]);
        },
        { timeout: 30_000, interval: 100 },
      );
    },
    /** The processes that have ended. */
    ended: () => [api, console, worker].filter(({ process }) => process.exitCode !== null).map(({ lines }) => lines),
  };
}
