import type { BenchOrganization } from '../deliveries/changes.ts';
import { measureLatency, percentile } from '../deliveries/measures.ts';
import type { ScaleStack } from './stack.ts';

/** Effects of a killed node on deliveries. */
export interface Outage {
  events: number;
  /** Milliseconds from commit to the first byte, of events before the kill. */
  beforeMs: { p50: number; p99: number };
  /** The maximum of all events. */
  longestMs: number;
  /** Events that took more than three times the p99 before the kill, and the seconds they span. */
  delayed: number;
  delayedSeconds: number;
  /** Deliveries with more than one attempt. */
  retried: number;
}

/**
 * Commits events at a steady rate, kills a history node with SIGKILL after a third of the time and
 * restarts it after two thirds.
 * @throws Error when an event does not arrive.
 */
export async function killHistoryNode(
  stack: ScaleStack,
  organizations: readonly BenchOrganization[],
  { perSecond, seconds }: { perSecond: number; seconds: number },
  report: (line: string) => void,
): Promise<Outage> {
  const node = stack.temporal.nodes.findLast(({ role }) => role === 'history');
  if (node === undefined) throw new Error('the cluster has no history node');
  const { pool } = stack.owner;
  const { rows: marks } = await pool.query<{ now: string }>('select clock_timestamp()::text as now');
  const killAtSeconds = seconds / 3;
  const outage = (async () => {
    await rest(killAtSeconds);
    await node.kill();
    report(`${node.name} is killed`);
    await rest(killAtSeconds);
    node.restart();
    report(`${node.name} is started again`);
  })();
  const [latencies] = await Promise.all([measureLatency(stack, organizations, perSecond * seconds, perSecond), outage]);
  const before = latencies.slice(0, Math.floor(perSecond * (killAtSeconds - 1)));
  const p99 = percentile(before, 0.99);
  const delayed = latencies.map((ms, nth) => (ms > 3 * p99 ? nth : -1)).filter((nth) => nth >= before.length);
  const { rows } = await pool.query<{ retried: number }>(
    `select count(*)::int as retried from delivery where created_at >= $1::timestamptz and attempts > 1`,
    [marks[0]?.now],
  );
  return {
    events: latencies.length,
    beforeMs: { p50: percentile(before, 0.5), p99 },
    longestMs: Math.max(...latencies),
    delayed: delayed.length,
    delayedSeconds: delayed.length === 0 ? 0 : ((delayed.at(-1) ?? 0) - (delayed[0] ?? 0)) / perSecond,
    retried: rows[0]?.retried ?? 0,
  };
}

function rest(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
}
