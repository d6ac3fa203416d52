/** Reads that share a statement: each has its own decision, answer, snapshot and failure. */
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openDatabase } from '#domain/db/connect.ts';
import { fingerprints } from '#domain/keys/fingerprint.ts';
import { GuardedAnswer } from '#runtime/guarded-answer.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import type { MadeKey } from '#test/make.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { createAnswerMemory } from '../../../apps/api/answer-memory.ts';
import { getOrg, listOrgReferralCodes } from '../../../apps/api/endpoints.ts';
import { createReadBatches } from '../../../apps/api/read-batches.ts';

/** Batches of one process on a new database, and the number of reads of each statement. */
async function setupBatches(poolMax = 5) {
  const installation = await setupDatabase();
  const api = await openDatabase({
    server: parsePostgresUrl(installation.database.urls.api),
    applicationName: 'batches',
    poolMax,
    connectTimeoutMs: 20_000,
    statementTimeoutMs: 60_000,
  });
  onTestFinished(() => api.close());
  const statements: number[] = [];
  const batches = createReadBatches({ pool: api.pool, onStatement: (reads) => statements.push(reads) });
  const read = ({ key, orgId }: { key: string; orgId: string | null }, { statement } = getOrg) =>
    batches.runTogether(statement, {
      fingerprints: fingerprints(key, testKeySecrets.peppers),
      organizationId: orgId,
    });
  return { ...installation, pool: api.pool, statements, read };
}

type Scene = Awaited<ReturnType<typeof setupBatches>>;

/**
 * Blocks reads of referral codes in the database, as a slow statement would, until the returned
 * function is called.
 */
async function blockReferralCodes({ owner }: Scene): Promise<() => Promise<void>> {
  const client = await owner.pool.connect();
  await client.query('begin');
  await client.query('lock table referral_code in access exclusive mode');
  let isBlocking = true;
  const release = async () => {
    if (!isBlocking) return;
    isBlocking = false;
    await client.query('rollback');
    client.release();
  };
  onTestFinished(release);
  return release;
}

/** Returns the backends of this process that wait for the lock. */
async function findBlocked({ owner }: Scene): Promise<number[]> {
  const { rows } = await owner.pool.query<{ pid: number }>(
    `select pid from pg_stat_activity where datname = current_database() and application_name = 'batches'
       and wait_event_type = 'Lock'`,
  );
  return rows.map(({ pid }) => pid);
}

/** Stops the clock of `setTimeout` until the test ends. */
function stopTimers(): void {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
}

it('reads that arrive together share one statement, and each gets its own decision and answer', async () => {
  const { make, read, statements } = await setupBatches();
  const keys = await Promise.all(Array.from({ length: 3 }, () => make.apiKey({ scopes: ['org.read'] })));
  const [first, second, revoked] = keys as [MadeKey, MadeKey, MadeKey];
  await make.keyRevoked(revoked);

  const rows = await Promise.all([
    read(first),
    read({ key: first.key, orgId: second.orgId }),
    read({ key: second.key, orgId: null }),
    read(revoked),
    read({ key: 'no such key', orgId: first.orgId }),
    read(second),
    read(first),
  ]);

  expect(statements).toEqual([7]);
  expect(rows.map((row) => row?.decision ?? null)).toEqual([
    'ok',
    'other_organization',
    'malformed',
    'revoked',
    null,
    'ok',
    'ok',
  ]);
  const ids = rows.map((row) => (row?.body ? JSON.parse(row.body).id : null));
  expect(ids).toEqual([first.orgId, null, null, null, null, second.orgId, first.orgId]);
});

it('a lone read waits for no timer', async () => {
  const { make, read, statements } = await setupBatches();
  const key = await make.apiKey();
  await read(key);
  stopTimers();

  expect(await read(key)).toMatchObject({ decision: 'ok' });
  expect(statements).toEqual([1, 1]);
});

