/** The clients while the API's PostgreSQL is stopped by the system: its processes get SIGSTOP. */
import { Client, escapeIdentifier } from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import type { TestDatabase } from '#test/database.ts';
import { createFactories } from '#test/make.ts';
import { getStateFolder, makeRunFolder, removeRunFolder } from '#test/run-folder.ts';
import { type OnFinished, shareInstallation, startTestApi } from '#test/setup.ts';
import { startPostgres } from '../../apps/dev/servers/postgres.ts';
import { migrate } from '../../apps/migrate/migrate.ts';
import type { DrivenClient, Driver } from './driver.ts';
import { drivers } from './drivers.ts';

const installation = shareInstallation(async (onFinished) => {
  const { database, signal } = await startDatabase(onFinished);
  const server = parsePostgresUrl(database.ownerUrl);
  const options = { applicationName: 'test', poolMax: 2, connectTimeoutMs: 20_000, statementTimeoutMs: 60_000 };
  const owner = await openDatabase({ server, ...options });
  onFinished(() => owner.close());
  const api = await startTestApi(database, {}, [], onFinished);
  const made = await createFactories(owner).apiKey();
  return { api, made, signal };
});

/** Starts a PostgreSQL for this file alone, with a migrated database. */
async function startDatabase(onFinished: OnFinished) {
  const folder = makeRunFolder();
  onFinished(() => removeRunFolder(folder));
  const postgres = await startPostgres({ stateFolder: getStateFolder(folder), durable: false, report: () => {} });
  onFinished(() => postgres.stop());
  const name = 'org_api_stopped';
  const getUrl = (role?: string) => {
    const url = new URL(postgres.adminUrl);
    url.pathname = name;
    if (role !== undefined) Object.assign(url, { username: `org_api_login_${role}`, password: `test-${role}` });
    return url.href;
  };
  const admin = new Client({ connectionString: postgres.adminUrl });
  await admin.connect();
  await admin.query(`create database ${escapeIdentifier(name)} template template0`);
  const roles = ['api', 'platform', 'worker', 'console', 'operator'] as const;
  const logins = roles.map((role) => ({ role, server: parsePostgresUrl(getUrl(role)) }));
  await migrate({ owner: parsePostgresUrl(getUrl()), logins });
  const database: TestDatabase = {
    name,
    ownerUrl: getUrl(),
    urls: Object.fromEntries(roles.map((role) => [role, getUrl(role)])) as TestDatabase['urls'],
    drop: async () => {},
  };
  let pids: number[] = [];
  const signal = async (kind: 'SIGSTOP' | 'SIGCONT') => {
    if (kind === 'SIGSTOP') {
      const { rows } = await admin.query<{ pid: number }>('select pid from pg_stat_activity');
      pids = [postgres.pid, ...rows.map(({ pid }) => pid)];
    }
    for (const pid of pids) {
      try {
        process.kill(pid, kind);
      } catch {} // a connection that has ended since
    }
  };
  onFinished(() => admin.end());
  return { database, signal };
}

it('every client gets 503 while PostgreSQL is stopped, waits as long as it says, and then returns the data', async () => {
  const { api, made, signal } = installation();
  onTestFinished(() => signal('SIGCONT'));
  const open = async ({ create }: Driver, maxRetries: number, onWait?: () => Promise<void>) => {
    const client = await create({ key: made.key, baseUrl: api.url, maxRetries, timeoutSeconds: 100 }, onWait);
    return typeof client === 'string' ? expect.fail(client) : client;
  };
  const impatient = await Promise.all(drivers.map((driver) => open(driver, 0)));
  const callAll = (clients: readonly DrivenClient[]) =>
    Promise.all(clients.map((client) => client.call('getOrg', made.orgId)));
  const before = await callAll(impatient);
  await signal('SIGSTOP');
  const failing = callAll(impatient);
  // PostgreSQL continues when each client has waited, also the slowest to start.
  const waiting = drivers.map(() => Promise.withResolvers<void>());
  const patient = await Promise.all(
    drivers.map((driver, index) =>
      open(driver, 20, async () => {
        waiting[index]?.resolve();
        await Promise.all([failing, ...waiting.map(({ promise }) => promise)]);
        await signal('SIGCONT');
      }),
    ),
  );
  const after = await callAll(patient);
  for (const { error } of await failing)
    expect(error).toMatchObject({ code: 'unavailable', status: 503, retryAfterSeconds: 1 });
  for (const [index, { waits }] of patient.entries()) {
    expect(before[index]).toMatchObject({ data: { id: made.orgId } });
    expect(after[index]).toMatchObject({ data: before[index]?.data, isUnchanged: false });
    expect(waits.length).toBeGreaterThanOrEqual(1);
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(1);
    expect(Math.max(...waits)).toBeLessThanOrEqual(1.5);
  }
});
