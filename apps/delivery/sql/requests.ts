import { deliveriesPerStatement as atMost } from '#domain/webhooks/limits.ts';
import { isHoldingSql, isOpenSql } from '#domain/webhooks/open-deliveries.ts';
import { unblockNextSql } from './order.ts';

/** Whether the delivery `d` is claimed or attempted now: then a redelivery leaves an open one as it is. */
const hasSlot = /* sql */ `exists (
  select from slot s where s.organization_id = d.organization_id and s.webhook_id = d.webhook_id
    and s.event_id = d.event_id)`;

/**
 * How a delivery is sent again. A settled one starts the schedule again; an open one keeps its
 * position, and none waits for another of its subject.
 */
const requeued = /* sql */ `state = 'queued', due_at = clock_timestamp(), settled_at = null,
    failures = case when d.state in ('delivered', 'exhausted') then 0 else d.failures end`;

/**
 * Requests that one delivery be sent now: `$1` organization, `$2` webhook, `$3` event. Returns
 * `{how}`: `queued`, or `attempting` when an open one is attempted already; no row when it is
 * cancelled or missing.
 */
export const redeliverOneSql = /* sql */ `
  with found as materialized (
    select d.state in ('queued', 'running') and ${hasSlot} as is_attempting from delivery d
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3 and d.state <> 'cancelled'
    for no key update
  ), changed as (
    update delivery d set ${requeued} from found f
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3 and not f.is_attempting
  )
  select case when f.is_attempting then 'attempting' else 'queued' end as how from found f`;

/** Cancels one open delivery (`$1`…`$3` as above), and unblocks the next of its subject. A row when it was open. */
export const cancelOneSql = /* sql */ `
  with target as materialized (
    select d.organization_id, d.webhook_id, d.event_id, d.subject_id from delivery d
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3
      and d.state in ('queued', 'running', 'blocked')
    for no key update
  ), ${unblockNextSql('target')}
  update delivery d set state = 'cancelled', due_at = null, settled_at = clock_timestamp()
  from target t where d.organization_id = t.organization_id and d.webhook_id = t.webhook_id and d.event_id = t.event_id
  returning d.event_id as "eventId"`;

/** The row of `redeliverPageSql`. */
export interface RedeliveredPageRow {
  /** How many deliveries it checked: to the end when `next` is null, otherwise up to `next`. */
  seen: number;
  /** How many of those the selection includes, and how many were put into the queue. */
  matched: number;
  queued: number;
  /** The event after which the next page begins; null when all have been checked. */
  next: string | null;
}

/**
 * Sends a page of a webhook's deliveries again, in the order of their events; one row.
 *
 * `$1` organization, `$2` webhook, `$3` the event after which it begins and `$4` the one before
 * which it stops, `$5` how many deliveries it checks, `$6` how many it sends at most. Either a
 * range: events from `$7` to before `$8`, all but cancelled ones; or, `$7` null, all failed since
 * `$9`: exhausted since, or open with an attempt that has ended. Events before `$10` are too old.
 * Of those that match, blocked ones and those with a slot stay as they are.
 */
export const redeliverPageSql = /* sql */ `
  with seen as (
    select d.event_id, d.state, d.attempts, d.created_at, d.settled_at from delivery d
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id > $3 and d.event_id < $4
    order by d.event_id limit $5
  ), matching as (
    select s.event_id from seen s
    where s.created_at >= $10::timestamptz
      and case when $7::timestamptz is not null then s.created_at >= $7::timestamptz and s.created_at < $8::timestamptz
        and s.state <> 'cancelled'
        else s.state = 'exhausted' and s.settled_at >= $9::timestamptz
          or s.state in ('queued', 'running') and s.attempts > 0 end
    order by s.event_id limit $6
  ), stop as (
    select case
      when (select count(*) from matching) = $6 then (select q.event_id from matching q
        order by q.event_id desc limit 1)
      when (select count(*) from seen) = $5 then (select s.event_id from seen s order by s.event_id desc limit 1)
    end as next
  ), locked as (
    select d.event_id from delivery d
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id in (select q.event_id from matching q)
      and (d.state = 'exhausted' or d.state = 'delivered' and $7::timestamptz is not null
        or d.state in ('queued', 'running') and not ${hasSlot})
    order by d.event_id
    for no key update
  ), redelivered as (
    update delivery d set ${requeued}
    from locked l
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = l.event_id
    returning d.event_id
  )
  select
    (select count(*) from seen s, stop where stop.next is null or s.event_id <= stop.next)::integer as seen,
    (select count(*) from matching)::integer as matched,
    (select count(*) from redelivered)::integer as queued,
    (select next from stop) as next`;

