import { setTimeout as wait } from 'node:timers/promises';
import { findCpuMicros } from '../reads/processes.ts';
import {
  type BenchOrganization,
  commitAll,
  commitPaced,
  type DeliveryTarget,
  judgeDelivered,
  prepareChanges,
  readClock,
  settles,
} from './changes.ts';
import type { BareWorkflow } from './programs/bare.ts';
import type { BenchStack } from './stack.ts';

/**
 * One turn of a side. Processor time is in µs per delivery; null where the system does not report
 * it.
 */
export interface Turn {
  deliveriesPerSecond: number;
  workerMicros: number | null;
  postgresMicros: number | null;
  temporalMicros: number | null;
  /**
   * Number of starts that returned with their first task; null for org-api, which does not report
   * it.
   */
  eagerShare: number | null;
  /**
   * Deliveries with more than one attempt: on an overloaded machine Temporal sometimes loses a
   * task, which costs either side 20 s.
   */
  retried: number;
}

const settleDeadlineMs = 120_000;
/**
 * Lets a turn's remaining work (workflows that complete after their posts) end before the next
 * turn.
 */
const restMs = 700;

/**
 * Measures deliveries of org-api from the first change to the last settled delivery, by the
 * database's clock. Each is a grant that starts in a separate transaction.
 * @throws Error unless all were delivered.
 */
export async function measureOrgApi(
  stack: BenchStack,
  organizations: readonly BenchOrganization[],
  deliveries: number,
): Promise<Turn> {
  const { pool } = stack.owner;
  const changes = await prepareChanges(pool, organizations, deliveries);
  let retried = 0;
  const since = await readClock(pool);
  const turn = await withProcessorTime(stack, stack.pids.worker, deliveries, async () => {
    await commitAll(pool, changes);
    await settles(pool, organizations, settleDeadlineMs);
    const judged = await judgeDelivered(pool, since, deliveries);
    retried = judged.retried;
    return judged.seconds;
  });
  await stack.receiver.takePosts();
  return { ...turn, retried };
}

/** Measures deliveries of a bare side from the first start to the last answered post. */
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

/** Measures `work`, which returns how many seconds its deliveries took. */
export async function withProcessorTime(
  { pids }: BenchStack,
  workerPid: number,
  deliveries: number,
  work: () => Promise<number>,
): Promise<Turn> {
  const read = () => [workerPid, pids.postgres, pids.temporal].map(findCpuMicros);
  const before = read();
  const seconds = await work();
  await wait(restMs);
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
 * Returns how long each of `count` events took from its commit to the receiver's first byte (ms),
 * at a steady pace. @throws Error when one did not arrive.
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
  const grantByEvent = new Map(rows.map(({ eventId, grantId }) => [eventId, grantId]));
  const firstByteAtMs = new Map<string, number>();
  for (const { eventId, atMs } of posts) {
    const grantId = grantByEvent.get(eventId) ?? '';
    if (!firstByteAtMs.has(grantId)) firstByteAtMs.set(grantId, atMs);
  }
  return changes.map(({ grantId }) => {
    const [committed, arrived] = [committedAtMs.get(grantId), firstByteAtMs.get(grantId)];
    if (committed === undefined || arrived === undefined) throw new Error('an event did not reach the receiver');
    return arrived - committed;
  });
}

/** The same for a bare side: from the request for the start to the receiver's first byte. */
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

/** Returns the quantile of values for a share. */
export function percentile(values: readonly number[], share: number): number {
  return shareOfSorted(Float64Array.from(values).sort(), share);
}

/** The same for values in ascending order. */
export function shareOfSorted(sorted: Float64Array, share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
