import { randomUUIDv7 } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import { CompiledQuery, sql } from 'kysely';
import type { Pool } from 'pg';
import { recordActivity } from '../activity/record.ts';
import { type RedeliveredRow, redeliverOneSql, redeliverPageSql } from '../db/queries/redeliveries.ts';
import type { Authority } from '../keys/authority.ts';
import { assertMayManageWebhooks, noSuchWebhook, personOf, type WebhookRequest, webhookDeleted } from './access.ts';
import { type DeliveryState, noSuchDelivery } from './deliveries.ts';
import { firstEventIdAt } from './event-id.ts';
import { redeliverableDays } from './limits.ts';
import { WebhookRefused } from './refused.ts';

/**
 * Which deliveries are sent again: those of events that happened from `from` to before `to`, whatever became of them; or all that failed since `failedSince`, that is
 * exhausted since then or still failing. Times as ISO 8601 text, so that it can be a workflow's input.
 */
export type Selection = { from: string; to: string } | { failedSince: string };

/** A redelivery that was asked for and recorded, to be carried out page by page. It holds ids and times only. */
export interface Redelivery {
  /** UUID v7. */
  id: string;
  organizationId: string;
  webhookId: string;
  selection: Selection;
}

/** One delivery that is sent again. `retry_now`: its workflow of this round runs, tell it; `queued`: the relay starts it. */
export interface Redelivered {
  eventId: string;
  round: number;
  how: 'queued' | 'retry_now';
}

/** What a page did. `next` is where the following page goes on; null when there is none. */
export interface RedeliveryPage {
  redelivered: Redelivered[];
  next: string | null;
}

/**
 * Sends one event to one webhook again, with the same event id, in one transaction with its activity line. A settled delivery begins a new round; one that is open is
 * due now.
 *
 * @param canRetryNow whether the caller can tell a running workflow; if not, a delivery whose workflow runs is refused instead of being left behind it.
 * @throws WebhookRefused when the caller may not, the webhook is parked or deleted, it has no delivery of this event or that was cancelled, the event is older than
 *   30 days, or the delivery is open and the caller cannot tell its workflow.
 */
export async function redeliverOne(
  em: EntityManager,
  input: WebhookRequest & { eventId: string },
  { canRetryNow }: { canRetryNow: boolean },
): Promise<Redelivered> {
  const { organizationId, webhookId, eventId, by } = input;
  return em.fork().transactional(async (tx) => {
    await assertSendable(tx, input);
    const found = await findForRedelivery(tx, input);
    if (found === null) throw noSuchDelivery();
    if (found.state === 'cancelled')
      throw new WebhookRefused('delivery_cancelled', 'The delivery was cancelled with its webhook.');
    if (found.isTooOld) throw eventTooOld();
    if (found.state === 'waiting' && found.started && !canRetryNow) {
      throw new WebhookRefused(
        'delivery_open',
        'The delivery is still being tried, and its next attempt can be hurried through Temporal only, which is not configured here.',
      );
    }
    const values = [organizationId, webhookId, eventId];
    const { rows } = await tx
      .getKysely()
      .executeQuery<{ round: number; started: boolean }>(CompiledQuery.raw(redeliverOneSql, values));
    const [row] = rows;
    if (row === undefined) throw webhookParked(); // a race: the sweep moves it within a second
    const { round, started } = row;
    const detail = { webhookId, eventId, round };
    await recordActivity(tx, { organizationId, personId: personOf(by), action: 'delivery.redeliver', detail });
    await sql`select pg_notify('org_api_deliveries', '')`.execute(tx.getKysely());
    return { eventId, round, how: started ? 'retry_now' : 'queued' };
  });
}

/**
 * Records that someone wants a selection of a webhook's deliveries sent again, in one transaction with its activity line. `redeliverPage` then carries it out.
 *
 * @throws WebhookRefused when the caller may not, the webhook is parked or deleted, the range is empty, or it begins more than 30 days ago.
 */
