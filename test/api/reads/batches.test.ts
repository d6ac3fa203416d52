/** Reads that share a statement: each has its own decision, answer, snapshot and failure. */
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { fingerprints } from '#domain/keys/key.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { openTracing } from '#runtime/tracing.ts';
import { TrackedResponse } from '#runtime/tracked-response.ts';
import type { MadeKey, MadeMember } from '#test/make.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { BodyReader } from '../../../apps/api/body-reader.ts';
import { endpoints, getOrg, listOrgReferralCodes } from '../../../apps/api/endpoints.ts';
import { SharedBody } from '../../../apps/api/large-body.ts';
import { readInChunks } from '../../../apps/api/large-statement.ts';
import { type ReadRequest, SharedStatements } from '../../../apps/api/shared-statements.ts';
import { giveGrants } from '../bounds/readers.ts';

const tracing = await openTracing({ otlpEndpoint: null, app: 'test', region: 'us' });
const newResponse = () => new TrackedResponse(new IncomingMessage(new Socket()));

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
  const runner = new SharedStatements({ pool: api.pool, tracing, onStatement: (reads) => statements.push(reads) });
  const request = ({ key, orgId }: { key: string; orgId: string | null }, endpoint = getOrg): ReadRequest => ({
    endpoint,
    fingerprints: fingerprints(key, testKeySecrets.peppers),
    organizationId: orgId,
    address: null,
    response: newResponse(),
    encoding: null,
    deadlineMs: performance.now() + 60_000,
  });
  const read = (key: { key: string; orgId: string | null }, endpoint = getOrg, more: Partial<ReadRequest> = {}) =>
    runner.read({ ...request(key, endpoint), ...more });
  return { ...installation, pool: api.pool, statements, request, read };
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
  const unblock = async () => {
    if (!isBlocking) return;
    isBlocking = false;
    await client.query('rollback');
    client.release();
  };
  onTestFinished(unblock);
  return unblock;
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
  const unblock = await blockReferralCodes(scene);
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
  await unblock();

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

