/** Each check of `orgctl doctor` against real servers, with the wrong thing in place. */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type pg from 'pg';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { currentMigration } from '#domain/db/schema-version.ts';
import { makeCertificate } from '#test/certificates.ts';
import { createTestDatabase } from '#test/database.ts';
import { mountSecret } from '#test/mounted-secret.ts';
import { callOrgctl, spawnOrgctl } from '#test/orgctl.ts';
import { startRedisCluster, startRedisSentinels } from '#test/redis-group.ts';
import { setupDatabase } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { frontName, mountSettings, startTemporalFront } from '#test/temporal-front.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { testNamespace } from '#test/worker.ts';
import { findUnmetNeeds, listUnmetNeeds } from '#workflows/server-needs.ts';
import { startRedis } from '../../apps/dev/servers/redis.ts';
import { checkPem } from '../../apps/orgctl/doctor/certificates.ts';
import type { Finding } from '../../apps/orgctl/doctor/finding.ts';
import { checkServerSettings } from '../../apps/orgctl/doctor/postgresql.ts';
import { checkRedisSettings } from '../../apps/orgctl/doctor/redis.ts';

/** What is wrong with PostgreSQL of every run, which writes nothing to its disk in time. */
const lossy = 'a crash loses committed events, as these are off: fsync, full_page_writes, synchronous_commit';

/** Runs the command with these settings only. */
async function examine(settings: Record<string, string>, call = callOrgctl) {
  const env = { REGION: 'us', ORG_API_STATE: temporaryFolder(), ...settings };
  const { code, stdout, stderr } = await call(env, ['doctor', '--json']);
  expect(stdout, stderr).not.toBe('');
  const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: Finding[] };
  return {
    code,
    ok,
    findings,
    /** What is wrong, as `check: message`, beside `lossy`. */
    wrong: findings.flatMap(({ check, state, message }) =>
      (state === 'failed' || state === 'warning') && message !== lossy ? [`${check}: ${message}`] : [],
    ),
  };
}

/** A login of its own in a database, beside those that the tests of a run share. */
async function createLogin(owner: pg.Pool, ownerUrl: string, ...groups: string[]): Promise<string> {
  const name = `doctor_${randomBytes(4).toString('hex')}`;
  await owner.query(`create role ${name} login password 'p'; grant ${groups.join(', ')} to ${name}`);
  const { rows } = await owner.query('select current_database() as name');
  await owner.query(`grant connect on database "${rows[0].name}" to ${name}`);
  onTestFinished(async () => {
    await owner.query(`revoke connect on database "${rows[0].name}" from ${name}; drop role ${name}`).catch(() => {});
  });
  const url = new URL(ownerUrl);
  url.username = name;
  url.password = 'p';
  return url.href;
}

it('finds nothing wrong with servers as the guide prepares them, and says what it did not check', async () => {
  const { database } = await setupDatabase();
  const { findings, wrong } = await examine({
    DATABASE_URL: database.ownerUrl,
    API_DATABASE_URL: database.urls.api,
    WORKER_DATABASE_URL: database.urls.worker,
    CONSOLE_DATABASE_URL: database.urls.console,
    REDIS_URL: inject('redisUrl'),
    TEMPORAL_ADDRESS: inject('temporalAddress'),
    TEMPORAL_NAMESPACE: testNamespace(),
  });
  expect(wrong).toEqual([]);
  const checks = new Set(findings.filter(({ state }) => state === 'ok').map(({ check }) => check));
  expect([...checks].sort()).toEqual(['clock', 'postgresql', 'redis', 'temporal', 'trusted-proxies']);
  expect(findings.filter(({ state }) => state === 'skipped').map(({ check }) => check)).toEqual(['probe']);
});

