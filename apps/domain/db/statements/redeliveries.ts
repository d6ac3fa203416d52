/** Whether a delivery keeps its round: it waits without a workflow of an earlier epoch. */
const keepsRound = /* sql */ `(d.state = 'waiting' and (not d.started
  or d.epoch = (select w.epoch from webhook w where w.organization_id = $1 and w.id = $2)))`;

/**
 * How a delivery is sent again, by its state. A settled one waits in a new round, due now. A
 * waiting one is due now and keeps its round: when its workflow runs (`started`), the caller
 * notifies that workflow; otherwise the relay starts one. Columns on the right are those of the row
 * when it is changed.
 */
const restarted = /* sql */ `
  state = 'waiting', settled_at = null, next_attempt_at = clock_timestamp(),
  round = case when ${keepsRound} then d.round else d.round + 1 end,
  started = ${keepsRound} and d.started,
  claimed = ${keepsRound} and d.claimed,
  leased_until = case when ${keepsRound} then d.leased_until end`;

/** No retry is requested while an attempt is in progress. `$1`, `$2` as everywhere in this file. */
const isAttempting = /* sql */ `exists (
  select from delivery_attempt a
  where a.organization_id = $1 and a.webhook_id = $2 and a.event_id = d.event_id and a.finished_at is null)`;

/**
 * Sends one delivery again. `$1` organization, `$2` webhook, `$3` event. Returns
 * `{round, started}`: `started` when a workflow of that round runs and has to be notified; no row
 * when the delivery is neither settled nor waiting.
 */
export const redeliverOneSql = /* sql */ `
  update delivery d set ${restarted}
  where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3 and d.state in ('delivered', 'exhausted',
    'waiting')
  returning d.round, d.started`;

/** Whether a delivery `s` has failed: it is exhausted, or waits for another attempt. */
const hasFailed = /* sql */ `(s.state = 'exhausted' or s.state = 'waiting' and s.attempts > 0)`;

/** One delivery that was sent again. */
interface RedeliveredRow {
  eventId: string;
  round: number;
  /** Whether its workflow of that round runs and has to be notified. */
  started: boolean;
}

/** The row of `redeliverPageSql`. */
export interface RedeliveredPageRow {
  redelivered: RedeliveredRow[];
  /** How many deliveries it checked: to the end when `next` is null, otherwise up to `next`. */
  seen: number;
  /** How many of those the selection includes. */
  matched: number;
  /** The event after which the next page begins; null when all have been checked. */
  next: string | null;
}

/**
 * Sends a page of a webhook's deliveries again, in the order of their events.
 *
 * `$1` organization, `$2` webhook, `$3` the event after which it begins and `$4` the one before
 * which it stops, `$5` how many deliveries it checks, `$6` how many it sends at most. Either a
 * range: events from `$7` to before `$8`, all but cancelled ones, or with `$11` those that failed;
 * or, `$7` null, all failed since `$9`: exhausted since, or failed before and waiting for another
 * attempt. Events before `$10` are too old.
 *
 * Returns one row. It checks a bounded number of rows, so that a page of a webhook with a million
 * deliveries, none of which match, is fast too. Rows are locked in the order of their events, so
 * that two calls for the same events wait for each other and do not deadlock.
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
        and case when $11 then ${hasFailed} else s.state <> 'cancelled' end
        else s.state = 'exhausted' and s.settled_at >= $9::timestamptz or s.state = 'waiting' and s.attempts > 0 end
    order by s.event_id limit $6
  ), stop as (
    select case
      when (select count(*) from matching) = $6 then (select m.event_id from matching m
        order by m.event_id desc limit 1)
      when (select count(*) from seen) = $5 then (select s.event_id from seen s order by s.event_id desc limit 1)
    end as next
  ), locked as (
    select d.event_id from delivery d
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id in (select m.event_id from matching m)
      and (d.state = 'exhausted' or d.state = 'delivered' and $7::timestamptz is not null and not $11
        or d.state = 'waiting' and not ${isAttempting})
    order by d.event_id
    for no key update
  ), redelivered as (
    update delivery d set ${restarted}
    from locked l
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = l.event_id
    returning d.event_id, d.round, d.started
  )
  select
    coalesce((select json_agg(json_build_object('eventId', r.event_id, 'round', r.round, 'started', r.started)
      order by r.event_id) from redelivered r), '[]') as redelivered,
    (select count(*) from seen s, stop where stop.next is null or s.event_id <= stop.next)::integer as seen,
    (select count(*) from matching)::integer as matched,
    (select next from stop) as next`;
