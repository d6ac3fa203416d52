import { concurrencySlotsSql } from './concurrency-slots.ts';

/**
 * Claims deliveries whose workflow is to be started, as many as their webhooks have places for, and numbers those that have no number yet.
 *
 * `$1` webhooks at most, `$2` the lease in seconds. Returns a row per delivery: `{organizationId, webhookId, eventId, round, slow, type, begunAtMs}`: the
 * event's type, and when the round became due (of a first round: the event's own time), Unix time in ms.
 *
 * Webhooks are locked in id order, and those another relay holds are passed over, so relays neither wait for each other nor give a number
 * twice. A place is taken by an attempt under way, by a claim that has not come to its attempt yet, and by a retry that is due, as what is older goes first; what has none stays in the table,
 * unstarted, which is what keeps one slow receiver from filling the queue (a webhook without a place must not count among the `$1` either). Without the retries a receiver that
 * hangs got ten more deliveries with each round of time limits, all of which then asked for places again and again.
 * The lease is for a relay that dies between here and the start.
 *
 * A statement counts places as they were when it began, but locks a webhook as it is now: one that another relay claimed for in between is passed
 * over too (`seen`; every claim makes a new version of its webhook's row), or two relays together would take twenty places.
 *
 * It steps from webhook to webhook along the index of unstarted deliveries. Asking each webhook whether it has any let the planner read the whole table for each that
 * had none: 600 ms with 2,000 webhooks and one hung receiver's 5,000 events, against 1 ms so.
 */
export const claimDeliveriesSql = /* sql */ `
  with recursive unstarted as (
    (select d.organization_id, d.webhook_id from delivery d where d.state = 'waiting' and not d.started order by d.organization_id, d.webhook_id limit 1)
    union all
    select n.organization_id, n.webhook_id from unstarted u cross join lateral (
      select d.organization_id, d.webhook_id from delivery d
      where d.state = 'waiting' and not d.started and (d.organization_id, d.webhook_id) > (u.organization_id, u.webhook_id)
      order by d.organization_id, d.webhook_id limit 1
    ) n
  ), hook as (
    select w.organization_id, w.id, w.ctid as version, w.next_sequence, w.failing_since is not null as slow, places.free
    from unstarted u
    join webhook w on w.organization_id = u.organization_id and w.id = u.webhook_id
    cross join lateral (
      select ${concurrencySlotsSql}
           - (select count(*) from concurrency_slot s where s.organization_id = w.organization_id and s.webhook_id = w.id)
           - (select count(*) from delivery c where c.organization_id = w.organization_id and c.webhook_id = w.id and c.claimed
              and (c.leased_until is null or c.leased_until >= clock_timestamp()))
           - (select count(*) from (
               select from delivery r where r.organization_id = w.organization_id and r.webhook_id = w.id and r.state = 'waiting' and r.started and not r.claimed
                 and r.next_attempt_at <= clock_timestamp() limit 10) retry) as free
    ) places
    cross join lateral (
      select d.event_id from delivery d
      where d.organization_id = w.organization_id and d.webhook_id = w.id and d.state = 'waiting' and not d.started
        and d.next_attempt_at <= clock_timestamp() and (d.leased_until is null or d.leased_until < clock_timestamp())
      order by d.created_at, d.event_id
      limit 1
    ) due
    where w.state = 'active' and places.free > 0
    order by w.id
    limit $1
    for no key update of w skip locked
  ), picked as (
    select h.organization_id, h.id as webhook_id, h.slow, d.event_id, d.round, d.sequence, d.created_at, d.next_attempt_at
    from hook h
    join webhook seen on seen.organization_id = h.organization_id and seen.id = h.id and seen.ctid = h.version
    cross join lateral (
      select d.event_id, d.round, d.sequence, d.created_at, d.next_attempt_at from delivery d
      where d.organization_id = h.organization_id and d.webhook_id = h.id and d.state = 'waiting' and not d.started
        and d.next_attempt_at <= clock_timestamp() and (d.leased_until is null or d.leased_until < clock_timestamp())
      order by d.created_at, d.event_id
      limit h.free
      for no key update skip locked
    ) d
  ), numbered as (
    select p.*, case when p.sequence is null then row_number() over (
      partition by p.webhook_id, p.sequence is null order by p.created_at, p.event_id) end as place_in_line
    from picked p
  ), moved as (
    update webhook w set next_sequence = w.next_sequence + n.given
    from (select organization_id, webhook_id, count(place_in_line) as given from numbered group by organization_id, webhook_id) n
    where w.organization_id = n.organization_id and w.id = n.webhook_id
  )
  update delivery d
  set claimed = true, leased_until = clock_timestamp() + make_interval(secs => $2),
    sequence = coalesce(d.sequence, (select h.next_sequence from hook h where h.organization_id = n.organization_id and h.id = n.webhook_id) + n.place_in_line - 1)
  from numbered n
  where d.organization_id = n.organization_id and d.webhook_id = n.webhook_id and d.event_id = n.event_id
  returning d.organization_id as "organizationId", d.webhook_id as "webhookId", d.event_id as "eventId", d.round, n.slow,
    (select e.type from event e where e.organization_id = n.organization_id and e.id = n.event_id) as type,
    (extract(epoch from n.next_attempt_at) * 1000)::double precision as "begunAtMs"`;

