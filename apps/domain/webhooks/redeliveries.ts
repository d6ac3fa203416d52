import { randomUUIDv7 } from 'node:crypto';
import { type RawBuilder, sql } from 'kysely';
import { findPersonId } from '../access/authority.ts';
import { firstEventIdAt } from '../contract/events.ts';
import { brokenConstraint } from '../db/constraint.ts';
import type { Database, Queryable } from '../db/database.ts';
import { writeLock } from '../db/locks.ts';
import {
  assertMayManageWebhooks,
  assertMayUse,
  recordWebhookEntry,
  type WebhookRequest,
  type WebhooksRequest,
} from './access.ts';
import { assertShown, isOpen } from './deliveries.ts';
import { WebhookError } from './errors.ts';
import { assertSendable, eventTooOld, oldestRedeliverable } from './redeliverable.ts';
import { Redelivery, type RedeliveryEndReason, type RedeliveryState } from './redelivery.entity.ts';

/**
 * Redeliveries of many deliveries: requested, cancelled and listed here, and carried out page by
 * page by the workers. The row is the whole request, so a request needs only the database.
 */

/**
 * Selects deliveries: those of events from `from` to before `to`, all but cancelled ones; or all
 * that failed since `failedSince`, that is exhausted since then, or open with an attempt that has
 * ended. Times are ISO 8601.
 */
export type Selection = { from: string; to: string } | { failedSince: string };

export type { RedeliveryState };

/** A redelivery of many. Times are UTC; `from` and `to`, or `failedSince`, are null. */
export interface RedeliveryRow {
  /** UUID v7. */
  id: string;
  organizationId: string;
  webhookId: string;
  from: string | null;
  to: string | null;
  failedSince: string | null;
  state: RedeliveryState;
  /** Null unless it ended early. */
  endReason: RedeliveryEndReason | null;
  /** The person who asked; null: an operator. */
  requestedBy: string | null;
  requestedAt: string;
  /** Null unless a person has cancelled it; it then ends within a page. */
  cancelRequestedAt: string | null;
  finishedAt: string | null;
  /** Deliveries scanned. */
  seen: number;
  /** Of those, the ones that the selection includes, and the ones that were put into the queue. */
  matched: number;
  queued: number;
}

export interface RedeliveryRequest extends WebhooksRequest {
  redeliveryId: string;
}

const columns = sql`
  r.id, r.organization_id as "organizationId", r.webhook_id as "webhookId", api.utc(r.range_from) as "from",
    api.utc(r.range_to) as "to",
  api.utc(r.failed_since) as "failedSince", r.state, r.end_reason as "endReason", r.requested_by as "requestedBy",
    api.utc(r.requested_at) as "requestedAt",
  api.utc(r.cancel_requested_at) as "cancelRequestedAt", api.utc(r.finished_at) as "finishedAt", r.seen,
    r.matched, r.queued`;

/**
 * Requests that a selection of a webhook's deliveries be sent again. A webhook has one redelivery
 * at a time, which has all of the rate limit.
 *
 * @throws WebhookError when the caller may not, the webhook is not active, the range is
 * empty or begins more than 30 days ago, or a redelivery of the webhook is in progress.
 */
export async function requestRedelivery(
  database: Database,
  input: WebhookRequest & { selection: Selection },
): Promise<RedeliveryRow> {
  const { organizationId, webhookId, by, selection } = input;
  const id = randomUUIDv7();
  try {
    return await database.change(async (tx) => {
      await assertSendable(tx, input);
      assertSelectable(selection);
      tx.create(Redelivery, {
        organizationId,
        id,
        webhookId,
        rangeFrom: 'from' in selection ? new Date(selection.from) : null,
        rangeTo: 'from' in selection ? new Date(selection.to) : null,
        failedSince: 'from' in selection ? null : new Date(selection.failedSince),
        requestedBy: findPersonId(by),
        endReason: null,
        cancelRequestedAt: null,
        finishedAt: null,
        reached: null,
      });
      await tx.flush();
      await recordWebhookEntry(tx, input, 'webhook.redeliver', { redeliveryId: id, ...selection });
      return getRedelivery(tx, organizationId, id);
    });
  } catch (error) {
    if (brokenConstraint(error) === 'redelivery_one_open') throw await underWay(database, input);
    throw error;
  }
}

/** The most deliveries that `countRedelivery` checks. */
const redeliveryCountedTo = 100_000;

/**
 * Returns how many events a selection includes now; those that are blocked, claimed or attempted
 * when their turn comes are not sent again. `isCapped`: there may be more, because only
 * `redeliveryCountedTo` deliveries are checked.
 *
 * @throws WebhookError as `requestRedelivery`, except for a redelivery in progress.
 */
