import type { Pool } from 'pg';
import { listOrphanedWorkflowsSql, type RunningRound } from '#domain/db/statements/orphaned-workflows.ts';

const pageSize = 500;
/** Temporal is told of this many at once. */
const toldAtOnce = 20;

/**
 * Ends the workflows of rounds that nobody owes any more: of a parked or deleted webhook, of a
 * delivery that was settled meanwhile, of a round that another one replaced. They would do no harm,
 * as none of their attempts is admitted, but would wait for theirs for up to a day. The database is
 * settled first and this follows it, so whoever parks or deletes need not reach Temporal. Returns
 * how many it told.
 *
 * The reverse of `reconcile`: it begins at what runs, so it finds what no row points at any more.
 */
export async function cancelOrphanedWorkflows(options: {
  pool: Pool;
  /** Rounds whose workflow runs. */
  running: AsyncIterable<RunningRound>;
  /** `nowMs`: Unix time by PostgreSQL's clock. */
  cancel: (round: RunningRound, nowMs: number) => Promise<void>;
  /** Ends it between two pages. */
  signal: AbortSignal;
}): Promise<number> {
  const { pool, running, cancel, signal } = options;
  let told = 0;
  let page: RunningRound[] = [];
  for await (const round of running) {
    if (signal.aborted) return told;
    page.push(round);
    if (page.length === pageSize) await tell();
  }
  if (page.length > 0) await tell();
  return told;

  async function tell(): Promise<void> {
    const columns = [
      page.map(({ webhookId }) => webhookId),
      page.map(({ eventId }) => eventId),
      page.map(({ round }) => round),
    ];
    page = [];
    const { rows } = await pool.query<RunningRound & { nowMs: number }>(listOrphanedWorkflowsSql, columns);
    for (let from = 0; from < rows.length; from += toldAtOnce) {
      await Promise.all(rows.slice(from, from + toldAtOnce).map(({ nowMs, ...round }) => cancel(round, nowMs)));
    }
    told += rows.length;
  }
}
