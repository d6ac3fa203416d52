import type { Pool } from 'pg';
import { claimSweepSql, type RunningRound, recordSweepSql } from '#domain/db/statements/orphaned-workflows.ts';
import { cancelOrphanedWorkflows } from './cancel-orphaned-workflows.ts';

type Running = RunningRound & { startedAtMs: number };

/** About 20 pages of Temporal's list, which take seconds. The next sweep continues there. */
const atMostByDefault = 10_000;

/**
 * Ends orphaned workflows among at most `atMost` running ones, if no worker has done so within
 * `everyMs`. Returns how many it cancelled. The reconciler does not find these: it begins with
 * deliveries that are due, and an orphaned workflow has none.
 *
 * Listing running workflows loads Temporal's visibility store, so one worker does it for all. A row
 * with a lease names it, which needs no separate connection as a lock would. When its holder stops,
 * the next sweep continues where the last one ended.
 */
export async function sweepRunning(options: {
  pool: Pool;
  /** Rounds whose workflow runs and began before this time, newest first. */
  listRunning: (before: Date) => AsyncIterable<Running>;
  cancel: (round: RunningRound, nowMs: number) => Promise<void>;
  /** How often; workflows that run for a shorter time are skipped, as they may be ending. */
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

  /** The next part. It begins with the last one's millisecond, in which others may have begun. */
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
