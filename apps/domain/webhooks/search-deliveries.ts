import { type RawBuilder, sql } from 'kysely';
import type { EventType } from '../contract/events.ts';
import { firstEventIdAt } from '../contract/events.ts';
import type { Queryable } from '../db/database.ts';
import { joinConditions } from '../db/statement.ts';
import { assertMayManageWebhooks, type WebhookRequest, type WebhooksRequest } from './access.ts';
import {
  assertShown,
  type DeliveryRow,
  deliveryColumns,
  isAttempting,
  isInProgress,
  isInState,
  nextAttemptAt,
  type Progress,
  type ShownState,
} from './deliveries.ts';
import type { WebhookState } from './webhook.entity.ts';

/** Selects deliveries; null: all. `from` to before `to`, by when the event occurred. */
export interface DeliveryFilter {
  state: ShownState | null;
  /** Of a delivery in state `waiting`. */
  progress: Progress | null;
  type: EventType | null;
  eventId: string | null;
  from: Date | null;
  to: Date | null;
}

/** A delivery in a list: what it is at now, by PostgreSQL's clock. */
export interface FoundDelivery extends DeliveryRow {
  /** Milliseconds until its next attempt is due, 0 when it is; null unless it is waiting. */
  dueInMs: number | null;
  isAttempting: boolean;
  /** Whether it waits for an earlier event of the same seat or grant. */
  isBlocked: boolean;
  /** Of the last attempt; null before the first, during one, and without a status. */
  lastStatus: number | null;
  lastCause: string | null;
}

/** A delivery in a list, with what lists show of its webhook. */
export interface ListedDelivery extends FoundDelivery {
  url: string;
  description: string;
  webhookState: WebhookState;
  managedBy: string | null;
}

/** A page of a list. `Cursor` names the delivery below which the next page begins. */
export interface FoundDeliveries<Cursor = string> {
  deliveries: ListedDelivery[];
  /** Null when nothing older matches. */
  older: Cursor | null;
  /** Whether it stopped because it had checked enough: there may be more, or none. */
  hasStopped: boolean;
}

/** The position of a delivery in the order of an organization's list. */
export interface DeliveryRef {
  eventId: string;
  webhookId: string;
}

/** Which page of a list is wanted; `before` null begins with the newest. */
interface ListPage<Cursor> {
  before: Cursor | null;
  atMost: number;
  scanLimit?: number;
}

/** The most deliveries that a page checks. */
export const searchScanLimit = 2_000;

/**
 * A page of a webhook's deliveries, newest event first. It checks a bounded number of rows, so it
 * takes no longer with a million deliveries of which none match. The states that are rare (open,
 * failed, cancelled) have a separate index, and are found however many others there are.
 *
 * @throws WebhookError when the caller may not, or the organization has no such webhook.
 */
export async function searchDeliveries(
  db: Queryable,
  request: WebhookRequest,
  filter: DeliveryFilter,
  { before, ...page }: ListPage<string>,
): Promise<FoundDeliveries> {
  const { organizationId, webhookId } = request;
  await assertShown(db, request);
  const position = before === null ? null : { eventId: before, webhookId };
  const statement = searchSql({ organizationId, webhookId }, filter, { ...page, before: position });
  const { older, ...found } = await readPage(db, statement, page.atMost);
  return { ...found, older: older?.eventId ?? null };
}

/**
 * A page of the deliveries of all of an organization's webhooks, deleted ones included, newest
 * event first. It is bounded as `searchDeliveries` is. Rare states are looked up webhook by
 * webhook.
 *
 * @param page - `webhookId`: of this webhook alone; an unknown one has none.

 * @throws WebhookError when the caller may not.
 */
export async function searchOrganizationDeliveries(
  db: Queryable,
  request: WebhooksRequest,
  filter: DeliveryFilter,
  { webhookId, ...page }: ListPage<DeliveryRef> & { webhookId: string | null },
): Promise<FoundDeliveries<DeliveryRef>> {
  await assertMayManageWebhooks(db, request);
  const of = { organizationId: request.organizationId, webhookId };
  return readPage(db, searchSql(of, filter, page), page.atMost);
}

type SearchedRow = ListedDelivery & { seen: number; lastEvent: string; lastWebhook: string };

interface SearchStatement {
  statement: RawBuilder<SearchedRow>;
  scanLimit: number;
}