it('a read that the database rejects changes no other response of its statement', async () => {
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

it('a read that takes too long changes no other response of its statement', async () => {
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
  const unblock = await blockReferralCodes(scene);
  const slow: Promise<unknown>[] = [];
  for (let statements = 1; statements <= 3; statements += 1) {
    slow.push(read(key, listOrgReferralCodes));
    await expect.poll(async () => (await findBlocked(scene)).length).toBe(statements);
  }

  expect(await read(key)).toMatchObject({ decision: 'ok' });
  expect(await findBlocked(scene)).toHaveLength(3);

  await unblock();
  for (const row of await Promise.all(slow)) expect(row).toMatchObject({ decision: 'ok' });
});

it('three statements of an operation run at most, and a wait behind them ends with its client and at its deadline', async () => {
  const scene = await setupBatches();
  const { make, read, statements } = scene;
  const key = await make.apiKey({ scopes: ['org.read', 'org.referrals.manage'] });
  const unblock = await blockReferralCodes(scene);
  const reads: Promise<unknown>[] = [];
  for (let blocked = 1; blocked <= 3; blocked += 1) {
    reads.push(read(key, listOrgReferralCodes));
    await expect.poll(async () => (await findBlocked(scene)).length).toBe(blocked);
  }
  const response = newResponse();
  const left = read(key, listOrgReferralCodes, { response });
  const late = read(key, listOrgReferralCodes, { deadlineMs: performance.now() + 100 });
  reads.push(read(key, listOrgReferralCodes));
  response.markEnded();
  await expect(left).rejects.toMatchObject({ name: 'ClientGoneError' });
  await expect(late).rejects.toMatchObject({ code: 'unavailable' });
  expect(await read(key)).toMatchObject({ decision: 'ok' });
  expect(await findBlocked(scene)).toHaveLength(3);
  expect(statements).toEqual([1, 1, 1, 1]);

  await unblock();
  for (const row of await Promise.all(reads)) expect(row).toMatchObject({ decision: 'ok' });
  expect(statements).toEqual([1, 1, 1, 1, 1]);
});

it('a read that waited before its rejected statement gets no second one, and one that did not gets it', async () => {
  const scene = await setupBatches();
  const { make, read, owner, statements } = scene;
  const key = await make.apiKey({ scopes: ['org.referrals.manage'] });
  const unblock = await blockReferralCodes(scene);
  const startedMs = performance.now();
  const waited = read(key, listOrgReferralCodes, { deadlineMs: startedMs + 3_000 });
  const kept = read(key, listOrgReferralCodes, { deadlineMs: startedMs + 4_500 });
  const settled = Promise.allSettled([waited, kept]);
  await expect.poll(async () => (await findBlocked(scene)).length).toBe(1);
  // As if the statement had taken 5 s: 1 s of them is no wait.
  vi.spyOn(performance, 'now').mockReturnValue(startedMs + 5_000);
  onTestFinished(() => void vi.restoreAllMocks());
  await owner.pool.query('select pg_cancel_backend($1)', await findBlocked(scene));
  await expect(waited).rejects.toMatchObject({ code: '57014' });
  await expect.poll(async () => (await findBlocked(scene)).length).toBe(1);
  await unblock();

  expect(await settled).toMatchObject([{ status: 'rejected' }, { value: { decision: 'ok' } }]);
  expect(statements).toEqual([2, 1]);
});

it('the reads of a rejected statement run again in three statements at a time', async () => {
  const scene = await setupBatches();
  const { make, read, owner, statements } = scene;
  const key = await make.apiKey({ scopes: ['org.referrals.manage'] });
  const unblock = await blockReferralCodes(scene);
  const reads = Promise.all(Array.from({ length: 6 }, () => read(key, listOrgReferralCodes)));
  await expect.poll(async () => (await findBlocked(scene)).length).toBe(1);
  await owner.pool.query('select pg_cancel_backend($1)', await findBlocked(scene));
  await expect.poll(async () => (await findBlocked(scene)).length).toBe(3);
  expect(statements).toEqual([6, 1, 1, 1]);

  await unblock();
  for (const row of await reads) expect(row).toMatchObject({ decision: 'ok' });
  expect(statements).toEqual([6, 1, 1, 1, 1, 1, 1]);
});

it('a connection that breaks fails the reads of its statement and no other', async () => {
  const scene = await setupBatches();
  const { make, read, owner } = scene;
  const key = await make.apiKey({ scopes: ['org.read', 'org.referrals.manage'] });
  const unblock = await blockReferralCodes(scene);
  const lost = Promise.allSettled([read(key, listOrgReferralCodes), read(key, listOrgReferralCodes)]);
  await expect.poll(async () => (await findBlocked(scene)).length).toBe(1);
  const [backend] = await findBlocked(scene);
  const kept = Promise.all([read(key, listOrgReferralCodes), read(key, listOrgReferralCodes)]);
  await expect.poll(async () => (await findBlocked(scene)).length).toBe(2);

  await owner.pool.query('select pg_terminate_backend($1)', [backend]);

  expect((await lost).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await read(key)).toMatchObject({ decision: 'ok' });
  await unblock();
  for (const row of await kept) expect(row).toMatchObject({ decision: 'ok' });
});

/** Adds rows to each list of an organization until it has this many. */
async function fillLists({ owner }: Scene, creator: MadeMember, rows: number): Promise<void> {
  const { orgId } = creator;
  const fill = (sql: string) => owner.pool.query(sql, [orgId, rows]);
  const missing = (table: string) =>
    `generate_series((select count(*) from ${table} where organization_id = $1) + 1, $2::integer) n`;
  await fill(
    `with person as (insert into person (id) select gen_random_uuid()::text from ${missing('membership')} returning id)
     insert into membership (organization_id, person_id, name, email, status)
     select $1, id, 'Member', id || '@a.test', 'active' from person`,
  );
  await fill(
    `insert into referral_code (organization_id, code, link)
     select $1, 'CODE-' || n, 'https://a.test/' || n from ${missing('referral_code')}`,
  );
  await fill(
    `insert into seat_plan (organization_id, invoiced) values ($1, $2) on conflict (organization_id)
     do update set invoiced = excluded.invoiced`,
  );
  const { rows: grants } = await owner.pool.query<{ count: number }>(
    'select count(*)::integer as count from client_grant where organization_id = $1',
    [orgId],
  );
  await giveGrants(owner, creator, rows - (grants[0]?.count ?? 0));
  await owner.pool.query(
    `insert into seat (organization_id, grant_id, family_id) select organization_id, id, family_id from client_grant g
     where organization_id = $1 and not exists (select from seat s where s.grant_id = g.id)`,
    [orgId],
  );
}

it('a list of 256 rows is a small body, and one of 257 rows a large one of the same content', async () => {
  const scene = await setupBatches();
  const { make, pool, read, request } = scene;
  const creator = await make.member();
  const key = await make.apiKey({ creator });
  const lists = endpoints.filter(({ lists }) => lists.length > 0);
  expect(lists.map(({ operationId }) => operationId)).toEqual([
    'getFirmRoster',
    'listMembers',
    'listOrgReferralCodes',
    'getOrgSeatFamilies',
  ]);
  const readLarge = async (endpoint: (typeof lists)[number]) => {
    const large = await readInChunks(pool, request(key, endpoint), { onEnd: () => {} }, 6_000_000, []);
    return Buffer.concat(large?.chunks ?? []).toString();
  };
  await fillLists(scene, creator, 256);
  for (const endpoint of lists) {
    const row = await read(key, endpoint);
    expect(row?.body?.length, endpoint.operationId).toBeGreaterThan(10_000);
    expect(await readLarge(endpoint)).toBe(row?.body);
  }
  await fillLists(scene, creator, 257);
  for (const endpoint of lists) {
    expect(await read(key, endpoint), endpoint.operationId).toMatchObject({ decision: 'ok', body: null });
    expect((await readLarge(endpoint)).length).toBeGreaterThan(10_000);
  }
});

it('a list of ended seats is large by itself, and so is any body of more than 64 KiB', async () => {
  const scene = await setupBatches();
  const { make, owner, read } = scene;
  const creator = await make.member();
  const key = await make.apiKey({ creator });
  await fillLists(scene, creator, 1);
  const seatFamilies = endpoints.find(({ operationId }) => operationId === 'getOrgSeatFamilies');
  await owner.pool.query(
    `insert into seat (organization_id, grant_id, family_id, ended_at, end_reason)
     select organization_id, id, family_id, now(), 'access_ended' from client_grant, generate_series(1, 256)
     where organization_id = $1`,
    [creator.orgId],
  );
  expect(await read(key, seatFamilies)).toMatchObject({ decision: 'ok', body: null });
  await owner.pool.query(`update organization set name = repeat('a', 70000) where id = $1`, [creator.orgId]);
  expect(await read(key)).toMatchObject({ decision: 'ok', body: null });
});

it('what a large body holds is what is not sent yet', async () => {
  const scene = await setupBatches();
  const { make, owner, pool, request } = scene;
  const creator = await make.member();
  const key = await make.apiKey({ creator });
  await giveGrants(owner, creator, 1_000);
  const roster = endpoints.find(({ operationId }) => operationId === 'getFirmRoster');
  const bodyReader = new BodyReader({ pool, tracing, memoryMiB: 16, databasePoolMax: 5, readWaitMs: 60_000 });
  const requested = request(key, roster);
  const { content } = await bodyReader.read(requested);
  if (!(content?.body instanceof SharedBody)) throw new Error('the body is small');
  expect(bodyReader.state).toEqual({ smallBytes: 0, largeBytes: content.body.bytes, waiting: 0 });
  const chunks = content.body.chunksFor(requested.response);
  const { value: first } = chunks.next();
  chunks.next();
  expect(bodyReader.state.largeBytes).toBe(content.body.bytes - first.length);
  requested.response.markEnded();
  expect(bodyReader.state).toEqual({ smallBytes: 0, largeBytes: 0, waiting: 0 });
});
