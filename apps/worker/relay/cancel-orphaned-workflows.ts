import type { Pool } from 'pg';
import { listOrphanedWorkflowsSql, type RunningRound } from '#domain/db/statements/orphaned-workflows.ts';

const pageSize = 500;
/** How many are cancelled at once. */
const cancelledAtOnce = 20;

/**
 * Cancels orphaned workflows: of a parked or deleted webhook, of a settled delivery, of a replaced
 * round. None of their attempts would be admitted, but they would wait up to a day. The database
 * changes first, so that an operation that parks or deletes need not reach Temporal. Returns how
 * many it cancelled.
 *
 * Unlike `reconcile` it begins with running workflows, so it finds those that no row refers to.
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
  let cancelled = 0;
  let page: RunningRound[] = [];
  for await (const round of running) {
    if (signal.aborted) return cancelled;
    page.push(round);
    if (page.length === pageSize) await cancelPage();
  }
  if (page.length > 0) await cancelPage();
  return cancelled;

  async function cancelPage(): Promise<void> {
    const columns = [
      page.map(({ webhookId }) => webhookId),
      page.map(({ eventId }) => eventId),
      page.map(({ round }) => round),
    ];
    page = [];
    const { rows } = await pool.query<RunningRound & { nowMs: number }>(listOrphanedWorkflowsSql, columns);
    for (let from = 0; from < rows.length; from += cancelledAtOnce) {
      await Promise.all(rows.slice(from, from + cancelledAtOnce).map(({ nowMs, ...round }) => cancel(round, nowMs)));
    }
    cancelled += rows.length;
  }
}
