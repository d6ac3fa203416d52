import { connect, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';
import type { Database } from '#domain/db/database.ts';
import type { MadeMember } from '#test/make.ts';

/** Number of grants in a roster of about 4 MB. */
const manyGrants = 20_000;

/** Grants of one statement, which a busy machine inserts within the statement's time limit. */
const grantsAtOnce = 10_000;

/**
 * Adds grants to an organization, each with a separate family. Without triggers, which would take
 * most of the time: no read depends on the events that they store.
 *
 * @param suffix - the end of each family's name.
 */
export async function giveGrants(
  owner: Database,
  { orgId, userId }: MadeMember,
  grants = manyGrants,
  suffix = '',
): Promise<void> {
  const client = await owner.pool.connect();
  await client.query('set session_replication_role = replica');
  for (let first = 1; first <= grants; first += grantsAtOnce)
    await client.query(
      `with made as (
         insert into family (organization_id, id, name)
         select $1, gen_random_uuid(), 'The family of number ' || n || $5
         from generate_series($3::int, $4::int) n returning id)
       insert into client_grant (organization_id, id, kind, professional_id, family_id, since, status)
       select $1, gen_random_uuid(), 'attorney', $2, id, now() - interval '1 day', 'active' from made`,
      [orgId, userId, first, Math.min(grants, first + grantsAtOnce - 1), suffix],
    );
  await client.query('reset session_replication_role; analyze');
  client.release();
}

/** A client that sends requests and controls how fast it reads the responses. */
export interface Reader {
  socket: Socket;
  /** Number of bytes read so far. */
  readonly received: number;
  /** The status of the response; null until it was read. */
  readonly status: number | null;
  readonly isClosed: boolean;
}

export interface ReaderOptions {
  path: string;
  key?: string | undefined;
  headers?: Record<string, string>;
  /** Bytes to read per second: 0 reads none, undefined reads everything. */
  bytesPerSecond?: number;
  /** Number of requests to send at once on the connection. */
  times?: number;
}

/**
 * Connects, sends the requests and reads as configured. The connection is destroyed when the test
 * ends.
 */
export async function openReader(url: string, options: ReaderOptions): Promise<Reader> {
  const { path, key, headers = {}, bytesPerSecond, times = 1 } = options;
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  const reader = { socket, received: 0, status: null as number | null, isClosed: false };
  const count = (bytes: Buffer) => {
    reader.status ??= Number(/^HTTP\/1\.1 (\d{3})/.exec(bytes.toString('latin1'))?.[1] ?? 0);
    reader.received += bytes.length;
  };
  socket.on('error', () => {});
  socket.on('close', () => {
    reader.isClosed = true;
  });
  onTestFinished(() => void socket.destroy());
  await new Promise<void>((resolve) => socket.once('connect', resolve).once('close', resolve));
  const all = { Host: 'api', ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }), ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`.repeat(times));
  if (bytesPerSecond === undefined) socket.on('data', count);
  else if (bytesPerSecond > 0) trickle(socket, bytesPerSecond, count);
  return reader;
}

function trickle(socket: Socket, bytesPerSecond: number, count: (bytes: Buffer) => void): void {
  socket.pause();
  socket.on('readable', () => {});
  const timer = setInterval(() => {
    let wanted = bytesPerSecond / 10;
    while (wanted > 0) {
      const bytes: Buffer | null = socket.read(Math.min(wanted, socket.readableLength)) ?? null;
      if (bytes === null || bytes.length === 0) break;
      wanted -= bytes.length;
      count(bytes);
    }
  }, 100);
  socket.on('close', () => clearInterval(timer));
}