export async function requestRedelivery(
  em: EntityManager,
  input: { organizationId: string; webhookId: string; by: Authority; selection: Selection },
): Promise<Redelivery> {
  const { organizationId, webhookId, by, selection } = input;
  return em.fork().transactional(async (tx) => {
    await assertSendable(tx, input);
    const begins = new Date('from' in selection ? selection.from : selection.failedSince);
    if ('from' in selection && begins >= new Date(selection.to))
      throw new WebhookRefused('empty_range', 'The range is empty: it ends before it begins.');
    if (begins < oldestRedeliverable(new Date())) throw eventTooOld();
    const id = randomUUIDv7();
    const detail = { webhookId, redeliveryId: id, ...selection };
    await recordActivity(tx, { organizationId, personId: personOf(by), action: 'webhook.redeliver', detail });
    return { id, organizationId, webhookId, selection };
  });
}

/** How many rows a page may look at for each that it may send: a page stays quick when few of many match. */
const seenPerSent = 20;

/**
 * Carries out the next page of a redelivery: at most `atMost` deliveries, from after the event `after` on (null begins). Each page is one statement; a page done twice
 * sends nothing twice that is still open, and a page that was lost is simply asked for again. The caller sets the pace and tells the workflows of `retry_now`.
 *
 * @throws WebhookRefused when the webhook is parked or deleted by now, which ends the redelivery.
 */
export async function redeliverPage(
  pool: Pool,
  redelivery: Redelivery,
  page: { after: string | null; atMost: number; canRetryNow: boolean },
  now: Date = new Date(),
): Promise<RedeliveryPage> {
  const { organizationId, webhookId, selection } = redelivery;
  const { rows: hooks } = await pool.query<{ state: string }>(
    'select w.state from webhook w where w.organization_id = $1 and w.id = $2',
    [organizationId, webhookId],
  );
  assertActive(hooks[0]?.state);
  const oldest = oldestRedeliverable(now);
  const range = 'from' in selection ? selection : null;
  // What failed lately may have happened long before; a range is bounded by its own beginning.
  const begins = range === null ? oldest : latest(oldest, new Date(range.from));
  const after = page.after ?? firstEventIdAt(begins);
  const { rows } = await pool.query<{ redelivered: RedeliveredRow[]; next: string | null }>(redeliverPageSql, [
    ...[organizationId, webhookId, after, page.atMost * seenPerSent, page.atMost],
    ...[range?.from ?? null, range?.to ?? null, 'failedSince' in selection ? selection.failedSince : null],
    ...[oldest, page.canRetryNow],
  ]);
  const { redelivered, next } = rows[0] ?? { redelivered: [], next: null };
  const isPastRange = range !== null && next !== null && next > firstEventIdAt(new Date(Date.parse(range.to) + 2_000));
  if (redelivered.some(({ started }) => !started)) await pool.query(`select pg_notify('org_api_deliveries', '')`);
  return {
    redelivered: redelivered.map(({ eventId, round, started }) => ({
      ...{ eventId, round },
      how: started ? 'retry_now' : 'queued',
    })),
    next: isPastRange ? null : next,
  };
}

async function assertSendable(tx: EntityManager, { organizationId, webhookId, by }: WebhookRequest): Promise<void> {
  await assertMayManageWebhooks(tx, organizationId, by);
  const { rows } = await sql<{ state: string }>`
    select w.state from webhook w where w.organization_id = ${organizationId} and w.id = ${webhookId}`.execute(
    tx.getKysely(),
  );
  assertActive(rows[0]?.state);
}

function assertActive(state: string | undefined): void {
  if (state === undefined) throw noSuchWebhook();
  if (state === 'deleted') throw webhookDeleted();
  if (state === 'parked') throw webhookParked();
}

async function findForRedelivery(tx: EntityManager, delivery: WebhookRequest & { eventId: string }) {
  const { organizationId, webhookId, eventId } = delivery;
  const { rows } = await sql<{ state: DeliveryState; started: boolean; isTooOld: boolean }>`
    select d.state, d.started, d.created_at < ${oldestRedeliverable(new Date()).toISOString()}::timestamptz as "isTooOld"
    from delivery d
    where d.organization_id = ${organizationId} and d.webhook_id = ${webhookId} and d.event_id = ${eventId}
    for no key update`.execute(tx.getKysely());
  return rows[0] ?? null;
}

const oldestRedeliverable = (now: Date) => new Date(now.getTime() - redeliverableDays * 86_400_000);

const latest = (a: Date, b: Date) => (a > b ? a : b);

const webhookParked = () =>
  new WebhookRefused('webhook_parked', 'The webhook is parked: resume it first, which sends all that waits.');

const eventTooOld = () =>
  new WebhookRefused('event_too_old', `Only events of the last ${redeliverableDays} days can be sent again.`);