describe('PostgreSQL', () => {
  it('whose schema is older is found, for each login that sees it', async () => {
    const { database, owner } = await setupDatabase();
    await owner.pool.query('delete from schema_migration where name = $1', [currentMigration]);
    const { code, wrong } = await examine({
      API_DATABASE_URL: database.urls.api,
      WORKER_DATABASE_URL: database.urls.worker,
    });
    expect(code).toBe(1);
    expect(wrong).toEqual(
      ['API_DATABASE_URL', 'WORKER_DATABASE_URL'].map(
        (name) => `postgresql: the schema that ${name} sees is older than this version`,
      ),
    );
  });

  it('without any migration is found', async () => {
    const database = await createTestDatabase({ empty: true });
    onTestFinished(() => database.drop());
    const { wrong } = await examine({ DATABASE_URL: database.ownerUrl });
    expect(wrong).toContain('postgresql: the schema that DATABASE_URL sees is older than this version');
  });

  it('that loses commits in a crash, as that of the tests, is found', async () => {
    const { database } = await setupDatabase();
    const { code, findings } = await examine({ WORKER_DATABASE_URL: database.urls.worker });
    expect(code).toBe(1);
    expect(findings.filter(({ state }) => state === 'failed').map(({ message }) => message)).toEqual([lossy]);
  });

  it('whose login has another app’s rights, or lacks its own, is found', async () => {
    const { database, owner } = await setupDatabase();
    const both = await createLogin(owner.pool, database.ownerUrl, 'org_api_read', 'org_api_worker');
    const other = await createLogin(owner.pool, database.ownerUrl, 'org_api_console');
    const { code, wrong } = await examine({
      API_DATABASE_URL: both,
      WORKER_DATABASE_URL: other,
      CONSOLE_DATABASE_URL: database.ownerUrl,
      DATABASE_URL: database.urls.api,
    });
    expect(code).toBe(1);
    expect(wrong).toEqual([
      'postgresql: DATABASE_URL is not the owner',
      'postgresql: API_DATABASE_URL also has org_api_worker',
      'postgresql: WORKER_DATABASE_URL also has org_api_console',
      'postgresql: CONSOLE_DATABASE_URL also has rights of an administrator, the database',
    ]);
  });

  it('that rejects a login, or whose host does not resolve, is found without the password', async () => {
    const { database } = await setupDatabase();
    const url = new URL(database.urls.api);
    url.password = 'wrong-password';
    const { wrong, findings } = await examine({
      API_DATABASE_URL: url.href,
      WORKER_DATABASE_URL: 'postgresql://u:secret-word@nowhere.invalid/x?sslmode=verify-full',
    });
    expect(wrong).toEqual([
      expect.stringMatching(/^dns: the host of WORKER_DATABASE_URL does not resolve \(E\w+\)$/),
      'postgresql: API_DATABASE_URL cannot be used: PostgreSQL rejects the user or password of API_DATABASE_URL.',
      expect.stringMatching(/^postgresql: WORKER_DATABASE_URL cannot be used: /),
    ]);
    expect(JSON.stringify(findings)).not.toMatch(/wrong-password|secret-word/);
  });

  it('of an older version, in another encoding or without ICU is judged by what it says of itself', () => {
    const good = {
      version: 150_000,
      encoding: 'UTF8',
      hasIcu: true,
      fsync: 'on',
      fullPageWrites: 'on',
      synchronousCommit: 'on',
      quoting: [] as string[],
    };
    const wrong = (facts: Partial<typeof good>) =>
      checkServerSettings({ ...good, ...facts }).flatMap(({ state, message }) => (state === 'ok' ? [] : [message]));
    expect(wrong({})).toEqual([]);
    expect(wrong({ quoting: ['log_statement'] })).toEqual([
      'the log of PostgreSQL may quote rows and statements, with names of families: log_statement',
    ]);
    expect(wrong({ version: 140_012 })).toEqual(['PostgreSQL 14 is too old']);
    expect(wrong({ encoding: 'SQL_ASCII' })).toEqual(['the database is encoded in SQL_ASCII']);
    expect(wrong({ hasIcu: false })).toEqual(['PostgreSQL is built without ICU']);
    expect(wrong({ fsync: 'off', fullPageWrites: 'off' })).toEqual([
      'a crash loses committed events, as these are off: fsync, full_page_writes',
    ]);
  });
});

