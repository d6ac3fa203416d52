import { cpuMicrosOf } from '../reads/processes.ts';
import {
  type BenchOrganization,
  commitAll,
  commitPaced,
  type DeliveryTarget,
  prepareChanges,
  settles,
} from './changes.ts';
import type { BareWorkflow } from './programs/bare.ts';
import type { BenchStack } from './stack.ts';

/**
 * One turn of a side. Processor time is µs for each delivery; null where the system does not tell.
 */
export interface Turn {
  deliveriesPerSecond: number;
  workerMicros: number | null;
  postgresMicros: number | null;
  temporalMicros: number | null;
  /**
   * Of the starts, how many came back with their first task; null for ours, which does not tell.
   */
  eagerShare: number | null;
  /**
   * Deliveries that took more than one attempt: Temporal loses a task now and then on a machine
   * that is too busy, which costs either side its 20 s.
   */
  retried: number;
}

const settleDeadlineMs = 120_000;
/** What a turn leaves behind (workflows that complete, after their posts) is not the next one's. */
const restMs = 700;

/**
 * Deliveries of org-api: from the first change to the last settled delivery, by the database's own
 * clock. Each is a grant that starts in a transaction of its own.
 *
 * @throws Error unless all were delivered.
 */
export async function measureOurs(
  stack: BenchStack,
  organizations: readonly BenchOrganization[],
  deliveries: number,
): Promise<Turn> {
  const { pool } = stack.owner;
  const changes = await prepareChanges(pool, organizations, deliveries);
  let retried = 0;
  const mark = await pool.query<{ now: string }>('select clock_timestamp()::text as now');
  const turn = await withProcessorTime(stack, stack.pids.worker, deliveries, async () => {
    await commitAll(pool, changes);
    await settles(pool, organizations, settleDeadlineMs);
    const { rows } = await pool.query<{ delivered: number; retried: number; seconds: number }>(
      `select count(*) filter (where state = 'delivered')::int as delivered, count(*) filter (where attempts >
        1)::int as retried,
         extract(epoch from max(settled_at) - min(created_at))::float8 as seconds
       from delivery where created_at >= $1::timestamptz`,
      [mark.rows[0]?.now],
    );
    const { delivered = 0, seconds = Number.NaN } = rows[0] ?? {};
    if (delivered !== deliveries) throw new Error(`${delivered} of ${deliveries} were delivered`);
    retried = rows[0]?.retried ?? 0;
    return seconds;
  });
  await stack.receiver.takePosts();
  return { ...turn, retried };
}

/** Deliveries of a bare side: from the first start to the last post answered. */
export async function measureBare(
  stack: BenchStack,
  workflow: BareWorkflow,
  deliveries: number,
  underWay: number,
): Promise<Turn> {
  let [eagerShare, retried] = [0, 0];
  const turn = await withProcessorTime(stack, stack.bare.pid, deliveries, async () => {
    const run = await stack.bare.run({ workflow, deliveries, underWay });
    [eagerShare, retried] = [run.eager / deliveries, run.retried];
    return run.ms / 1000;
  });
  await stack.receiver.takePosts();
  return { ...turn, eagerShare, retried };
}

async function withProcessorTime(
  { pids }: BenchStack,
  workerPid: number,
  deliveries: number,
  work: () => Promise<number>,
): Promise<Turn> {
  const read = () => [workerPid, pids.postgres, pids.temporal].map(cpuMicrosOf);
  const before = read();
  const seconds = await work();
  await new Promise((resolve) => setTimeout(resolve, restMs));
  const [workerMicros = null, postgresMicros = null, temporalMicros = null] = read().map((to, index) => {
    const from = before[index] ?? null;
    return from === null || to === null ? null : (to - from) / deliveries;
  });
  return {
    deliveriesPerSecond: deliveries / seconds,
    workerMicros,
    postgresMicros,
    temporalMicros,
    eagerShare: null,
    retried: 0,
  };
}

/**
 * How long each of `count` events took from its commit to the receiver's first byte, in
 * milliseconds, at a steady pace. @throws Error when one did not arrive.
 */
export async function measureLatency(
  stack: DeliveryTarget,
  organizations: readonly BenchOrganization[],
  count: number,
  perSecond: number,
): Promise<number[]> {
  const { pool } = stack.owner;
  const changes = await prepareChanges(pool, organizations, count);
  await stack.receiver.takePosts();
  const committedAtMs = await commitPaced(pool, changes, perSecond);
  await settles(pool, organizations, settleDeadlineMs);
  const posts = await stack.receiver.takePosts();
  const { rows } = await pool.query<{ eventId: string; grantId: string }>(
    `select e.id as "eventId", e.body::json -> 'data' ->> 'grantId' as "grantId" from event e
      where e.id = any ($1::uuid[])`,
    [posts.map(({ eventId }) => eventId)],
  );
  const grantOf = new Map(rows.map(({ eventId, grantId }) => [eventId, grantId]));
  const firstByteAtMs = new Map<string, number>();
  for (const { eventId, atMs } of posts) {
    const grantId = grantOf.get(eventId) ?? '';
    if (!firstByteAtMs.has(grantId)) firstByteAtMs.set(grantId, atMs);
  }
  return changes.map(({ grantId }) => {
    const [committed, arrived] = [committedAtMs.get(grantId), firstByteAtMs.get(grantId)];
    if (committed === undefined || arrived === undefined) throw new Error('an event did not reach the receiver');
    return arrived - committed;
  });
}

/** The same of a bare side: from asking for the start to the receiver's first byte. */
export async function measureBareLatency(
  stack: BenchStack,
  workflow: BareWorkflow,
  count: number,
  perSecond: number,
): Promise<number[]> {
  await stack.receiver.takePosts();
  const { startedAtMs } = await stack.bare.run({ workflow, deliveries: count, perSecond });
  const arrived = new Map((await stack.receiver.takePosts()).map(({ eventId, atMs }) => [eventId, atMs]));
  return startedAtMs.map(([eventId, atMs]) => (arrived.get(eventId) ?? Number.NaN) - atMs);
}

/** The value that a share of all does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  return shareOfSorted(Float64Array.from(values).sort(), share);
}

/** The same of values in ascending order. */
export function shareOfSorted(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