export async function countRedelivery(
  db: Queryable,
  input: WebhookRequest & { selection: Selection; scanAtMost?: number },
): Promise<{ events: number; isCapped: boolean }> {
  const { organizationId, webhookId, selection, scanAtMost = redeliveryCountedTo } = input;
  await assertSendable(db, input);
  assertSelectable(selection);
  const begins = 'from' in selection ? new Date(selection.from) : oldestRedeliverable(new Date());
  const ends = new Date(('from' in selection ? Date.parse(selection.to) : Date.now()) + idLeewayMs);
  const scan = (state: RawBuilder<unknown>, matches: RawBuilder<unknown>) => sql<{ seen: number; events: number }>`
    select count(*)::int as seen, count(*) filter (where ${matches})::int as events
    from (
      select d.state, d.created_at, d.settled_at, d.attempts from delivery d
      where d.organization_id = ${organizationId} and d.webhook_id = ${webhookId} and ${state}
        and d.event_id > ${firstEventIdAt(begins)}::uuid and d.event_id < ${firstEventIdAt(ends)}::uuid
      order by d.event_id desc limit ${scanAtMost}
    ) d`;
  const parts =
    'from' in selection
      ? scan(
          sql`d.state <> 'cancelled'`,
          sql`d.created_at >= ${selection.from}::timestamptz and d.created_at < ${selection.to}::timestamptz`,
        )
      : sql<{
          seen: number;
          events: number;
        }>`${scan(sql`d.state = 'exhausted'`, sql`d.settled_at >= ${selection.failedSince}::timestamptz`)}
          union all ${scan(isOpen, sql`d.attempts > 0`)}`;
  const rows = await db.query(parts);
  const events = rows.reduce((sum, row) => sum + row.events, 0);
  return { events, isCapped: rows.some(({ seen }) => seen === scanAtMost) };
}

/** An id may differ from its event's time by a second. */
const idLeewayMs = 2_000;

/**
 * Requests that a redelivery stop. One that no worker has begun is cancelled at once; one that runs
 * ends before its next page, and keeps what it has sent. A second request, or one for a redelivery
 * that has ended, changes nothing and is not recorded.
 *
 * @throws WebhookError when the caller may not, the webhook is managed by another, or the
 * organization has no such redelivery.
 */
export async function cancelRedelivery(database: Database, request: RedeliveryRequest): Promise<RedeliveryRow> {
  const { organizationId, redeliveryId, by } = request;
  return database.change(async (tx) => {
    await assertMayManageWebhooks(tx, request);
    const redelivery = await tx.findOne(Redelivery, { organizationId, id: redeliveryId }, writeLock);
    if (redelivery === null) throw noSuchRedelivery();
    const webhook = { organizationId, webhookId: redelivery.webhookId, by };
    await assertMayUse(tx, webhook);
    if (redelivery.requestCancel()) {
      await tx.flush();
      await recordWebhookEntry(tx, webhook, 'webhook.cancel_redelivery', { redeliveryId });
      redelivery.cancelUnlessBegun();
      await tx.flush(); // a trigger records how it ended, after the request
    }
    return getRedelivery(tx, organizationId, redeliveryId);
  });
}

/**
 * Returns one redelivery with its progress; null when the organization has none of this id.
 *
 * @throws WebhookError when the caller may not.
 */
export async function findRedelivery(db: Queryable, request: RedeliveryRequest): Promise<RedeliveryRow | null> {
  await assertMayManageWebhooks(db, request);
  return selectRedelivery(db, request.organizationId, request.redeliveryId);
}

/**
 * Lists a webhook's redeliveries, newest first, at most `atMost`, older than the one named by
 * `before` (null for the newest).
 *
 * @throws WebhookError when the caller may not, or the organization has no such webhook.
 */
export async function listRedeliveries(
  db: Queryable,
  input: WebhookRequest & { atMost: number; before: string | null },
): Promise<RedeliveryRow[]> {
  const { organizationId, webhookId, atMost, before } = input;
  await assertShown(db, input);
  return db.query(sql<RedeliveryRow>`
    select ${columns} from redelivery r
    where r.organization_id = ${organizationId} and r.webhook_id = ${webhookId} and (${before}::uuid is null
      or r.id < ${before}::uuid)
    order by r.id desc
    limit ${atMost}`);
}

/** Returns the organization of a redelivery, for operators, who name it by id alone; else null. */
export async function findRedeliveryOrganization(db: Queryable, redeliveryId: string): Promise<string | null> {
  const redelivery = await db.findOne(Redelivery, { id: redeliveryId }, { fields: ['organizationId'] });
  return redelivery?.organizationId ?? null;
}

async function getRedelivery(db: Queryable, organizationId: string, id: string): Promise<RedeliveryRow> {
  const redelivery = await selectRedelivery(db, organizationId, id);
  if (redelivery === null) throw noSuchRedelivery();
  return redelivery;
}

async function selectRedelivery(db: Queryable, organizationId: string, id: string) {
  const rows = await db.query(sql<RedeliveryRow>`
    select ${columns} from redelivery r where r.organization_id = ${organizationId} and r.id = ${id}`);
  return rows[0] ?? null;
}

function assertSelectable(selection: Selection): void {
  const begins = new Date('from' in selection ? selection.from : selection.failedSince);
  if ('from' in selection && begins >= new Date(selection.to))
    throw new WebhookError('empty_range', 'The time range is empty. Enter an end that is after the start.');
  if (begins < oldestRedeliverable(new Date())) throw eventTooOld();
}

async function underWay(db: Queryable, { organizationId, webhookId }: WebhookRequest): Promise<WebhookError> {
  const open = await db.findOne(Redelivery, {
    organizationId,
    webhookId,
    state: { $in: ['requested', 'running'] },
  });
  const which = open === null ? '' : ` (${open.id})`;
  return new WebhookError(
    'redelivery_under_way',
    `A redelivery of this webhook is in progress${which}. Wait until it ends, or cancel it.`,
  );
}

/** Rejects a redelivery that the organization does not have. */
export const noSuchRedelivery = () =>
  new WebhookError('no_such_redelivery', 'The organization has no such redelivery.');
