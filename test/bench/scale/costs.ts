import type { Client } from 'pg';
import type { BenchOrganization } from '../deliveries/changes.ts';
import { commitPaced, judgeDelivered, prepareChanges, readClock, settles } from '../deliveries/changes.ts';
import { cpuMicrosOf } from '../reads/processes.ts';
import { readWrites, type Writes } from '../servers.ts';
import type { ScaleStack } from './stack.ts';

/** The cost of a delivery: each value divided by the number of deliveries. */
export interface Costs {
  workers: number;
  deliveries: number;
  deliveriesPerSecond: number;
  /** Deliveries with more than one attempt. */
  retried: number;
  /** Processor time in µs, by group of processes. */
  micros: Map<string, number>;
  /** Requests to nodes of a role, by `role operation`. */
  requests: Map<string, number>;
  /** Requests of a role to PostgreSQL, by `role operation`. */
  persistence: Map<string, number>;
  /** Counters of each PostgreSQL server. */
  writes: Map<string, Writes>;
  /** Of the closed workflows. */
  historyEvents: number;
  historyBytes: number;
}

const settleDeadlineMs = 300_000;
/**
 * PostgreSQL's sessions publish their counters at most once a second, and workflows end after their
 * posts.
 */
const restMs = 3_000;

/**
 * Commits events at a steady rate, waits until every delivery is settled, and divides what all
 * processes used by their number. An idle stretch of `idleSeconds` before it is measured in the
 * same way and subtracted for its share of time, because polls and timers also cost time without
 * deliveries.
 * @throws Error unless all were delivered.
 */
export async function measureCosts(
  stack: ScaleStack,
  organizations: readonly BenchOrganization[],
  load: { deliveries: number; perSecond: number; idleSeconds: number },
): Promise<Costs> {
  const { pool } = stack.owner;
  const { deliveries, perSecond, idleSeconds } = load;
  const changes = await prepareChanges(pool, organizations, deliveries);
  await rest(restMs);
  const idle = await measured(stack, () => rest(idleSeconds * 1_000));
  const since = await readClock(pool);
  const loaded = await measured(stack, async () => {
    await commitPaced(pool, changes, perSecond);
    await settles(pool, organizations, settleDeadlineMs);
    await rest(restMs);
  });
  await stack.receiver.takePosts();
  const { retried, seconds } = await judgeDelivered(pool, since, deliveries);
  const { rows: histories } = await stack.visibility.query<{ events: number; bytes: number }>(
    `select avg(history_length)::float8 as events, avg(history_size_bytes)::float8 as bytes
     from executions_visibility where close_time is not null and start_time >= $1::timestamptz`,
    [since],
  );
  const share = loaded.seconds / idle.seconds;
  const each = (values: Map<string, number>, idleValues: Map<string, number>) =>
    new Map([...values].map(([what, value]) => [what, (value - (idleValues.get(what) ?? 0) * share) / deliveries]));
  const writes = [...loaded.writes].map(([name, value]): [string, Writes] => {
    const without = idle.writes.get(name) as Writes;
    return [name, combineWrites(value, without, (used, unused) => (used - unused * share) / deliveries)];
  });
  return {
    workers: stack.workerPids().length,
    deliveries,
    deliveriesPerSecond: deliveries / seconds,
    retried,
    micros: each(loaded.micros, idle.micros),
    requests: each(loaded.requests, idle.requests),
    persistence: each(loaded.persistence, idle.persistence),
    writes: new Map(writes),
    historyEvents: histories[0]?.events ?? Number.NaN,
    historyBytes: histories[0]?.bytes ?? Number.NaN,
  };
}

interface Usage {
  seconds: number;
  micros: Map<string, number>;
  requests: Map<string, number>;
  persistence: Map<string, number>;
  writes: Map<string, Writes>;
}

async function measured(stack: ScaleStack, work: () => Promise<void>): Promise<Usage> {
  const startedAt = performance.now();
  const before = await readUsage(stack);
  await work();
  const after = await readUsage(stack);
  const writes = [...after.writes].map(([name, to]): [string, Writes] => {
    const from = before.writes.get(name) as Writes;
    return [name, combineWrites(to, from, (end, start) => end - start)];
  });
  return {
    seconds: (performance.now() - startedAt) / 1_000,
    micros: difference(before.micros, after.micros),
    requests: difference(before.requests, after.requests),
    persistence: difference(before.persistence, after.persistence),
    writes: new Map(writes),
  };
}

async function readUsage(stack: ScaleStack): Promise<Omit<Usage, 'seconds'>> {
  const micros = new Map<string, number>();
  const requests = new Map<string, number>();
  const persistence = new Map<string, number>();
  const add = (sums: Map<string, number>, what: string, value: number) => sums.set(what, (sums.get(what) ?? 0) + value);
  for (const pid of stack.workerPids()) add(micros, 'workers of org-api', cpuMicrosOf(pid) ?? Number.NaN);
  for (const { name, pid } of stack.postgres) add(micros, name, cpuMicrosOf(pid) ?? Number.NaN);
  for (const node of stack.temporal.nodes) {
    add(micros, `Temporal ${node.role}`, cpuMicrosOf(node.pid()) ?? Number.NaN);
    for (const [operation, count] of await node.readCounter('service_requests'))
      add(requests, `${node.role} ${operation}`, count);
    for (const [operation, count] of await node.readCounter('persistence_requests'))
      add(persistence, `${node.role} ${operation}`, count);
  }
  const writes = new Map<string, Writes>();
  for (const { name, admin } of stack.postgres) writes.set(name, await readWrites(admin));
  writes.set('of which visibility', await readDatabaseWrites(stack.visibility));
  return { micros, requests, persistence, writes };
}

/**
 * Counters of what the sessions of the client's database have written. Counts of ended sessions are
 * lost; Temporal keeps its sessions open.
 */
async function readDatabaseWrites(client: Client): Promise<Writes> {
  const { rows } = await client.query<Writes>(
    `select coalesce(sum(wal.wal_bytes), 0)::float8 as "walBytes", coalesce(sum(wal.wal_fpi), 0)::float8 as "walPages",
       max(d.xact_commit)::float8 as transactions,
       max(d.tup_inserted + d.tup_updated + d.tup_deleted)::float8 as rows
     from pg_stat_database d
     join pg_stat_activity a using (datname)
     cross join pg_stat_get_backend_wal(a.pid) as wal
     where d.datname = current_database()`,
  );
  return rows[0] as Writes;
}

function combineWrites(one: Writes, other: Writes, combine: (one: number, other: number) => number): Writes {
  return {
    walBytes: combine(one.walBytes, other.walBytes),
    walPages: combine(one.walPages, other.walPages),
    transactions: combine(one.transactions, other.transactions),
    rows: combine(one.rows, other.rows),
  };
}

function difference(before: Map<string, number>, after: Map<string, number>): Map<string, number> {
  return new Map([...after].map(([what, value]) => [what, value - (before.get(what) ?? 0)]));
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
