import type { Pool } from 'pg';
import { claimSweepSql, type RunningRound, recordSweepSql } from '#domain/db/statements/orphaned-workflows.ts';
import { cancelOrphanedWorkflows } from './cancel-orphaned-workflows.ts';

type Running = RunningRound & { startedAtMs: number };

/**
 * Some 20 pages of Temporal's, which are seconds. With more that run the next sweep goes on, so
 * that each costs the same however many wait.
 */
const atMostByDefault = 10_000;

/**
 * Ends orphaned workflows among at most `atMost` that run, if no worker has done so within
 * `everyMs`. Returns how many it cancelled; 0 also when it was not due.
 *
 * The repairs of the reconciler do not cover this: they begin at deliveries that are due. An
 * orphaned workflow has none, and would wait for its next attempt for up to a day, or for ever if it
 * makes no progress.
 *
 * Listing what runs is a load on Temporal's visibility store, so one worker does it for all. The
 * row that says so is a lease and no lock: it needs no connection of its own, and when its
 * holder dies the next interval goes on where the last sweep ended.
 */
export async function sweepRunning(options: {
  pool: Pool;
  /** Rounds whose workflow runs and began before this moment, the newest first. */
  listRunning: (before: Date) => AsyncIterable<Running>;
  cancel: (round: RunningRound, nowMs: number) => Promise<void>;
  /** How often; workflows that run for less are left out, as they may just end. */
  everyMs: number;
  /** Ends it between two pages. */
  signal: AbortSignal;
  atMost?: number;
}): Promise<number> {
  const { pool, listRunning, cancel, everyMs, signal, atMost = atMostByDefault } = options;
  const claimed = await pool.query<{ placeMs: number | null }>(claimSweepSql, [everyMs / 1000]);
  const [sweep] = claimed.rows;
  if (sweep === undefined) return 0;
  const before = new Date(Math.min(Date.now() - everyMs, sweep.placeMs ?? Number.POSITIVE_INFINITY));
  let left = atMost;
  let placeMs: number | null = null;
  const cancelled = await cancelOrphanedWorkflows({ pool, running: part(), cancel, signal });
  if (!signal.aborted) await pool.query(recordSweepSql, [placeMs]);
  return cancelled;

  /**
   * The next so many. The last one's millisecond is looked at again: others may have begun in it.
   */
  async function* part(): AsyncGenerator<Running> {
    for await (const round of listRunning(before)) {
      yield round;
      left -= 1;
      if (left === 0) {
        placeMs = Math.floor(round.startedAtMs) + 1;
        return;
      }
    }
  }
}