/** Notes that the workflows of claimed deliveries run. `$1`…`$4`: organizations, webhooks, events, rounds, arrays of equal length. */
export const recordStartedSql = /* sql */ `
  update delivery d set started = true, leased_until = null
  from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::integer[]) as s (organization_id, webhook_id, event_id, round)
  where d.organization_id = s.organization_id and d.webhook_id = s.webhook_id and d.event_id = s.event_id and d.round = s.round`;

/**
 * Gives claims back that come to no start, and tells the relays, of which another then claims them at once. `$1`…`$4`: organizations, webhooks, events, rounds, arrays of equal length. Their numbers stay. One that
 * another relay claimed meanwhile, because it was held for longer than its lease, is given back too: at worst it is started twice, under one workflow id.
 */
export const releaseClaimsSql = /* sql */ `
  with released as (
    update delivery d set claimed = false, leased_until = null
    from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::integer[]) as s (organization_id, webhook_id, event_id, round)
    where d.organization_id = s.organization_id and d.webhook_id = s.webhook_id and d.event_id = s.event_id and d.round = s.round
      and d.claimed and not d.started and d.leased_until is not null
    returning 1
  )
  select pg_notify('org_api_deliveries', '') from (select from released limit 1) r`;

/**
 * Waiting deliveries that should have been attempted more than `$1` seconds ago, of active webhooks, oldest first, at most `$2`, after the one that `$3` (its `dueAt`), `$4` (event)
 * and `$5` (webhook) name. The reconciler asks Temporal whether their workflows run; `dueAt` is text, as a Date would lose its microseconds, and `dueAtMs` the same as Unix time.
 */
export const listOverdueSql = /* sql */ `
  select d.organization_id as "organizationId", d.webhook_id as "webhookId", d.event_id as "eventId", d.round, d.next_attempt_at::text as "dueAt",
    (extract(epoch from d.next_attempt_at) * 1000)::double precision as "dueAtMs"
  from delivery d join webhook w on w.organization_id = d.organization_id and w.id = d.webhook_id
  where d.state = 'waiting' and d.started and d.next_attempt_at < clock_timestamp() - make_interval(secs => $1) and w.state = 'active'
    and (d.next_attempt_at, d.event_id, d.webhook_id) > ($3::timestamptz, $4::uuid, $5::uuid)
  order by d.next_attempt_at, d.event_id, d.webhook_id
  limit $2`;

/** Begins a new round of a waiting delivery, due now. `$1`…`$3` the delivery, `$4` the round it replaces; no row when that is not current any more. */
export const beginRoundSql = /* sql */ `
  update delivery d set round = d.round + 1, started = false, claimed = false, leased_until = null, next_attempt_at = clock_timestamp()
  where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3 and d.round = $4 and d.state = 'waiting'
  returning d.round`;
