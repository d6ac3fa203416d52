import type { Pool } from 'pg';
import { closeAbandonedAttemptsSql } from '#domain/db/statements/attempts.ts';
import { listOverdueSql, replaceRoundSql } from '#domain/db/statements/claim-deliveries.ts';
import type { LostAttempt } from '#workflows/deliver-event/activities.ts';
import type { DeliveryKey } from '#workflows/deliver-event/types.ts';
import type { WorkflowStatus } from './progress.ts';

/**
 * Longer than an attempt can take with its own reads and writes (20 s), so nothing alive is closed.
 */
const abandonedAfterSeconds = 45;
/** Temporal is asked about this many at once. */
const askedAtOnce = 20;

type Round = DeliveryKey & { round: number };
type Overdue = Round & { dueAt: string; dueAtMs: number; nowMs: number };
const nil = '00000000-0000-0000-0000-000000000000';
const beforeAll = { organizationId: nil, webhookId: nil, dueAt: '-infinity', eventId: nil };

export interface ReconcilerOptions {
  pool: Pool;
  /** What the round's workflow is at; rejects when Temporal does not answer, which is no answer. */
  getStatus: (delivery: Round, nowMs: number) => Promise<WorkflowStatus>;
  /** Ends the wait of a round if it began before this Unix time in ms. */
  retryNow: (delivery: Round, waitingSinceBeforeMs: number) => Promise<void>;
  /** Ends a workflow that makes no progress. */
  terminate: (delivery: Round) => Promise<void>;
  overdueMs: number;
  /** Ends it between two pages. */
  signal: AbortSignal;
  /** Called for each attempt that was closed because its process is gone. */
  onLost?: (lost: LostAttempt) => void;
  pageSize?: number;
}

/** How many deliveries were repaired, and how. */
export interface Reconciled {
  /** Without a workflow: given a new round. */
  begun: number;
  /** With a workflow that waits although they are due: asked to retry now. */
  retriesRequested: number;
  /**
   * With a workflow whose workflow task fails each time: given a new round, and the workflow is
   * terminated.
   */
  failing: number;
  /** The same for a workflow with a task that no worker will get. */
  stranded: number;
}

/**
 * Repairs every waiting delivery that is overdue. One without a workflow gets a new round, so that
 * a lost Temporal store, a terminated workflow or an internal error loses no event. One whose
 * workflow waits on a timer is asked to retry now, which repairs a lost signal or timer. PostgreSQL
 * decides which deliveries are open, Temporal which workflows run.
 *
 * One that is under way is left alone (an attempt in a full queue is late, and no signal makes it
 * quicker). Between the look and the signal the delivery may have been attempted and wait for its
 * next time; so the signal means only a wait that is as old as the lateness that was seen.
 *
 * One that makes no progress is replaced: first its delivery is put into a new round, which an
 * unexpired attempt keeps from happening, then its workflow is terminated. A process that dies in
 * between leaves a workflow whose attempts are admitted no more, and which the sweep of orphaned
 * workflows ends.
 *
 * It reads all that is overdue, page by page: deliveries that are late with a workflow of theirs (a
 * full queue) must not hide those without.
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
      // Its wait began before it was due (or a moment after that was recorded); the wait after an
      // attempt made since begins later by more than the lateness.
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
