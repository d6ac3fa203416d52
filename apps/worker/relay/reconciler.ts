import type { Pool } from 'pg';
import { closeAbandonedAttemptsSql } from '#domain/db/queries/attempts.ts';
import { beginRoundSql, listOverdueSql } from '#domain/db/queries/claim-deliveries.ts';
import type { DeliveryKey } from '#workflows/deliver-event/types.ts';

/** Longer than an attempt can take with its own reads and writes (20 s), so nothing alive is closed. */
const abandonedAfterSeconds = 45;
/** Temporal is asked about this many at once. */
const askedAtOnce = 20;

type Overdue = DeliveryKey & { round: number; dueAt: string };
const nil = '00000000-0000-0000-0000-000000000000';
const beforeAll = { dueAt: '-infinity', eventId: nil, webhookId: nil };

export interface ReconcilerOptions {
  pool: Pool;
  /** Whether Temporal runs this workflow; rejects when Temporal does not answer, which is no answer. */
  isRunning: (delivery: DeliveryKey & { round: number }) => Promise<boolean>;
  overdueMs: number;
  /** Ends it between two pages. */
  signal: AbortSignal;
  pageSize?: number;
}

/**
 * Gives every waiting delivery that is overdue and has no workflow a new round, so that a lost Temporal store, a terminated workflow or a fault of
 * ours loses no event. Returns how many it mended. It trusts PostgreSQL about what is owed and Temporal about what runs.
 *
 * It reads all that is overdue, page by page: deliveries that are late with a workflow of theirs (a full queue) must not hide those without.
 */
export async function reconcile(options: ReconcilerOptions): Promise<number> {
  const { pool, isRunning, overdueMs, signal, pageSize = 200 } = options;
  await pool.query(closeAbandonedAttemptsSql, [abandonedAfterSeconds]);
  let mended = 0;
  let last: Pick<Overdue, 'dueAt' | 'eventId' | 'webhookId'> | undefined = beforeAll;
  while (last !== undefined && !signal.aborted) {
    const values: unknown[] = [overdueMs / 1000, pageSize, last.dueAt, last.eventId, last.webhookId];
    const { rows } = await pool.query<Overdue>(listOverdueSql, values);
    for (let from = 0; from < rows.length; from += askedAtOnce) {
      const results = await Promise.all(rows.slice(from, from + askedAtOnce).map(mend));
      mended += results.filter(Boolean).length;
    }
    last = rows.length === pageSize ? rows.at(-1) : undefined;
  }
  return mended;

  async function mend(delivery: Overdue): Promise<boolean> {
    if (await isRunning(delivery)) return false;
    const { organizationId, webhookId, eventId, round } = delivery;
    const begun = await pool.query(beginRoundSql, [organizationId, webhookId, eventId, round]);
    return begun.rowCount === 1;
  }
}
