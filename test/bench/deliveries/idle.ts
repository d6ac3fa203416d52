import { setTimeout as wait } from 'node:timers/promises';
import { findCpuMicros } from '../reads/processes.ts';
import type { Result } from './results.ts';
import type { BenchStack } from './stack.ts';

const seconds = 20;

/**
 * Measures the processor time of all PostgreSQL processes while no delivery is due. It includes the
 * worker's other loops (maintenance, ledger, metrics) and PostgreSQL's background work.
 */
export async function measureIdle(stack: BenchStack, report: (line: string) => void): Promise<Result> {
  await wait(3_000); // earlier work has ended
  const { pool } = stack.owner;
  const calls = async () =>
    (
      await pool.query<{ calls: number }>(
        `select sum(xact_commit)::float8 as calls from pg_stat_database where datname = current_database()`,
      )
    ).rows[0]?.calls ?? 0;
  const read = () => [stack.pids.postgres, stack.pids.worker].map((pid) => findCpuMicros(pid) ?? Number.NaN);
  const [before, callsBefore] = [read(), await calls()];
  await wait(seconds * 1_000);
  const share = read().map((micros, nth) => (micros - (before[nth] ?? 0)) / (seconds * 1e6));
  const perSecond = ((await calls()) - callsBefore) / seconds;
  const [postgres = Number.NaN, worker = Number.NaN] = share;
  const percent = (part: number) => `${(part * 100).toFixed(1)} %`;
  report(`idle: PostgreSQL ${percent(postgres)} of a core`);
  return {
    title: 'an idle worker',
    headline: `PostgreSQL ${percent(postgres)} of a core; aim 2 % at most`,
    details: [`the worker itself ${percent(worker)}; ${perSecond.toFixed(0)} transactions a second; over ${seconds} s`],
  };
}
