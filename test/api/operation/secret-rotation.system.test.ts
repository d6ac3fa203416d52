/**
 * Secrets that change under a running API, in the way Kubernetes replaces mounted files. See
 * docs/design/operation.md.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Client } from 'pg';
import { expect, inject, it, onTestFinished, vi } from 'vitest';
import { createKey } from '#domain/keys/create.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { constants, patient } from '#test/constants.ts';
import { mountSecret } from '#test/mounted-secret.ts';
import { testKeySecrets, testKeySettings } from '#test/secrets.ts';
import { setupDatabase, startTestApi, type TestApi } from '#test/setup.ts';
import { watchStatements } from '#test/watch-statements.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { ensureLogin } from '../../../apps/migrate/logins.ts';

const waiting = { timeout: 30_000, interval: 50 };
const newPepper = { version: 2, secret: Buffer.from('another pepper of the tests, 32b') };
const newPeppers = `2:${newPepper.secret.toString('base64')},${testKeySettings.KEY_PEPPERS}`;

it('a new database login and a new pepper are loaded while reads with the old ones are in progress, and no read fails', async () => {
  const { database, owner, make, newLogin, countConnections, start } = await setup();
  const statements = watchStatements(owner, 'org-api');
  const first = await newLogin();
  const { api, secret, values, logLines } = await start(first.url);
  const members = await Promise.all(Array.from({ length: 12 }, () => make.member()));
  const keys = await Promise.all(members.map((creator) => make.apiKey({ creator })));
  const unlockSeats = await statements.lock('seat');
  const reads = keepReading(api, keys);
  await statements.until((waits) => waits > 0);
  expect(await countConnections(first.user)).toBeGreaterThan(0);

  const second = await newLogin();
  const changed = { ...values, API_DATABASE_URL: second.url, KEY_PEPPERS: newPeppers };
  secret.replace(changed);
  await vi.waitFor(() => expect(changesIn(logLines)).toEqual(['API_DATABASE_URL', 'KEY_PEPPERS']), waiting);
  expect(reads.statuses).toEqual([]);
  await unlockSeats();
  const [member] = members;
  const made = await createKey(
    owner,
    {
      organizationId: member?.orgId ?? '',
      creatorId: member?.userId ?? '',
      scopes: ['org.read'],
      expiresAt: null,
      label: 'made with the new pepper',
      by: 'orgctl',
    },
    { ...testKeySecrets, peppers: [newPepper, ...testKeySecrets.peppers] },
  );
  expect((await api.get(`/v1/orgs/${member?.orgId}`, { key: made.key })).status).toBe(200);
  // Reads that wait for a lock keep their connections, so later reads need new connections. They
  // are sent one by one, because together they would share a connection, and are of every operation,
  // because one operation has three statements at most.
  const unlockOrganizations = await statements.lock('organization');
  const held: Promise<number>[] = [];
  for (const [index, key] of [...keys, ...keys, ...keys].entries()) {
    if ((await countConnections(second.user)) > 0) break;
    held.push(read(api, key, endpoints[index % endpoints.length]?.resource));
    await wait(15);
  }
  await unlockOrganizations();
  const errors = () => logLines.filter((line) => line.includes('internal error')).join('');
  expect(
    (await Promise.all(held)).filter((status) => status !== 200),
    errors(),
  ).toEqual([]);
  expect(await countConnections(second.user)).toBeGreaterThan(0);

  await vi.waitFor(() => expect(reads.statuses.length).toBeGreaterThan(50), waiting);
  const statuses = await reads.stop();
  expect(new Set(statuses), errors()).toEqual(new Set([200]));
  const logged = logLines.join('');
  for (const text of [first.password, second.password, newPeppers, database.ownerUrl])
    expect(logged).not.toContain(text);
}, 60_000);

it('new connections use the new password of a login', async () => {
  const { owner, make, newLogin, start } = await setup();
  const login = await newLogin();
  const { api, secret, values, logLines } = await start(login.url);
  const { key, orgId } = await make.apiKey();
  expect((await api.get(`/v1/orgs/${orgId}`, { key })).status).toBe(200);

  const replaced = await newLogin(login.user);
  secret.replace({ ...values, API_DATABASE_URL: replaced.url });
  await vi.waitFor(() => expect(changesIn(logLines)).toEqual(['API_DATABASE_URL']), waiting);
  await owner.pool.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [login.user]);

  await vi.waitFor(async () => expect((await api.get(`/v1/orgs/${orgId}`, { key })).status).toBe(200), waiting);
}, 60_000);

it('the limiter reconnects to Redis with the new password, and with the old one after a value that is no URL', async () => {
  const { newLogin, start } = await setup();
  const redis = new Redis(inject('redisUrl'));
  const user = `limiter-${randomBytes(4).toString('hex')}`;
  onTestFinished(async () => {
    await redis.call('acl', 'deluser', user);
    redis.disconnect();
  });
  await redis.call('acl', 'setuser', user, 'on', '>first', '~*', '&*', '+@all');
  const urlWith = (password: string) => Object.assign(new URL(inject('redisUrl')), { username: user, password }).href;
  const { api, secret, values, logLines } = await start((await newLogin()).url, { REDIS_URL: urlWith('first') });
  expect(await (await fetch(`${api.metricsUrl}/metrics`)).text()).toContain('org_api_limiter_without_redis 0\n');

  // A value that no client can use is rejected when it is read, so that no later connection uses it.
  secret.replace({ ...values, REDIS_URL: urlWith('first').replace('first', 'pa%zzword') });
  await vi.waitFor(() => expect(rejectionsIn(logLines)).toEqual(['REDIS_URL']), waiting);
  await redis.call('client', 'kill', 'user', user);
  const switches = () =>
    logLines.filter((line) => line.includes('limiter: ')).map((line) => (JSON.parse(line) as { mode: string }).mode);
  await vi.waitFor(() => expect(switches()).toEqual(['redis', 'process', 'redis']), waiting);

  await redis.call('acl', 'setuser', user, '>second');
  secret.replace({ ...values, REDIS_URL: urlWith('second') });
  await vi.waitFor(() => expect(changesIn(logLines)).toEqual(['REDIS_URL']), waiting);
  await redis.call('acl', 'setuser', user, '<first');
  await redis.call('client', 'kill', 'user', user);

  await vi.waitFor(() => expect(switches()).toEqual(['redis', 'process', 'redis', 'process', 'redis']), waiting);
  expect(logLines.join('')).not.toContain('zzword');
}, 60_000);

it('an unusable value is reported by name in the log and a metric, and the old value stays in use', async () => {
  const { make, newLogin, start } = await setup();
  const { api, secret, values, logLines } = await start((await newLogin()).url);
  const { key, orgId } = await make.apiKey();
  const elsewhere = new URL(values.API_DATABASE_URL);
  elsewhere.port = '1';

  secret.replace({ ...values, KEY_PEPPERS: 'hunter2', API_DATABASE_URL: elsewhere.href });
  await vi.waitFor(() => expect(rejectionsIn(logLines)).toEqual(['API_DATABASE_URL', 'KEY_PEPPERS']), waiting);
  expect((await api.get(`/v1/orgs/${orgId}`, { key })).status).toBe(200);
  const page = async () => (await fetch(`${api.metricsUrl}/metrics`)).text();
  expect(await page()).toContain('org_api_setting_rejected{setting="KEY_PEPPERS"} 1\n');
  expect(logLines.join('')).not.toContain('hunter2');

  secret.replace({ ...values, KEY_PEPPERS: newPeppers });
  await vi.waitFor(async () => {
    expect(await page()).toContain('org_api_setting_rejected{setting="KEY_PEPPERS"} 0\n');
    expect(await page()).toContain('org_api_setting_rejected{setting="API_DATABASE_URL"} 0\n');
  }, waiting);
  expect((await api.get(`/v1/orgs/${orgId}`, { key })).status).toBe(200);
}, 60_000);

// Every counter starts at 0 for each pod: a counter that first appears as 1 shows no increase.
it('metrics report when each value in use was read, and count from 0', async () => {
  const { newLogin, start } = await setup();
  const { api, secret, values } = await start((await newLogin()).url);
  const page = async () => (await fetch(`${api.metricsUrl}/metrics`)).text();
  const counts = figuresIn(await page(), 'org_api_setting_changes_total');
  expect(counts).toEqual({ API_DATABASE_URL: 0, KEY_PEPPERS: 0, KEY_TAG_SECRETS: 0 });
  const before = Date.now() / 1_000;
  expect(Math.max(...Object.values(figuresIn(await page(), 'org_api_setting_read_timestamp_seconds')))).toBeLessThan(
    before,
  );

  secret.replace({ ...values, KEY_PEPPERS: newPeppers, KEY_TAG_SECRETS: 'hunter2' });
  await vi.waitFor(async () => {
    expect(figuresIn(await page(), 'org_api_setting_changes_total')).toMatchObject({ KEY_PEPPERS: 1 });
    expect(figuresIn(await page(), 'org_api_setting_rejected')).toMatchObject({ KEY_TAG_SECRETS: 1 });
  }, waiting);
  const readAt = figuresIn(await page(), 'org_api_setting_read_timestamp_seconds');
  expect(readAt.KEY_PEPPERS).toBeGreaterThan(before);
  expect(readAt.KEY_TAG_SECRETS).toBeLessThan(before); // the old value is still in use
}, 60_000);

/** Creates a database, and starts an API whose secrets are mounted. */
async function setup() {
  const { database, owner, make } = await setupDatabase();
  return {
    database,
    owner,
    make,
    /** Creates a login with the API's rights, or changes its password. */
    async newLogin(user = `org_api_login_${randomBytes(4).toString('hex')}`) {
      const url = new URL(database.urls.api);
      const password = randomBytes(12).toString('hex');
      Object.assign(url, { username: user, password });
      const client = new Client({ connectionString: database.ownerUrl });
      await client.connect();
      await ensureLogin(client, { role: 'api', server: parsePostgresUrl(url.href) });
      await client.end();
      onTestFinished(async () => {
        // the database of another test may still hold it
        await owner.pool.query(`drop owned by ${user}; drop role ${user}`).catch(() => {});
      });
      return { url: url.href, user, password };
    },
    /** Counts the pool's connections of a login, and not the API's connection that tried the login. */
    async countConnections(user: string): Promise<number> {
      const { rows } = await owner.pool.query<{ connections: number }>(
        `select count(*)::int as connections from pg_stat_activity where usename = $1 and application_name = 'org-api'`,
        [user],
      );
      return rows[0]?.connections ?? 0;
    },
    async start(databaseUrl: string, others: Record<string, string> = {}) {
      const values = { ...testKeySettings, API_DATABASE_URL: databaseUrl, ...others };
      const secret = mountSecret(values);
      const inPlace = Object.fromEntries(Object.keys(values).map((name) => [name, '']));
      const logLines: string[] = [];
      const settings = { ...inPlace, ...secret.settings, DATABASE_POOL_MAX: '40', [constants]: patient };
      const api = await startTestApi(database, settings, logLines);
      return { api, secret, values, logLines };
    },
  };
}

