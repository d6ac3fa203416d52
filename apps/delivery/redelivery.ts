import { CompiledQuery } from 'kysely';
import { firstEventIdAt } from '#domain/contract/events.ts';
import type { Database, Transaction } from '#domain/db/database.ts';
import { oldestRedeliverable } from '#domain/webhooks/redeliverable.ts';
import { type DueRedeliveryRow, finishRedeliverySql, lockDueRedeliverySql, recordPageSql } from './sql/redelivery.ts';
import { type RedeliveredPageRow, redeliverPageSql } from './sql/requests.ts';

/** How many deliveries a redelivery sends in a second. */
const redeliveriesPerSecond = 20;
/** How many deliveries a page reads, so that it stays fast when few of many match. */
const scannedPerPage = 2_000;

/**
 * Carries out one page of one redelivery that is due, in one transaction: deliveries for one second
 * at its rate go back into the queue, are counted, and the position where the next page continues
 * is recorded. One that a person stopped ends as cancelled, and one whose webhook was paused,
 * suspended or deleted meanwhile ends with that reason.
 *
 * @returns false when none is due.
 */
export function redeliverPage(
  database: Database,
  { now = new Date(), scanAtMost = scannedPerPage, sendAtMost = redeliveriesPerSecond } = {},
): Promise<boolean> {
  return database.change(async (tx) => {
    const [row] = await tx.query<DueRedeliveryRow>(CompiledQuery.raw(lockDueRedeliverySql));
    if (row === undefined) return false;
    if (row.isCancelRequested) await finish(tx, row, 'cancelled', null);
    else if (row.webhookState !== 'active') await finish(tx, row, 'ended', `webhook_${row.webhookState}`);
    else await carryOut(tx, row, now, [scanAtMost, sendAtMost]);
    return true;
  });
}

async function carryOut(tx: Transaction, row: DueRedeliveryRow, now: Date, limits: number[]): Promise<void> {
  const { organizationId, id, webhookId, from, to, failedSince } = row;
  const bounds = computeBounds(row, now);
  const selection = [from, to, failedSince, oldestRedeliverable(now)];
  const values = [organizationId, webhookId, ...bounds, ...limits, ...selection];
  const [page] = await tx.query<RedeliveredPageRow>(CompiledQuery.raw(redeliverPageSql, values));
  const { seen, matched, queued, next } = page ?? { seen: 0, matched: 0, queued: 0, next: null };
  const done = [organizationId, id, next, seen, matched, queued, queued / redeliveriesPerSecond];
  await tx.query(CompiledQuery.raw(recordPageSql, done));
}

/**
 * Returns the events between which the page is. What failed lately may have happened long before,
 * and a range has its own beginning and end. Neither includes events after the request, because
 * the redelivery of a busy webhook would never end.
 */
function computeBounds(row: DueRedeliveryRow, now: Date): [after: string, before: string] {
  const begins = Math.max(oldestRedeliverable(now).getTime(), Date.parse(row.from ?? '1970-01-01'));
  const ends = Date.parse(row.to ?? row.requestedAt);
  // An id may be a second off its event's time either way.
  return [row.reached ?? firstEventIdAt(new Date(begins)), firstEventIdAt(new Date(ends + 2_000))];
}

async function finish(
  tx: Transaction,
  { organizationId, id }: DueRedeliveryRow,
  state: 'cancelled' | 'ended',
  reason: string | null,
): Promise<void> {
  await tx.query(CompiledQuery.raw(finishRedeliverySql, [organizationId, id, state, reason]));
}