/** Returns the statement of a page: of one webhook, or (`webhookId` null) of the organization. */
export function searchSql(
  { organizationId, webhookId }: { organizationId: string; webhookId: string | null },
  { state, progress, type, eventId, from, to }: DeliveryFilter,
  { before, atMost, scanLimit: scannedAtMost = searchScanLimit }: ListPage<DeliveryRef>,
): SearchStatement {
  const inState = isInState(state);
  const isIndexed = state !== null && state !== 'delivered';
  // Where the index alone finds what is wanted, a page and one more is enough.
  const isSifted = progress !== null || type !== null || from !== null || to !== null || state === 'delivered';
  const scanLimit = isSifted ? scannedAtMost : atMost + 1;
  const newestFirst = sql`order by d.event_id desc, d.webhook_id desc limit ${sql.lit(scanLimit)}`;
  const columns = sql`d.organization_id, d.webhook_id, d.event_id, d.state, d.run, d.attempts, d.created_at`;
  // Plans are generic, so a bound that is not set must not be part of the statement: `$1 is null or
  // …` is no condition of an index.
  const wanted = joinConditions([
    isIndexed ? inState : sql`true`,
    before && sql`(d.event_id, d.webhook_id) < (${before.eventId}::uuid, ${before.webhookId}::uuid)`,
    webhookId && sql`d.webhook_id = ${webhookId}`,
    eventId && sql`d.event_id = ${eventId}::uuid`,
    from && sql`d.event_id >= ${firstEventIdAt(from)}::uuid`,
    // An id may be a second off its event's time either way.
    to && sql`d.event_id < ${firstEventIdAt(new Date(to.getTime() + 2_000))}::uuid`,
  ]);
  const ofOrganization = sql`select ${columns} from delivery d where d.organization_id = ${organizationId} and ${wanted}
    ${newestFirst}`;
  // The indexes of rare states begin with the webhook.
  const ofEachWebhook = sql`select ${columns} from webhook w cross join lateral (
      select ${columns} from delivery d where d.organization_id = w.organization_id and d.webhook_id = w.id
        and ${wanted} ${newestFirst}
    ) d where w.organization_id = ${organizationId} ${newestFirst}`;
  const isExact = joinConditions([
    sql`true`,
    from && sql`d.created_at >= ${from.toISOString()}::timestamptz`,
    to && sql`d.created_at < ${to.toISOString()}::timestamptz`,
    // A subquery stays a look-up for each row; as `exists` it became a join with all events.
    type &&
      sql`(select e.type from event e where e.organization_id = d.organization_id and e.id = d.event_id) = ${type}`,
  ]);
  const statement = sql<SearchedRow>`
    with seen as materialized (${webhookId === null && isIndexed ? ofEachWebhook : ofOrganization}), found as (
      select d.webhook_id, d.event_id from seen d
      where ${inState} and ${isInProgress(progress)} and ${isExact}
      order by d.event_id desc, d.webhook_id desc
      limit ${sql.lit(atMost + 1)}
    ), looked as (
      select count(*)::integer as seen from seen
    ), last as (
      select s.event_id, s.webhook_id from seen s order by s.event_id, s.webhook_id limit 1
    )
    select l.seen, last.event_id as "lastEvent", last.webhook_id as "lastWebhook", p.*
    from looked l left join last on true left join lateral (
      select ${deliveryColumns}, ${nowColumns}, w.url, w.description, w.state as "webhookState",
        w.managed_by as "managedBy"
      from found f
      -- With the limit these stay look-ups by key: the planner, which has no statistics yet, joined
      -- the webhook first and read all of its deliveries for each row.
      cross join lateral (
        select * from delivery d where d.organization_id = ${organizationId} and d.webhook_id = f.webhook_id
          and d.event_id = f.event_id limit 1
      ) d
      join event e on e.organization_id = d.organization_id and e.id = d.event_id
      cross join lateral (
        select * from webhook w where w.organization_id = d.organization_id and w.id = d.webhook_id limit 1
      ) w
      ${lastAttempt}
    ) p on true
    order by p."eventId" desc, p."webhookId" desc`;
  return { statement, scanLimit };
}

async function readPage(
  db: Queryable,
  { statement, scanLimit }: SearchStatement,
  atMost: number,
): Promise<FoundDeliveries<DeliveryRef>> {
  const rows = await db.query(statement);
  const found = rows.filter((row) => row.eventId !== null);
  const deliveries = found
    .slice(0, atMost)
    .map(({ seen: _seen, lastEvent: _lastEvent, lastWebhook: _lastWebhook, ...delivery }) => delivery);
  const last = deliveries.at(-1);
  if (found.length > atMost && last !== undefined)
    return { deliveries, older: { eventId: last.eventId, webhookId: last.webhookId }, hasStopped: false };
  const [scanned] = rows;
  if (scanned === undefined || scanned.seen < scanLimit) return { deliveries, older: null, hasStopped: false };
  return { deliveries, older: { eventId: scanned.lastEvent, webhookId: scanned.lastWebhook }, hasStopped: true };
}

/**
 * Lists a webhook's deliveries, newest event first, with as many searches as it takes.
 *
 * @throws WebhookError when the caller may not, or the organization has no such webhook.
 */
export async function listDeliveries(
  db: Queryable,
  request: WebhookRequest,
  state: ShownState | null,
  { before, atMost }: { before: string | null; atMost: number },
): Promise<FoundDelivery[]> {
  const filter = { state, progress: null, type: null, eventId: null, from: null, to: null };
  const found: FoundDelivery[] = [];
  for (let below = before; ; ) {
    const page = await searchDeliveries(db, request, filter, { before: below, atMost: atMost - found.length });
    found.push(...page.deliveries);
    if (page.older === null || found.length === atMost) return found;
    below = page.older;
  }
}

/** What a delivery `d`, with its last attempt `a` that has ended, is at now. */
export const nowColumns = sql`
  case when ${nextAttemptAt} is not null then greatest(0, extract(epoch
    from d.due_at - clock_timestamp()) * 1000)::double precision end as "dueInMs",
  ${isAttempting} as "isAttempting", d.state = 'blocked' as "isBlocked",
  case when not ${isAttempting} then a.status end as "lastStatus",
  case when not ${isAttempting} then a.cause end as "lastCause"`;

export const lastAttempt = sql`
  left join lateral (
    select a.status, a.cause from delivery_attempt a
    where a.organization_id = d.organization_id and a.webhook_id = d.webhook_id and a.event_id = d.event_id
      and a.number = d.attempts
    limit 1
  ) a on true`;
