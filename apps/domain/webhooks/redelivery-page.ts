import type { Pool, PoolClient } from 'pg';
import { type RedeliveredPageRow, redeliverPageSql } from '../db/statements/redeliveries.ts';
import {
  finishRedeliverySql,
  listUnnotifiedSql,
  lockRedeliverySql,
  type RedeliveryPageRow,
  recordNotifiedSql,
  recordPageSql,
} from '../db/statements/redelivery-progress.ts';
import { inTransaction } from '../db/transaction.ts';
import { firstEventIdAt } from './event-id.ts';
import { oldestRedeliverable } from './redeliverable.ts';

/** Which page of which redelivery is to be carried out. */
interface PageRequest {
  organizationId: string;
  redeliveryId: string;
  /** How many pages are done already, as far as the caller knows. */
  page: number;
  /** How many deliveries it sends again at most. */
  perPage: number;
}

/** `leaseMs`: after how long without another page another workflow may take it over. */
interface PageOptions {
  leaseMs: number;
  scanLimit?: number;
  now?: Date;
}

/** The progress of a redelivery after a page. */
export type RedeliveryProgress = Pick<RedeliveryPageRow, 'state' | 'pages' | 'seen' | 'queued' | 'retriesRequested'>;

/** What a page leaves to do: notify the workflows of `unnotified`, then call `recordNotified`. */
interface PageLeft {
  webhookId: string;
  progress: RedeliveryProgress;
  unnotified: string[];
  /** Whether `recordNotified` is to be called, also with nothing to notify. */
  isUnfinished: boolean;
}

/** How many deliveries a page reads, so that it stays fast when few of many match. */
const lookedAtPerPage = 2_000;

/**
 * Carries out the next page of a redelivery in one transaction: at most `perPage` deliveries are
 * sent again, counted, and the place where the next page continues is recorded. A page done already
 * changes nothing, so a caller that did not receive the result repeats it. What is asked to stop
 * ends as cancelled, and what belongs to a webhook that was parked or deleted meanwhile ends with
 * that reason; each writes its activity line.
 *
 * @throws when there is no such redelivery, or the database fails; then nothing is changed.
 */
export function carryOutPage(pool: Pool, request: PageRequest, options: PageOptions): Promise<PageLeft> {
  return inTransaction(pool, (client) => carryOut(client, request, options));
}

async function carryOut(client: PoolClient, request: PageRequest, options: PageOptions): Promise<PageLeft> {
  const { organizationId, redeliveryId, page, perPage } = request;
  const of = [organizationId, redeliveryId];
  const { rows } = await client.query<RedeliveryPageRow>(lockRedeliverySql, of);
  const row = rows[0];
  if (row === undefined) throw new Error(`there is no redelivery ${redeliveryId}`);
  const isOpen = row.state === 'requested' || row.state === 'running';
  if (!isOpen || row.pages !== page || row.unnotified.length > 0 || row.seenAll) return leftOf(row);
  if (row.isCancelAsked) return finish(client, of, 'cancelled', null);
  const { rows: hooks } = await client.query<{ state: string }>(
    'select w.state from webhook w where w.organization_id = $1 and w.id = $2',
    [organizationId, row.webhookId],
  );
  const hookState = hooks[0]?.state;
  if (hookState === 'parked') return finish(client, of, 'ended', 'webhook_parked');
  if (hookState !== 'active') return finish(client, of, 'ended', 'webhook_deleted');

  const { scanLimit = lookedAtPerPage, now = new Date(), leaseMs } = options;
  const sent = await client.query<RedeliveredPageRow>(redeliverPageSql, [
    organizationId,
    row.webhookId,
    ...boundsOf(row, now),
    scanLimit,
    perPage,
    row.from,
    row.to,
    row.failedSince,
    oldestRedeliverable(now),
    row.onlyFailed,
  ]);
  const { redelivered, seen, matched, next } = sent.rows[0] ?? { redelivered: [], seen: 0, matched: 0, next: null };
  const unnotified = redelivered.filter(({ started }) => started).map(({ eventId }) => eventId);
  const queued = redelivered.length - unnotified.length;
  const values = [...of, next, unnotified, seen, queued, leaseMs / 1_000, matched];
  const recorded = await client.query<RedeliveryPageRow>(recordPageSql, values);
  return leftOf(recorded.rows[0] ?? row);
}

/**
 * Returns the events between which the page is. What failed lately may have happened long before,
 * and a range has its own beginning and end. Neither includes events after the request, because
 * the redelivery of a busy webhook would never end.
 */
function boundsOf(row: RedeliveryPageRow, now: Date): [after: string, before: string] {
  const begins = Math.max(oldestRedeliverable(now).getTime(), Date.parse(row.from ?? '1970-01-01'));
  const ends = Date.parse(row.to ?? row.requestedAt);
  // An id may be a second off its event's time either way.
  return [row.reached ?? firstEventIdAt(new Date(begins)), firstEventIdAt(new Date(ends + 2_000))];
}

/** Returns the workflows that a page left to notify, without those settled meanwhile. */
export async function listUnnotified(
  pool: Pool,
  { organizationId, webhookId, unnotified }: { organizationId: string; webhookId: string; unnotified: string[] },
): Promise<{ eventId: string; round: number }[]> {
  if (unnotified.length === 0) return [];
  const values = [organizationId, webhookId, unnotified];
  const { rows } = await pool.query<{ eventId: string; round: number }>(listUnnotifiedSql, values);
  return rows;
}

/** Records that page `pages` was notified; after the last page the redelivery is done. */
export async function recordNotified(
  pool: Pool,
  { organizationId, redeliveryId, pages }: { organizationId: string; redeliveryId: string; pages: number },
): Promise<RedeliveryProgress | null> {
  const of = [organizationId, redeliveryId];
  const { rows } = await pool.query<RedeliveryPageRow>(recordNotifiedSql, [...of, pages]);
  const row = rows[0];
  if (row === undefined) return null;
  if (!row.seenAll || row.state !== 'running') return leftOf(row).progress;
  return (await finish(pool, of, 'done', null)).progress;
}

async function finish(
  connection: Pick<Pool, 'query'>,
  of: string[],
  state: 'done' | 'cancelled' | 'ended',
  reason: 'webhook_parked' | 'webhook_deleted' | null,
): Promise<PageLeft> {
  const { rows } = await connection.query<RedeliveryPageRow>(finishRedeliverySql, [...of, state, reason]);
  const row = rows[0];
  if (row === undefined) throw new Error(`redelivery ${of[1]} ended at the same moment`);
  return leftOf(row);
}

function leftOf({ webhookId, unnotified, seenAll, ...row }: RedeliveryPageRow): PageLeft {
  const { state, pages, seen, queued, retriesRequested } = row;
  const isUnfinished = state === 'running' && (unnotified.length > 0 || seenAll);
  return { webhookId, unnotified, isUnfinished, progress: { state, pages, seen, queued, retriesRequested } };
}