/** How many deliveries of one webhook a statement requeued or cancelled. */
export interface ChangedDeliveriesRow {
  deliveries: number;
}

/** Whether the state of the webhook `w` changed lately: its deliveries are requeued or cancelled. */
const recently = /* sql */ `w.state_at > statement_timestamp() - interval '1 hour'`;

/**
 * Puts sleeping deliveries of webhooks that were paused or suspended within the last hour back into
 * the queue, a bounded number, so that they are tried first when it is resumed. It only speeds
 * up what each run does when it asks. Returns a `ChangedDeliveriesRow` per webhook.
 */
export const requeueHeldSql = /* sql */ `
  with picked as (
    select d.organization_id, d.webhook_id, d.event_id
    from webhook w cross join lateral (
      select d.organization_id, d.webhook_id, d.event_id from delivery d
      where d.organization_id = w.organization_id and d.webhook_id = w.id and d.state = 'running' and not ${hasSlot}
      limit ${atMost}
      for no key update skip locked
    ) d
    where ${isHoldingSql} and ${recently} limit ${atMost}
  ), requeued as (
    update delivery d set state = 'queued', due_at = clock_timestamp() from picked p
    where d.organization_id = p.organization_id and d.webhook_id = p.webhook_id and d.event_id = p.event_id
    returning d.webhook_id
  )
  select count(*)::integer as deliveries from requeued q group by q.webhook_id`;

/**
 * Cancels open deliveries of deleted webhooks, a bounded number. Rows that another process has locked are
 * skipped. An attempt in progress ends by itself. Returns a `ChangedDeliveriesRow` per webhook.
 *
 * The limit is that of all webhooks together: a statement for many of them could exceed its time
 * limit each time.
 */
const cancelSql = (which: string, record = '') => /* sql */ `
  with picked as (
    select d.organization_id, d.webhook_id, d.event_id
    from webhook w cross join lateral (
      select d.organization_id, d.webhook_id, d.event_id from delivery d
      where d.organization_id = w.organization_id and d.webhook_id = w.id and ${isOpenSql}
      limit ${atMost}
      for no key update skip locked
    ) d
    where w.state = 'deleted' and ${which} limit ${atMost}
  ), cancelled as (
    update delivery d set state = 'cancelled', due_at = null, settled_at = clock_timestamp()
    from picked p
    where d.organization_id = p.organization_id and d.webhook_id = p.webhook_id and d.event_id = p.event_id
    returning d.organization_id, d.webhook_id
  ), counted as (
    select c.organization_id, c.webhook_id, count(*)::integer as deliveries
      from cancelled c group by c.organization_id, c.webhook_id
  )
  select q.deliveries from counted q ${record}`;

const byWorker = /* sql */ `cross join lateral record_worker_entry(q.organization_id, 'delivery.cancel',
      jsonb_build_object('webhookId', q.webhook_id, 'deliveries', q.deliveries))`;

/**
 * The same for webhooks that were deleted within the last hour, and for the webhooks `$1` (ids)
 * that the poll found queued: an event may be stored while its webhook is deleted. An audit entry
 * of the worker per webhook.
 */
export const cancelDeletedSql = cancelSql(`(${recently} or w.id = any ($1::uuid[]))`, byWorker);

/** The same for a webhook just deleted, `$1` organization, `$2` id. The caller writes the audit entry. */
export const cancelWebhookDeliveriesSql = cancelSql('w.organization_id = $1 and w.id = $2');

/** Counts open deliveries, up to 10,000: `{deliveries}`. `$1` organization, `$2` webhook. */
export const countOpenDeliveriesSql = /* sql */ `
  select count(*)::integer as deliveries from (
    select from delivery d where d.organization_id = $1 and d.webhook_id = $2 and ${isOpenSql} limit 10000) o`;
