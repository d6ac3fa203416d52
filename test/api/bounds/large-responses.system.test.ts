/**
 * A roster of 100,000 grants passes from PostgreSQL to the socket in chunks: one snapshot, bounded
 * memory, short iterations of the event loop, and never a truncated body that looks complete.
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import Koa from 'koa';
import type pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { fingerprints } from '#domain/keys/key.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { constants, patient } from '#test/constants.ts';
import { exchange } from '#test/exchange.ts';
import { listenLocally } from '#test/listen-locally.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setupDatabase, shareInstallation, startTestApi } from '#test/setup.ts';
import { startTcpProxy } from '#test/tcp-proxy.ts';
import { getFirmRoster } from '../../../apps/api/endpoints.ts';
import { LargeBodySender } from '../../../apps/api/large-body.ts';
import { chunkBytes, readInChunks } from '../../../apps/api/large-statement.ts';
import type { ReadParameters } from '../../../apps/api/reads/authorized.ts';
import { rosterSql } from '../../../apps/api/reads/roster.ts';
import { startChildApi } from '../child-api.ts';
import { residentMiB, untilFigures } from './figures.ts';
import { giveGrants, openReader } from './readers.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const grants = 100_000;
const room = 64 * 1_048_576;

/**
 * Creates an organization with 100,000 grants, whose names have characters of one to four bytes.
 */
const shared = shareInstallation(async (onFinished) => {
  const installation = await setupDatabase(onFinished);
  const { database, owner, make } = installation;
  const creator = await make.member();
  await giveGrants(owner, creator, grants, 'aé€😀aé€😀');
  const api = await openDatabase({
    server: parsePostgresUrl(database.urls.api),
    applicationName: 'large',
    poolMax: 2,
    ...patient.databaseTimes,
  });
  onFinished(() => api.close());
  const { key } = await make.apiKey({ creator });
  const values = {
    fingerprints: fingerprints(key, testKeySecrets.peppers),
    organizationId: creator.orgId,
    address: null,
  };
  return { ...installation, creator, key, values, pool: api.pool, path: `/v1/orgs/${creator.orgId}/clients` };
});

const largeBodySender = new LargeBodySender();
const client = { onEnd: () => {} };

const readRoster = (pool: pg.Pool, values: ReadParameters, maxBytes: number, unchanged: string[] | null) =>
  readInChunks(pool, { endpoint: getFirmRoster, ...values }, client, maxBytes, unchanged);

/** Returns the response as one row, the way a small response arrives. */
async function readWhole(): Promise<string> {
  const { pool, values } = shared();
  const { rows } = await pool.query<{ body: string }>({
    text: `select (${rosterSql})::text as body from (select $1::uuid as organization_id) request`,
    values: [values.organizationId],
  });
  return rows[0]?.body ?? '';
}

const readChunks = (unchanged: string[] | null = []) => {
  const { pool, values } = shared();
  return readRoster(pool, values, room, unchanged);
};

/** A pool that reports each chunk when it is converted to bytes. */
const watchChunks = (onChunk: () => void) => ({
  query(query: { types: pg.CustomTypesConfig }) {
    const { types } = query;
    const getTypeParser = (type: number, format?: 'text') => {
      const parse = types.getTypeParser(type, format) as (text: string) => unknown;
      return (text: string) => {
        if (text.length === chunkBytes) onChunk();
        return parse(text);
      };
    };
    return shared().pool.query({ ...query, types: { getTypeParser } } as never);
  },
});

/** Blocks the insert of audit entries until the transaction of `client` ends. */
async function blockAuditLog(): Promise<pg.PoolClient> {
  const client = await shared().owner.pool.connect();
  await client.query('begin');
  await client.query('lock table audit_entry in access exclusive mode');
  return client;
}