it('a Redis that evicts counts, and one that is unavailable, are found', async () => {
  const stateFolder = temporaryFolder();
  const redis = await startRedis({ stateFolder, report: () => {} });
  if (redis === null) throw new Error('no Redis is installed');
  onTestFinished(() => redis.stop());
  const { Redis } = await import('ioredis');
  const client = new Redis(redis.url);
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  client.disconnect();
  expect((await examine({ REDIS_URL: redis.url })).wrong).toEqual([
    'redis: Redis may evict counts (maxmemory-policy allkeys-lru), which resets the limit of a key',
  ]);
  await redis.stop();
  expect((await examine({ REDIS_URL: redis.url })).wrong).toEqual([
    expect.stringMatching(/^redis: Redis cannot be used at REDIS_URL \(ECONNREFUSED\)$/),
  ]);
});

it('a Redis whose user may not run the limiter’s script is found, and one with the documented rights passes', async () => {
  const stateFolder = temporaryFolder();
  const redis = await startRedis({ stateFolder, report: () => {} });
  if (redis === null) throw new Error('no Redis is installed');
  onTestFinished(() => redis.stop());
  const { Redis } = await import('ioredis');
  const client = new Redis(redis.url);
  const page = readFileSync(path.join(import.meta.dirname, '../../docs/operations/prepare-redis.md'), 'utf8');
  const [, rules = ''] = /`(~limit:us:[^`]*)`/.exec(page) ?? [];
  await client.acl('SETUSER', 'documented', 'on', '>p', ...rules.split(' '));
  await client.acl('SETUSER', 'scriptless', 'on', '>p', '~*', '&*', '+@all', '-eval', '-evalsha');
  client.disconnect();
  const at = async (user: string) =>
    (await examine({ REDIS_URL: redis.url.replace('redis://', `redis://${user}:p@`) })).wrong;
  expect(await at('scriptless')).toEqual(['redis: Redis cannot be used at REDIS_URL (NOPERM)']);
  expect(await at('documented')).toEqual([]);
});

it('a Redis Cluster and sentinels are checked as their URL says, and found where it says something else', async () => {
  const [cluster, group] = await Promise.all([startRedisCluster(), startRedisSentinels()]);
  const at = async (url: string) => (await examine({ REDIS_URL: url })).wrong;
  expect(await at(cluster.url)).toEqual([]);
  expect(await at(group.url)).toEqual([]);
  const node = `redis://127.0.0.1:${cluster.first.port}`;
  expect(await at(node)).toEqual(['redis: REDIS_URL leads to a node of a Redis Cluster']);
  expect(await at(`redis://127.0.0.1:${group.sentinels[0]?.port}`)).toEqual([
    'redis: REDIS_URL leads to a Redis Sentinel',
  ]);
  await cluster.third.look.config('SET', 'maxmemory-policy', 'allkeys-lru');
  expect(await at(`${node}?cluster=true`)).toEqual([expect.stringContaining('redis: Redis may evict counts')]);
}, 60_000);

it('a Redis of an older version is judged by what it says of itself', () => {
  const states = (version: string) => checkRedisSettings({ version, policy: 'noeviction' })[0]?.state;
  expect(['6.2.14', '7.0.0', '7.2.4', '10.1.0', 'unknown'].map(states)).toEqual(['failed', 'ok', 'ok', 'ok', 'failed']);
});

