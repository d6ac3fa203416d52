/**
 * A receiver on the TypeScript kit, as a process: `DATABASE` is a URL of PostgreSQL or MySQL, or a file of SQLite;
 * `SECRET` is its only secret. It prints its port, ends with its standard input, and tells its state as certify asks
 * for it. An effect fails with the probability `FAILING`; `MUTATION` takes one of the kit's guarantees away. The header
 * `test-now` replaces the clock, `/gaps` lists the gaps, and DELETE forgets.
 */
import { createServer, type IncomingMessage } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { Pool } from 'pg';
import {
  type Database,
  forget,
  gapsSql,
  InvalidDeliveryError,
  mysql,
  type OrgEvent,
  postgres,
  receive,
  sqlite,
  type Transaction,
} from '../../../apps/clients/receiver-typescript/src/index.ts';
import { mutate } from './mutations.ts';
import { loadMysql } from './mysql.ts';

const { DATABASE = '', SECRET = '', FAILING = '0', MUTATION = '' } = process.env;

async function open(): Promise<{ database: Database; query: (sql: string) => Promise<Record<string, unknown>[]> }> {
  if (DATABASE.startsWith('mysql')) {
    const pool = (await loadMysql())(DATABASE);
    return { database: mysql(pool), query: async (sql) => (await pool.query(sql))[0] as Record<string, unknown>[] };
  }
  if (DATABASE.startsWith('postgres')) {
    const pool = new Pool({ connectionString: DATABASE, max: 4 });
    pool.on('error', () => {});
    return { database: postgres(pool), query: async (sql) => (await pool.query(sql)).rows };
  }
  const file = new DatabaseSync(DATABASE, { timeout: 20_000 });
  return { database: sqlite(file), query: async (sql) => file.prepare(sql).all() };
}

const { database, query } = await open();
const upsert = DATABASE.startsWith('mysql')
  ? 'on duplicate key update status = values(status)'
  : 'on conflict (subject) do update set status = excluded.status';

async function apply(event: OrgEvent, transaction: Transaction): Promise<void> {
  const failIfUnlucky = () => {
    if (Math.random() < Number(FAILING) / 2) throw new Error('the effect failed');
  };
  failIfUnlucky();
  await transaction.execute('insert into effect (event_id, is_late) values (?, 0)', [event.id]);
  const { seatId, grantId = '' } = event.data as { seatId?: string; grantId?: string };
  const status = event.type.endsWith('.ended') ? 'ended' : 'active';
  await transaction.execute(`insert into state (subject, status) values (?, ?) ${upsert}`, [seatId ?? grantId, status]);
  failIfUnlucky();
}

async function respond(request: IncomingMessage): Promise<number> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts);
  try {
    await receive((name) => request.headers[name]?.toString(), body, {
      secrets: () => [SECRET],
      database: mutate(database, MUTATION, body),
      apply,
      now: () => readNow(request),
      async late(event, transaction) {
        await transaction.execute('insert into effect (event_id, is_late) values (?, 1)', [event.id]);
      },
    });
    return 204;
  } catch (error) {
    return error instanceof InvalidDeliveryError ? 400 : 503;
  }
}

const readNow = ({ headers }: IncomingMessage) => Number(headers['test-now'] ?? Date.now());

async function readState() {
  const effects = await query('select event_id, count(*) as times from effect where is_late = 0 group by event_id');
  const states = Object.fromEntries(
    (await query('select subject, status from state')).map((r) => [r.subject, r.status]),
  );
  const events = Object.fromEntries(effects.map((row) => [row.event_id, Number(row.times)]));
  return { events, grants: states, seats: states };
}

const server = createServer(async (request, response) => {
  if (request.url === '/gaps') return void response.end(JSON.stringify(await query(gapsSql)));
  if (request.method === 'DELETE') {
    await forget(database, readNow(request));
    return void response.writeHead(204).end();
  }
  if (request.method === 'GET') return void response.end(JSON.stringify(await readState()));
  response.writeHead(await respond(request)).end();
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  console.log(typeof address === 'object' ? address?.port : '');
});
process.stdin.on('end', () => process.exit()).resume();