const computeTag = (body: Buffer) => `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;

const countWaiting = async (condition: string, applicationName = 'org-api') => {
  const { rows } = await shared().owner.pool.query<{ count: number }>(
    `select count(*)::int as count from pg_stat_activity
     where datname = current_database() and application_name = $1 and ${condition}`,
    [applicationName],
  );
  return rows[0]?.count ?? 0;
};

it('chunks and entity tag are those of the response in one piece', async () => {
  const whole = Buffer.from(await readWhole());
  const read = await readChunks();

  expect(read?.row).toMatchObject({ decision: 'ok', bytes: whole.length });
  expect(read?.row.etag).toBe(computeTag(whole));
  expect(read?.chunks.map(({ length }) => length)).toEqual(
    Array.from({ length: Math.ceil(whole.length / chunkBytes) }, (_, n) =>
      Math.min(chunkBytes, whole.length - n * chunkBytes),
    ),
  );
  expect(Buffer.concat(read?.chunks ?? []).equals(whole)).toBe(true);
});

/** A node of a plan that has run, as EXPLAIN reports it. */
interface PlanNode {
  'Relation Name'?: string;
  'Function Name'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Join Filter'?: number;
  Plans?: PlanNode[];
}

// A statement that reads more does not end within its 5 s. Counts show it on any machine, and time does not.
it('its statement reads each grant twice, each family once, and each chunk once, so its time is in proportion to its size', async () => {
  const { values } = shared();
  const rowsRead: Record<string, number> = {};
  const addRows = (node: PlanNode): void => {
    const name = node['Relation Name'] ?? node['Function Name'] ?? 'joins';
    const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0);
    const rows = removed + (name === 'joins' ? 0 : node['Actual Rows']);
    rowsRead[name] = (rowsRead[name] ?? 0) + rows * node['Actual Loops'];
    for (const child of node.Plans ?? []) addRows(child);
  };
  const explaining = {
    async query(query: { text: string; values: unknown[] }) {
      const text = `explain (analyze, timing off, format json) ${query.text}`;
      const { rows } = await shared().pool.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>({
        ...query,
        name: 'explain',
        text,
      });
      for (const { Plan } of rows[0]?.['QUERY PLAN'] ?? []) addRows(Plan);
      return { rows: [] };
    },
  };
  await readRoster(explaining as never, values, room, []);
  const { client_grant: ofGrants, family, generate_series: chunks, joins } = rowsRead;
  expect({ ofGrants, family, joins }).toEqual({ ofGrants: 2 * grants, family: grants, joins: 0 });
  expect(chunks).toBe((await readChunks())?.chunks.length);
});

it('what commits while its statement runs changes neither decision, entity tag nor body', async () => {
  const { make, creator, owner, pool } = shared();
  const before = Buffer.from(await readWhole());
  const made = await make.apiKey({ creator });
  const prints = fingerprints(made.key, testKeySecrets.peppers);
  const values = { fingerprints: prints, organizationId: creator.orgId, address: null };
  const reading = readRoster(pool, values, room, []);
  await expect
    .poll(() => countWaiting(`state = 'active' and query like '%tag.etag%'`, 'large'), { timeout: 30_000 })
    .toBe(1);
  await make.keyRevoked(made);
  const { rows } = await owner.pool.query<{ id: string; name: string }>(
    `update family set name = 'changed' where id = (select max(id::text)::uuid from family) returning id`,
  );
  expect(rows).toHaveLength(1);

  const read = await reading;
  expect(read?.row.decision).toBe('ok');
  expect(Buffer.concat(read?.chunks ?? []).equals(before)).toBe(true);
  expect(read?.row.etag).toBe(computeTag(before));
  expect((await readRoster(pool, values, room, []))?.row.decision).toBe('revoked');
  const after = await readChunks();
  expect(after?.row.etag).not.toBe(read?.row.etag);
  expect(after?.row.etag).toBe(computeTag(Buffer.concat(after?.chunks ?? [])));
});

it('a response that its client has already, or that is too long, leaves no chunk of it in PostgreSQL’s reply', async () => {
  const { pool, values } = shared();
  const etag = (await readChunks())?.row.etag ?? '';
  const connection = await pool.connect();
  onTestFinished(() => connection.release());
  const received = () => (connection as unknown as { connection: { stream: { bytesRead: number } } }).connection.stream;
  const ask = async (mostBytes: number, unchanged: string[] | null) => {
    const before = received().bytesRead;
    const read = await readRoster(connection as never, values, mostBytes, unchanged);
    return { etag: read?.row.etag, chunks: read?.chunks.length, bytes: received().bytesRead - before };
  };
  for (const unchanged of [[etag], ['"other"', etag], null]) {
    const { bytes, ...read } = await ask(room, unchanged);
    expect(read).toEqual({ etag, chunks: 0 });
    expect(bytes).toBeLessThan(2_000);
  }
  const { bytes, ...read } = await ask(100_000, []);
  expect(read).toEqual({ etag: null, chunks: 0 });
  expect(bytes).toBeLessThan(2_000);
});

it('chunks arrive in many iterations of the event loop, at most 40 in one', async () => {
  const { values } = shared();
  const chunksOfTurns = [0];
  let isDone = false;
  const pool = watchChunks(() => {
    chunksOfTurns[0] = (chunksOfTurns[0] ?? 0) + 1;
  });
  const read = readRoster(pool as never, values, room, []).finally(() => {
    isDone = true;
  });
  const turn = { cpu: process.threadCpuUsage(), longestMs: 0 };
  while (!isDone) {
    await new Promise((resolve) => setImmediate(resolve));
    const { user, system } = process.threadCpuUsage(turn.cpu);
    turn.longestMs = Math.max(turn.longestMs, (user + system) / 1_000);
    turn.cpu = process.threadCpuUsage();
    if (chunksOfTurns[0] !== 0) chunksOfTurns.unshift(0);
  }
  const chunks = (await read)?.chunks.length ?? 0;
  console.log(`    ${chunks} chunks in ${chunksOfTurns.length} turns, the longest of ${turn.longestMs} ms`);
  expect(chunksOfTurns.reduce((sum, each) => sum + each)).toBe(chunks - 1);
  // In one turn, Node reads from a socket up to 32 times, 64 KiB each.
  expect(Math.max(...chunksOfTurns)).toBeLessThanOrEqual(40);
});

it('a roster of 100,000 grants grows the process by less than four times its size, and several stay within a pod', async () => {
  const { database, creator, key, path } = shared();
  const api = await startChildApi(database);
  const headers = { authorization: `Bearer ${key}` };
  const resident = () => residentMiB(api.process.pid ?? 0);
  /** A busy machine may not make the roster within the 5 s of a statement. */
  const readWhole = () =>
    vi.waitUntil(
      async () => {
        const { status, body } = await exchange(api.url + path, { headers });
        expect([200, 503]).toContain(status);
        return status === 200 ? body : null;
      },
      { timeout: 60_000, interval: 100 },
    );
  for (let times = 0; times < 50; times += 1) await exchange(`${api.url}/v1/orgs/${creator.orgId}`, { headers });
  const before = resident();
  let most = before;
  const timer = setInterval(() => {
    most = Math.max(most, resident());
  }, 5);
  onTestFinished(() => clearInterval(timer));
  const body = await readWhole();
  const responseMiB = Buffer.byteLength(body) / 1_048_576;
  const first = most - before;
  for (let round = 0; round < 3; round += 1) await Promise.all(Array.from({ length: 4 }, readWhole));
  console.log(
    `    ${responseMiB.toFixed(0)} MiB; the process grew by ${first.toFixed(0)} MiB, then to ${most.toFixed(0)}`,
  );
  expect(first).toBeLessThan(4 * responseMiB);
  expect(most).toBeLessThan(400);
});

it('its audit entry is committed before its first byte', async () => {
  const { database, owner, key, path } = shared();
  const api = await startTestApi(database, { [constants]: patient });
  const blocker = await blockAuditLog();
  const reader = await openReader(api.url, { path, key });
  await expect.poll(() => countWaiting(`wait_event_type = 'Lock'`), { timeout: 30_000 }).toBe(1);
  expect(reader.received).toBe(0);
  const { heldBytes } = await untilFigures(api.metricsUrl, (figures) => figures.heldBytes > 0);
  expect(heldBytes).toBeGreaterThan(20_000_000);

  await blocker.query('rollback');
  blocker.release();
  await expect.poll(() => reader.isClosed, { timeout: 30_000 }).toBe(true);
  expect(reader.status).toBe(200);
  expect(reader.received).toBeGreaterThan(heldBytes);
  await untilFigures(api.metricsUrl, (figures) => figures.heldBytes === 0);
  expect(owner.pool.waitingCount).toBe(0);
});

it('a revocation before its statement begins is seen, and no byte of the roster is sent', async () => {
  const { database, make, creator, path } = shared();
  const api = await startTestApi(database, { [constants]: patient });
  const made = await make.apiKey({ creator });
  await (await api.get(path, { key: made.key })).arrayBuffer();
  const first = await openReader(api.url, { path, key: made.key });
  await expect.poll(() => countWaiting(`state = 'active' and query like '%tag.etag%'`), { timeout: 30_000 }).toBe(1);
  const second = api.get(path, { key: made.key });
  await make.keyRevoked(made);
  expect((await second).status).toBe(401);
  await expect.poll(() => first.isClosed, { timeout: 30_000 }).toBe(true);
  expect(first.status).toBe(200);
});

it('a database connection that breaks while chunks arrive gives a complete error and no part of the roster', async () => {
  const { database, key, path } = shared();
  const { hostname, port } = new URL(database.urls.api);
  const proxy = await startTcpProxy({ host: hostname, port: Number(port) });
  const url = new URL(database.urls.api);
  url.port = String(proxy.port);
  const api = await startTestApi(database, { API_DATABASE_URL: url.href, [constants]: patient });
  await (await api.get(path, { key })).arrayBuffer();
  const response = api.get(path, { key });
  await expect.poll(() => countWaiting(`state = 'active' and query like '%tag.etag%'`), { timeout: 30_000 }).toBe(1);
  proxy.pause();
  await expect.poll(() => countWaiting(`wait_event = 'ClientWrite'`), { timeout: 30_000 }).toBe(1);

  await proxy.reject();

  const { status } = await response;
  expect(status).toBe(503);
  expect(await (await response).json()).toMatchObject({ error: 'unavailable' });
  await untilFigures(api.metricsUrl, ({ heldBytes, waiting }) => heldBytes === 0 && waiting === 0);
});

it('a client that disconnects while its roster is sent frees what was held', async () => {
  const { database, key, path } = shared();
  const api = await startTestApi(database, { [constants]: patient });
  const reader = await openReader(api.url, { path, key, bytesPerSecond: 100_000 });
  await expect.poll(() => reader.received, { timeout: 30_000 }).toBeGreaterThan(0);
  await untilFigures(api.metricsUrl, ({ heldBytes }) => heldBytes > 10_000_000);
  reader.socket.destroy();
  await untilFigures(api.metricsUrl, ({ heldBytes }) => heldBytes === 0);
});

it('large responses write 256 KiB in one iteration of the event loop, all together', async () => {
  const chunks = 64;
  const bytesOfTurns = [0];
  const app = new Koa();
  app.use((ctx) => {
    function* counted() {
      for (let number = 0; number < chunks; number += 1) {
        bytesOfTurns[0] = (bytesOfTurns[0] ?? 0) + chunkBytes;
        yield Buffer.alloc(chunkBytes);
      }
    }
    largeBodySender.send(ctx, counted(), chunks * chunkBytes);
  });
  const port = await listenLocally(createServer(app.callback()));
  let isDone = false;
  const clients = Promise.all(Array.from({ length: 8 }, () => exchange(`http://127.0.0.1:${port}/`))).finally(() => {
    isDone = true;
  });
  while (!isDone) {
    await new Promise((resolve) => setImmediate(resolve));
    if (bytesOfTurns[0] !== 0) bytesOfTurns.unshift(0);
  }

  for (const { body } of await clients) expect(body).toHaveLength(chunks * chunkBytes);
  // A turn counted here may contain the end of one chunk and the beginning of the next.
  expect(Math.max(...bytesOfTurns)).toBeLessThanOrEqual(2 * (262_144 + chunkBytes));
});

it('a body that fails half-way ends the connection, so that no client takes a part for the whole', async () => {
  const app = new Koa();
  app.silent = true;
  app.use((ctx) => {
    function* failing() {
      yield Buffer.alloc(chunkBytes);
      throw new Error('the rest is lost');
    }
    largeBodySender.send(ctx, failing(), 2 * chunkBytes);
  });
  const port = await listenLocally(createServer(app.callback()));
  await expect(exchange(`http://127.0.0.1:${port}/`)).rejects.toThrow(/cut off|aborted|ECONNRESET/);
});