describe('Temporal', () => {
  it('without the namespace, and unavailable, is found', async () => {
    const address = inject('temporalAddress');
    const at = async (settings: Record<string, string>) =>
      (await examine({ TEMPORAL_ADDRESS: address, ...settings })).wrong;
    expect(await at({ TEMPORAL_NAMESPACE: 'nowhere' })).toEqual(['temporal: Temporal has no namespace nowhere']);
    expect(await at({ TEMPORAL_ADDRESS: '127.0.0.1:1' })).toEqual([
      'temporal: Temporal does not answer at 127.0.0.1:1',
    ]);
  });

  it('that does not let this login in is found, with the end of the certificates', async () => {
    const front = await startTemporalFront(inject('temporalAddress'));
    front.letIn(['another-key']);
    const { wrong, findings } = await examine({
      TEMPORAL_ADDRESS: front.address,
      TEMPORAL_TLS: 'true',
      TEMPORAL_TLS_SERVER_NAME: frontName,
      ...mountSecret({
        TEMPORAL_TLS_CA: front.ca,
        TEMPORAL_TLS_CERT: front.client.cert,
        TEMPORAL_TLS_KEY: front.client.key,
        TEMPORAL_API_KEY: 'my-key',
      }).settings,
    });
    expect(wrong).toContainEqual(expect.stringMatching(/^temporal: .*does not let this app into the namespace/));
    expect(findings.filter(({ check }) => check === 'certificates').map(({ message }) => message)).toEqual([
      expect.stringMatching(/^the certificate of Temporal/),
      expect.stringMatching(/^TEMPORAL_TLS_CA/),
      expect.stringMatching(/^TEMPORAL_TLS_CERT/),
    ]);
  });

  it('that lets this login read and not write is found', async () => {
    const front = await startTemporalFront(inject('temporalAddress'));
    front.letIn(['my-key']);
    const settings = {
      ...mountSettings(front),
      TEMPORAL_NAMESPACE: testNamespace(),
      ...mountSecret({ TEMPORAL_API_KEY: 'my-key' }).settings,
    };
    const rejected = async () => (await examine(settings)).wrong.filter((one) => one.startsWith('temporal:'));
    expect(await rejected()).toEqual([]);
    for (const call of ['StartWorkflowExecution', 'TerminateWorkflowExecution']) front.reject(call, 7);
    expect(await rejected()).toEqual([expect.stringContaining('does not let this app into the namespace')]);
  });

  it('has what is on by default in 1.29 and needed here, and what another must set is named', async () => {
    const { connection } = await openTestTemporal();
    expect(await findUnmetNeeds(connection, testNamespace())).toEqual([]);
    const problems = (facts: object) =>
      listUnmetNeeds({ version: '1.29.0', startsEagerly: true, ...facts }).map(({ remedy }) => remedy);
    expect(problems({})).toEqual([]);
    expect(problems({ version: '1.31.2' })).toEqual([]);
    expect(problems({ version: '1.28.1' })).toEqual(['Upgrade it to 1.29 or newer.']);
    expect(problems({ version: '' })).toEqual(['Upgrade it to 1.29 or newer.']);
    expect(problems({ startsEagerly: false })).toEqual([
      'Set system.enableEagerWorkflowStart to true, as it is by default.',
    ]);
  });
});

it('proxies that are all are found, and those of a gateway are not', async () => {
  const wrong = async (trusted: string) => (await examine({ TRUSTED_PROXIES: trusted })).wrong;
  expect(await examine({ TRUSTED_PROXIES: '10.0.0.1' })).toMatchObject({ code: 0, ok: true, wrong: [] });
  for (const all of ['0.0.0.0/0', '::/0'])
    expect(await wrong(all)).toEqual([expect.stringMatching(/^trusted-proxies: .*trusts every address/)]);
});

it('a certificate that has ended fails, and one that ends within 14 days is a warning', () => {
  const end = (toDay: number) => checkPem('it', makeCertificate({ subject: 'x', fromDay: -20, toDay }).cert);
  expect([-1, 3, 40].flatMap(end).map(({ state }) => state)).toEqual(['failed', 'warning', 'ok']);
  const chain = [40, 3].map((toDay) => makeCertificate({ subject: 'x', toDay }).cert).join('');
  expect(checkPem('it', chain).map(({ state }) => state)).toEqual(['ok', 'warning']);
});

it('a clock that differs from the servers’ is found', async () => {
  const { database } = await setupDatabase();
  const late = 'data:text/javascript,const now=Date.now;Date.now=()=>now()-60_000';
  const settings = { API_DATABASE_URL: database.urls.api, REDIS_URL: inject('redisUrl') };
  const { wrong } = await examine({ ...settings, NODE_OPTIONS: `--import="${late}"` }, spawnOrgctl);
  expect(wrong).toEqual([
    'clock: the clocks of PostgreSQL and of this machine differ by 60 s',
    'clock: the clocks of Redis and of this machine differ by 60 s',
  ]);
});