it('at most 32 reads share a statement', async () => {
  const { make, read, statements } = await setupBatches();
  const key = await make.apiKey();

  const rows = await Promise.all(Array.from({ length: 100 }, () => read(key)));

  expect(statements).toEqual([32, 32, 32, 4]);
  for (const row of rows) expect(row).toMatchObject({ decision: 'ok' });
});

it('a revocation that commits while a read is queued behind other statements is seen by it', async () => {
  const scene = await setupBatches();
  const { make, read, statements } = scene;
  const key = await make.apiKey({ scopes: ['org.read', 'org.referrals.manage'] });
  const release = await blockReferralCodes(scene);
  // Without timers, a statement counts as running until it has ended.
  stopTimers();
  const before: Promise<unknown>[] = [];
  for (let blocked = 1; blocked <= 2; blocked += 1) {
    before.push(read(key, listOrgReferralCodes));
    // `expect.poll` would advance the timers.
    while ((await findBlocked(scene)).length < blocked);
  }
  const queued = [read(key), read(key)];

  await make.keyRevoked(key);
  expect(statements).toEqual([1, 1]);
  await release();

  for (const row of await Promise.all(queued)) expect(row).toMatchObject({ decision: 'revoked', body: null });
  await Promise.all(before);
  expect(statements).toEqual([1, 1, 2]);
});

it('a revocation that commits while a read waits for its statement is seen by it', async () => {
  const { make, read, pool, statements } = await setupBatches(1);
  const [kept, revoked] = await Promise.all([make.apiKey(), make.apiKey()]);
  const connection = await pool.connect();
  const reads = [kept, revoked, kept, revoked].map((key) => read(key));
  await expect.poll(() => pool.waitingCount).toBeGreaterThan(0);

  await make.keyRevoked(revoked);
  connection.release();

  const rows = await Promise.all(reads);
  expect(rows.map((row) => row?.decision)).toEqual(['ok', 'revoked', 'ok', 'revoked']);
  expect(statements).toEqual([4]);
});

it('a read that the database refuses changes no other answer of its statement', async () => {
  const { make, read, owner, statements } = await setupBatches();
  const keys = await Promise.all([make.apiKey(), make.apiKey(), make.apiKey()]);
  const [, broken] = keys as [MadeKey, MadeKey, MadeKey];
  await owner.pool.query(
    `create or replace view api.organization as
       select id, case when id = '${broken.orgId}' then (1 / (length(name) - length(name)))::text else name end as name,
         slug, kind, status, created_at
       from public.organization`,
  );

  const results = await Promise.allSettled(keys.map((key) => read(key)));

  expect(statements).toEqual([3, 1, 1, 1]);
  expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(results[1]).toMatchObject({ reason: { code: '22012' } });
  expect(results[0]).toMatchObject({ value: { decision: 'ok', body: expect.stringContaining(keys[0]?.orgId ?? '-') } });
});

it('a read that takes too long changes no other answer of its statement', async () => {
  const { make, read, owner, statements } = await setupBatches();
  const keys = await Promise.all([make.apiKey(), make.apiKey(), make.apiKey()]);
  const [, endless] = keys as [MadeKey, MadeKey, MadeKey];
  await owner.pool.query(
    `create or replace view api.organization as
       select id, case when id = '${endless.orgId}' then pg_sleep(3600)::text else name end as name,
         slug, kind, status, created_at
       from public.organization`,
  );
  /** Cancels the statement that sleeps, as PostgreSQL does at `statement_timeout`. */
  const cancel = async () => {
    const { rowCount } = await owner.pool.query(
      `select pg_cancel_backend(pid) from pg_stat_activity where datname = current_database()
         and application_name = 'batches' and wait_event = 'PgSleep'`,
    );
    return rowCount;
  };

  const reads = keys.map((key) => read(key));
  const settled = Promise.allSettled(reads);
  await expect.poll(cancel).toBe(1);
  const [first, , third] = reads;
  expect(await first).toMatchObject({ decision: 'ok', body: expect.stringContaining(keys[0]?.orgId ?? '-') });
  expect(await third).toMatchObject({ decision: 'ok', body: expect.stringContaining(keys[2]?.orgId ?? '-') });
  await expect.poll(cancel).toBe(1);

  expect((await settled)[1]).toMatchObject({ status: 'rejected', reason: { code: '57014' } });
  expect(statements).toEqual([3, 1, 1, 1]);
});

