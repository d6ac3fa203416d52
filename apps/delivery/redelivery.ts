import type { Pool, PoolClient } from 'pg';
import { firstEventIdAt } from '#domain/contract/events.ts';
import { inTransaction } from '#domain/db/transaction.ts';
import { oldestRedeliverable } from '#domain/webhooks/redeliverable.ts';
import { type DueRedeliveryRow, finishRedeliverySql, lockDueRedeliverySql, recordPageSql } from './sql/redelivery.ts';
import { type RedeliveredPageRow, redeliverPageSql } from './sql/requests.ts';

/** How many deliveries a redelivery sends in a second. */
export const redeliveriesPerSecond = 20;
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
  pool: Pool,
  { now = new Date(), scanAtMost = scannedPerPage, sendAtMost = redeliveriesPerSecond } = {},
): Promise<boolean> {
  return inTransaction(pool, async (client) => {
    const { rows } = await client.query<DueRedeliveryRow>(lockDueRedeliverySql);
    const [row] = rows;
    if (row === undefined) return false;
    if (row.isCancelRequested) await finish(client, row, 'cancelled', null);
    else if (row.webhookState !== 'active') await finish(client, row, 'ended', `webhook_${row.webhookState}`);
    else await carryOut(client, row, now, [scanAtMost, sendAtMost]);
    return true;
  });
}

async function carryOut(client: PoolClient, row: DueRedeliveryRow, now: Date, limits: number[]): Promise<void> {
  const { organizationId, id, webhookId, from, to, failedSince } = row;
  const bounds = boundsOf(row, now);
  const selection = [from, to, failedSince, oldestRedeliverable(now)];
  const values = [organizationId, webhookId, ...bounds, ...limits, ...selection];
  const { rows } = await client.query<RedeliveredPageRow>(redeliverPageSql, values);
  const { seen, matched, queued, next } = rows[0] ?? { seen: 0, matched: 0, queued: 0, next: null };
  await client.query(recordPageSql, [organizationId, id, next, seen, matched, queued, queued / redeliveriesPerSecond]);
}

/**
 * Returns the events between which the page is. What failed lately may have happened long before,
 * and a range has its own beginning and end. Neither includes events after the request, because
 * the redelivery of a busy webhook would never end.
 */
function boundsOf(row: DueRedeliveryRow, now: Date): [after: string, before: string] {
  const begins = Math.max(oldestRedeliverable(now).getTime(), Date.parse(row.from ?? '1970-01-01'));
  const ends = Date.parse(row.to ?? row.requestedAt);
  // An id may be a second off its event's time either way.
  return [row.reached ?? firstEventIdAt(new Date(begins)), firstEventIdAt(new Date(ends + 2_000))];
}

async function finish(
  client: PoolClient,
  { organizationId, id }: DueRedeliveryRow,
  state: 'cancelled' | 'ended',
  reason: string | null,
): Promise<void> {
  await client.query(finishRedeliverySql, [organizationId, id, state, reason]);
}
