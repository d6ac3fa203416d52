import { concurrencySlotsSql, hostSlots, hostSql, isSlowSql, organizationSlotsSql } from './concurrency-slots.ts';
import { isAdmittingSql } from './delivery-admission.ts';

/**
 * Lists webhooks that have unclaimed deliveries, in the order of their ids: at most `$3` after the
 * webhook `$2` of organization `$1`. With `$4` those with claimed deliveries are listed too: the
 * lease of a claim may have expired. Lists none while the region admits no delivery. Returns a row
 * per webhook: `{organizationId, webhookId, isActive}`. A relay runs this many times a second to
 * find work, so it reads one index entry per webhook and nothing else; 30 µs when there are none.
 *
 * It steps from webhook to webhook along the index of unstarted deliveries, because PostgreSQL
 * before 18 does not skip within an index.
 */
export const listUnclaimedSql = /* sql */ `
  with recursive unclaimed as (
    (select d.organization_id, d.webhook_id from delivery d
      where d.state = 'waiting' and not d.started and (not d.claimed or $4::boolean) and ${isAdmittingSql}
        and (d.organization_id, d.webhook_id) > ($1::uuid, $2::uuid)
      order by d.organization_id, d.webhook_id limit 1)
    union all
    select n.organization_id, n.webhook_id from unclaimed u cross join lateral (
      select d.organization_id, d.webhook_id from delivery d
      where d.state = 'waiting' and not d.started and (not d.claimed or $4::boolean)
        and (d.organization_id, d.webhook_id) > (u.organization_id, u.webhook_id)
      order by d.organization_id, d.webhook_id limit 1
    ) n
  )
  select u.organization_id as "organizationId", u.webhook_id as "webhookId", w.state = 'active' as "isActive"
  from (select * from unclaimed limit $3::integer) u
  join webhook w on w.organization_id = u.organization_id and w.id = u.webhook_id
  order by u.organization_id, u.webhook_id`;

/**
 * Claims deliveries of given webhooks whose workflow has to start, as many as there are concurrency
 * slots for, and numbers those that have no number yet. Claims none while the region admits no
 * delivery.
 *
 * `$1` and `$2`: the most deliveries of prompt and of slow webhooks; `$3` the lease in seconds;
 * `$4` and `$5`: organizations and webhooks, arrays of equal length without duplicates. Its cost
 * grows with their number (20 µs each) and with that of the other webhooks of their organizations.
 * Returns a row per delivery:
 * `{organizationId, webhookId, eventId, round, slow, type, begunAtMs, isFull}`: the event's type,
 * when the round became due (a first round: the event's own time; Unix time in ms), and whether the
 * webhook, its organization or its host has no slot left after this claim.
 *
 * A slot of a webhook is taken by an attempt in progress, by a claim whose attempt has not begun,
 * and by a retry that is due, because older deliveries go first. Without the retries a hanging
 * receiver got ten more deliveries with each round of time limits, which then all asked for slots
 * repeatedly. Deliveries without a slot stay in the table, unstarted, so that one slow receiver
 * does not fill the queue. The same is counted for the organization and for the host, where retries
 * hold at most half of the slots: a webhook must not stop because others of its organization hang.
 * Two relays may claim for two webhooks of one organization at once and exceed its bound by some;
 * admission does not, and what it refuses waits.
 *
 * Organizations alternate: the first delivery of each, then the second of each, so none waits
 * behind another's backlog. Within an organization the webhook that holds the fewest slots comes
 * first, then the one whose delivery is oldest: a backlog of some webhooks leaves the
 * organization's and the host's slots to others.
 *
 * Chosen rows are locked, and skipped when another relay holds them, so relays neither wait for
 * each other nor assign a number twice. A statement counts slots as of its start, but locks the
 * webhook's current row: one that another relay claimed for meanwhile is skipped too (`seen`; every
 * claim makes a new version of its webhook's row); otherwise two relays together would take twenty
 * slots. The lease is for a relay that dies before the start.
 *
 * Its cost must not depend on the statistics: those of a moment without waiting deliveries estimate
 * one row where thousands are queued a second later, and a cached plan keeps them until the next
 * analyze. So it looks up the deliveries of one webhook after another in the index of unstarted
 * deliveries, and locks each delivery by its key (`limit 1` prevents another join order, which read
 * 200,000 queued deliveries in each claim, 40 ms against 1 ms).
 */