it('statements that take long hold up no read behind them', async () => {
  const scene = await setupBatches();
  const { make, read } = scene;
  const key = await make.apiKey({ scopes: ['org.read', 'org.referrals.manage'] });
  const release = await blockReferralCodes(scene);
  const slow: Promise<unknown>[] = [];
  for (let statements = 1; statements <= 3; statements += 1) {
    slow.push(read(key, listOrgReferralCodes));
    await expect.poll(async () => (await findBlocked(scene)).length).toBe(statements);
  }

  expect(await read(key)).toMatchObject({ decision: 'ok' });
  expect(await findBlocked(scene)).toHaveLength(3);

  await release();
  for (const row of await Promise.all(slow)) expect(row).toMatchObject({ decision: 'ok' });
});

it('a connection that breaks fails the reads of its statement and no other', async () => {
  const scene = await setupBatches();
  const { make, read, owner } = scene;
  const key = await make.apiKey({ scopes: ['org.read', 'org.referrals.manage'] });
  const release = await blockReferralCodes(scene);
  const lost = Promise.allSettled([read(key, listOrgReferralCodes), read(key, listOrgReferralCodes)]);
  await expect.poll(async () => (await findBlocked(scene)).length).toBe(1);
  const [backend] = await findBlocked(scene);
  const kept = Promise.all([read(key, listOrgReferralCodes), read(key, listOrgReferralCodes)]);
  await expect.poll(async () => (await findBlocked(scene)).length).toBe(2);

  await owner.pool.query('select pg_terminate_backend($1)', [backend]);

  expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await read(key)).toMatchObject({ decision: 'ok' });
  await release();
  for (const row of await kept) expect(row).toMatchObject({ decision: 'ok' });
});

it('a read that took long runs alone from then on, until it takes less', async () => {
  const { make, owner, pool } = await setupBatches();
  const key = await make.apiKey();
  const batches = createReadBatches({ pool });
  const memory = createAnswerMemory({ memoryMiB: 16, databasePoolMax: 5 });
  const values = { fingerprints: fingerprints(key.key, testKeySecrets.peppers), organizationId: key.orgId };
  /** Reads once; returns whether the read shared its statement. */
  async function isShared(): Promise<boolean> {
    const answer = new GuardedAnswer(new IncomingMessage(new Socket()));
    const [print] = values.fingerprints;
    if (print === undefined) throw new Error('no fingerprint');
    const reading = { print, organizationId: key.orgId, operationId: 'getOrg', answer };
    let shared = false;
    await memory.read(reading, {
      together() {
        shared = true;
        return batches.runTogether(getOrg.statement, values);
      },
      alone: (room) => batches.runAlone(getOrg.statement, values, room),
      inChunks: () => Promise.reject(new Error('the answer is small')),
    });
    answer.markEnded();
    return shared;
  }
  const nameOf = (sql: string) =>
    owner.pool.query(
      `create or replace view api.organization as
         select id, ${sql} as name, slug, kind, status, created_at from public.organization`,
    );

  expect(await isShared()).toBe(false);
  // On a busy machine any read may be slow.
  await expect.poll(isShared, { timeout: 30_000 }).toBe(true);
  await nameOf('name || pg_sleep(0.05)::text');
  await isShared();
  expect([await isShared(), await isShared()]).toEqual([false, false]);
  await nameOf('name');
  await expect.poll(isShared, { timeout: 30_000 }).toBe(true);
});
