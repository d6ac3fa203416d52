import type { Pool } from 'pg';
import { closeAbandonedAttemptsSql } from '#domain/db/statements/attempts.ts';
import { listOverdueSql, replaceRoundSql } from '#domain/db/statements/claim-deliveries.ts';
import type { LostAttempt } from '#workflows/deliver-event/activities.ts';
import type { DeliveryRound } from '#workflows/deliver-event/types.ts';
import type { WorkflowStatus } from './progress.ts';

/** Longer than an attempt can take (20 s), so no live one is closed. */
const abandonedAfterSeconds = 45;
/** How many requests to Temporal run at once. */
const askedAtOnce = 20;

type Overdue = DeliveryRound & { dueAt: string; dueAtMs: number; nowMs: number };
const nil = '00000000-0000-0000-0000-000000000000';
const beforeAll = { organizationId: nil, webhookId: nil, dueAt: '-infinity', eventId: nil };

interface ReconcilerOptions {
  pool: Pool;
  /** Returns the state of the round's workflow; rejects when Temporal does not answer. */
  getStatus: (delivery: DeliveryRound, nowMs: number) => Promise<WorkflowStatus>;
  /** Ends the wait of a round if it began before this Unix time in ms. */
  retryNow: (delivery: DeliveryRound, waitingSinceBeforeMs: number) => Promise<unknown>;
  /** Terminates a workflow that makes no progress. */
  terminate: (delivery: DeliveryRound) => Promise<unknown>;
  overdueMs: number;
  /** Ends it between two pages. */
  signal: AbortSignal;
  /** Called for each attempt that was closed because its process is gone. */
  onLost?: (lost: LostAttempt) => void;
  pageSize?: number;
}

/** How many deliveries were repaired, and how. */
export interface Reconciled {
  /** Without a workflow: got a new round. */
  begun: number;
  /** Overdue with a workflow that waits: a retry was requested. */
  retriesRequested: number;
  /** With a workflow that fails each time: replaced by a new round. */
  failing: number;
  /** The same for a workflow with a task that no worker will get. */
  stranded: number;
}

/**
 * Repairs every waiting delivery that is overdue. One without a workflow gets a new round, so that
 * a lost Temporal store, a terminated workflow or an internal error loses no event. One whose
 * workflow waits on a timer is asked to retry now, which repairs a lost signal or timer.
 *
 * A delivery in progress is not changed: no signal makes an attempt in a full queue faster. It may
 * be attempted between the check and the signal, which therefore ends only a wait that is as old as
 * the lateness found.
 *
 * A delivery that makes no progress first gets a new round, which an unexpired attempt prevents;
 * then its workflow is terminated. If the process dies in between, the old workflow's attempts are
 * not admitted, and the sweep of orphaned workflows ends it.
 *
 * It reads all overdue deliveries, page by page, so that late ones in a full queue do not hide
 * those without a workflow.
 */
export async function reconcile(options: ReconcilerOptions): Promise<Reconciled> {
  const { pool, getStatus, retryNow, terminate, overdueMs, signal, onLost = () => {}, pageSize = 200 } = options;
  const abandoned = await pool.query<LostAttempt>(closeAbandonedAttemptsSql, [abandonedAfterSeconds]);
  for (const lost of abandoned.rows) onLost(lost);
  const reconciled: Reconciled = { begun: 0, retriesRequested: 0, failing: 0, stranded: 0 };
  let last: Pick<Overdue, keyof typeof beforeAll> | undefined = beforeAll;
  while (last !== undefined && !signal.aborted) {
    const { organizationId, webhookId, dueAt, eventId } = last;
    const values: unknown[] = [overdueMs / 1000, pageSize, organizationId, webhookId, dueAt, eventId];
    const { rows } = await pool.query<Overdue>(listOverdueSql, values);
    for (let from = 0; from < rows.length; from += askedAtOnce) {
      await Promise.all(rows.slice(from, from + askedAtOnce).map(repair));
    }
    last = rows.length === pageSize ? rows.at(-1) : undefined;
  }
  return reconciled;

  async function repair(delivery: Overdue): Promise<void> {
    const { dueAtMs, nowMs } = delivery;
    const status = await getStatus(delivery, nowMs);
    if (status === 'waiting') {
      // Its wait began before it was due, or just after that was recorded. The wait after a later
      // attempt begins later by more than the lateness.
      await retryNow(delivery, dueAtMs + overdueMs / 2);
      reconciled.retriesRequested += 1;
    } else if (status === 'ended') {
      if (await replaceRound(delivery)) reconciled.begun += 1;
    } else if (status !== 'busy' && (await replaceRound(delivery))) {
      reconciled[status] += 1;
      await terminate(delivery);
    }
  }

  async function replaceRound(delivery: Overdue): Promise<boolean> {
    const { organizationId, webhookId, eventId, round, dueAt } = delivery;
    const { rowCount } = await pool.query(replaceRoundSql, [organizationId, webhookId, eventId, round, dueAt]);
    return rowCount === 1;
  }
}