export const claimDeliveriesSql = /* sql */ `
  with unstarted as materialized (
    select g.organization_id, g.webhook_id from unnest($4::uuid[], $5::uuid[]) as g (organization_id, webhook_id)
    where ${isAdmittingSql}
  ), used as materialized (
    select w.organization_id, w.id, w.ctid as version, ${hostSql} as host, ${isSlowSql} as slow,
      ${organizationSlotsSql} as organization_slots, t.held + t.claimed as taken,
      ${concurrencySlotsSql} - t.held - t.claimed - t.retries as free,
      greatest(least(t.retries, ${concurrencySlotsSql} - t.held - t.claimed), 0) as retries
    from (select distinct u.organization_id from unstarted u) o
    join webhook w on w.organization_id = o.organization_id and w.state = 'active'
    cross join lateral (
      select (select count(*) from concurrency_slot s where s.organization_id = w.organization_id
        and s.webhook_id = w.id) as held,
        (select count(*) from delivery c where c.organization_id = w.organization_id and c.webhook_id = w.id
          and c.claimed
          and c.epoch = w.epoch and (c.leased_until is null or c.leased_until >= clock_timestamp())) as claimed,
        (select count(*) from (
          select from delivery r where r.organization_id = w.organization_id and r.webhook_id = w.id
            and r.state = 'waiting' and r.started and not r.claimed
            and r.epoch = w.epoch and r.next_attempt_at <= clock_timestamp()
          order by r.next_attempt_at limit 10) retry) as retries
    ) t
  ), organization_room as (
    select u.organization_id, u.slow, max(u.organization_slots) - sum(u.taken) - least(sum(u.retries),
      max(u.organization_slots) / 2) as free
    from used u group by u.organization_id, u.slow
  ), host_room as (
    select u.organization_id, u.host, ${hostSlots} - sum(u.taken) - least(sum(u.retries), ${hostSlots} / 2) as free
    from used u group by u.organization_id, u.host
  ), due as (
    select w.organization_id, w.id as webhook_id, w.version, w.host, w.slow, w.free, o.free as organization_free,
      h.free as host_free,
      d.event_id, d.created_at, w.taken + row_number() over (partition by w.id
        order by d.created_at, d.event_id) as webhook_turn
    from unstarted u
    join used w on w.organization_id = u.organization_id and w.id = u.webhook_id
    join organization_room o on o.organization_id = w.organization_id and o.slow = w.slow
    join host_room h on h.organization_id = w.organization_id and h.host = w.host
    cross join lateral (
      select d.event_id, d.created_at from delivery d
      where d.organization_id = w.organization_id and d.webhook_id = w.id and d.state = 'waiting' and not d.started
        and d.next_attempt_at <= clock_timestamp() and (d.leased_until is null or d.leased_until < clock_timestamp())
      order by d.created_at, d.event_id
      limit greatest(least(w.free, o.free, h.free), 0)
    ) d
  ), in_turns as (
    select due.*, row_number() over (partition by due.organization_id, due.slow
      order by due.webhook_turn, due.created_at, due.event_id, due.webhook_id) as organization_turn,
      row_number() over (partition by due.organization_id, due.host
        order by due.webhook_turn, due.created_at, due.event_id, due.webhook_id) as host_turn
    from due
  ), ranked as (
    select t.*, row_number() over (partition by t.slow order by t.organization_turn, t.created_at, t.event_id,
      t.webhook_id) as turn
    from in_turns t where t.organization_turn <= t.organization_free and t.host_turn <= t.host_free
  ), chosen as materialized (
    select r.*, count(*) over (partition by r.organization_id, r.webhook_id) >= r.free
      or count(*) over (partition by r.organization_id, r.slow) >= r.organization_free
      or count(*) over (partition by r.organization_id, r.host) >= r.host_free as is_full
    from ranked r where r.turn <= case when r.slow then $2::integer else $1::integer end
  ), hook as (
    select w.organization_id, w.id, w.next_sequence, w.ctid as version
    from webhook w
    where (w.organization_id, w.id) in (select c.organization_id, c.webhook_id from chosen c) and w.state = 'active'
    order by w.id
    for no key update of w skip locked
  ), picked as (
    select c.organization_id, c.webhook_id, c.slow, c.is_full, d.event_id, d.round, d.sequence, d.created_at,
      d.next_attempt_at
    from chosen c
    join hook h on h.organization_id = c.organization_id and h.id = c.webhook_id and h.version = c.version
    cross join lateral (
      select d.event_id, d.round, d.sequence, d.created_at, d.next_attempt_at, d.state, d.started, d.leased_until
      from delivery d
      where d.organization_id = c.organization_id and d.webhook_id = c.webhook_id and d.event_id = c.event_id
      limit 1
      for no key update skip locked
    ) d
    where d.state = 'waiting' and not d.started and (d.leased_until is null or d.leased_until < clock_timestamp())
  ), numbered as (
    select p.*, case when p.sequence is null then row_number() over (
      partition by p.webhook_id, p.sequence is null order by p.created_at, p.event_id) end as place_in_line
    from picked p
  ), moved as (
    update webhook w set next_sequence = w.next_sequence + n.given
    from (select organization_id, webhook_id, count(place_in_line) as given
      from numbered group by organization_id, webhook_id) n
    where w.organization_id = n.organization_id and w.id = n.webhook_id
  )
  update delivery d
  set epoch = (select w.epoch from webhook w where w.organization_id = n.organization_id and w.id = n.webhook_id),
    claimed = true, leased_until = clock_timestamp() + make_interval(secs => $3::double precision),
    sequence = coalesce(d.sequence, (select h.next_sequence from hook h where h.organization_id = n.organization_id
      and h.id = n.webhook_id) + n.place_in_line - 1)
  from numbered n
  where d.organization_id = n.organization_id and d.webhook_id = n.webhook_id and d.event_id = n.event_id
  returning d.organization_id as "organizationId", d.webhook_id as "webhookId", d.event_id as "eventId", d.round,
    n.slow, n.is_full as "isFull",
    (select e.type from event e where e.organization_id = n.organization_id and e.id = n.event_id) as type,
    (extract(epoch from n.next_attempt_at) * 1000)::double precision as "begunAtMs"`;