async function read(
  api: TestApi,
  { key, orgId }: { key: string; orgId: string },
  resource = '/seats',
): Promise<number> {
  return (await api.get(`/v1/orgs/${orgId}${resource}`, { key })).status;
}

/** Of each key: 60 in a minute, so that half of its limit is left for a test of any duration. */
const readEveryMs = 1_000;

/**
 * Reads with each key in turn, several at once, within their limits. `stop` returns the status of
 * every response, which `statuses` has so far.
 */
function keepReading(api: TestApi, keys: { key: string; orgId: string }[]) {
  const statuses: number[] = [];
  let going = true;
  const loops = keys.map(async (key) => {
    while (going) {
      statuses.push(await read(api, key));
      await wait(readEveryMs);
    }
  });
  const stop = async (): Promise<number[]> => {
    going = false;
    await Promise.all(loops);
    return statuses;
  };
  onTestFinished(() => stop().then(() => {}));
  return { statuses, stop };
}

const listSettings = (lines: string[], message: string) =>
  lines
    .filter((line) => line.includes(message))
    .map((line) => (JSON.parse(line) as { setting: string }).setting)
    .sort();
/** Returns the values of a metric with the label `setting`, by setting. */
function figuresIn(page: string, metric: string): Record<string, number> {
  const found = page.matchAll(new RegExp(`^${metric}\\{setting="(\\w+)"\\} (\\S+)$`, 'gm'));
  return Object.fromEntries([...found].map(([, setting = '', value]) => [setting, Number(value)]));
}
const changesIn = (lines: string[]) => listSettings(lines, 'read again from its file');
const rejectionsIn = (lines: string[]) => listSettings(lines, 'is rejected; the old one');