/**
 * Records that the workflows of claimed deliveries run, unless the admission of their first
 * attempts has recorded it. `$1`…`$4`: organizations, webhooks, events, rounds, arrays of equal
 * length.
 */
export const recordStartedSql = /* sql */ `
  update delivery d set started = true, leased_until = null
  from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::integer[]) as s (organization_id, webhook_id, event_id, round)
  where d.organization_id = s.organization_id and d.webhook_id = s.webhook_id and d.event_id = s.event_id
    and d.round = s.round and not d.started and d.sequence is not null`;

/**
 * Returns claims that were not started, so that any relay may claim them at once. `$1`…`$4`:
 * organizations, webhooks, events, rounds, arrays of equal length. Their numbers stay. A claim that
 * another relay has taken after its lease is returned too: at worst it is started twice, under one
 * workflow id.
 */
export const releaseClaimsSql = /* sql */ `
  update delivery d set claimed = false, leased_until = null
  from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::integer[]) as s (organization_id, webhook_id, event_id, round)
  where d.organization_id = s.organization_id and d.webhook_id = s.webhook_id and d.event_id = s.event_id
    and d.round = s.round
    and d.claimed and not d.started and d.leased_until is not null`;

/**
 * Lists waiting deliveries of active webhooks that should have been attempted more than `$1`
 * seconds ago, at most `$2`, after the one that `$3` (organization), `$4` (webhook), `$5` (its
 * `dueAt`) and `$6` (event) name: webhook by webhook, oldest first in each. The reconciler asks
 * Temporal whether their workflows run. `dueAt` is text, because a Date would lose its
 * microseconds, `dueAtMs` the same as Unix time, and `nowMs` the time of the statement.
 *
 * It steps from webhook to webhook, so that the deliveries of a parked webhook, which are all late,
 * cost one step.
 */
export const listOverdueSql = /* sql */ `
  with recursive hook as (
    (select d.organization_id, d.webhook_id from delivery d
      where d.state = 'waiting' and d.started and (d.organization_id, d.webhook_id) >= ($3::uuid, $4::uuid)
      order by d.organization_id, d.webhook_id limit 1)
    union all
    select n.organization_id, n.webhook_id from hook h cross join lateral (
      select d.organization_id, d.webhook_id from delivery d
      where d.state = 'waiting' and d.started and (d.organization_id, d.webhook_id) > (h.organization_id, h.webhook_id)
      order by d.organization_id, d.webhook_id limit 1
    ) n
  )
  select d.organization_id as "organizationId", d.webhook_id as "webhookId", d.event_id as "eventId", d.round,
    d.next_attempt_at::text as "dueAt",
    (extract(epoch from d.next_attempt_at) * 1000)::double precision as "dueAtMs",
    (extract(epoch from clock_timestamp()) * 1000)::double precision as "nowMs"
  from hook h
  join webhook w on w.organization_id = h.organization_id and w.id = h.webhook_id and w.state = 'active'
  cross join lateral (
    select d.organization_id, d.webhook_id, d.event_id, d.round, d.next_attempt_at from delivery d
    where d.organization_id = w.organization_id and d.webhook_id = w.id and d.state = 'waiting' and d.started
      and d.epoch = w.epoch
      and d.next_attempt_at < clock_timestamp() - make_interval(secs => $1)
      and (d.organization_id, d.webhook_id, d.next_attempt_at, d.event_id) > ($3::uuid, $4::uuid, $5::timestamptz,
      $6::uuid)
    order by d.next_attempt_at, d.event_id
    limit $2
  ) d
  order by d.organization_id, d.webhook_id, d.next_attempt_at, d.event_id
  limit $2`;

/**
 * Begins a new round of a waiting delivery (`$1`…`$3`), due now, when round `$4` is current and it is
 * still overdue (`$5`, its `dueAt`), unless one of its attempts is in progress: an attempt that is
 * admitted meanwhile makes the delivery due later, so this does not find it.
 */
export const replaceRoundSql = /* sql */ `
  update delivery d set round = d.round + 1, started = false, claimed = false, leased_until = null,
    next_attempt_at = clock_timestamp()
  where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3 and d.round = $4 and d.state = 'waiting'
    and d.next_attempt_at = $5::timestamptz and not exists (
      select from delivery_attempt a
      where a.organization_id = $1 and a.webhook_id = $2 and a.event_id = $3 and a.finished_at is null)
  returning d.round`;
