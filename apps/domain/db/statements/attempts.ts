import { concurrencySlotsSql, hostSlots, hostSql, isSlowSql, organizationSlotsSql } from './concurrency-slots.ts';
import { isAdmittingSql } from './delivery-admission.ts';

/** The attempts that hold a webhook's concurrency slots, and the deliveries that wait for one. */
export interface SlotQueue {
  /** The number of the webhook's slots. */
  slots: number;
  /** The age of the oldest of its attempts in progress, in milliseconds; null without one. */
  underWayMs: number | null;
  /** How many of its deliveries have been due for longer and wait too; at most 100. */
  ahead: number;
}

/**
 * What an admitted attempt needs. `number` is null when every concurrency slot of the webhook is
 * held, or the round should begin and has begun. There is no row when the delivery is not open to
 * this round.
 */
export interface AdmittedRow {
  number: number | null;
  /** Whether it was requested as its round's first attempt, and the round already has one. */
  isBegun: boolean;
  /** Null unless no slot was free. */
  queue: SlotQueue | null;
  url: string;
  type: string;
  /** The stored body; null when the event's row is missing. */
  body: string | null;
  /** Null for events that are not part of the webhook's sequence. */
  sequence: string | null;
  /** Newest first; null when the webhook has no valid one. */
  secrets: { id: string; sealed: string }[] | null;
  /** When it was admitted, by PostgreSQL's clock in microseconds; null when `number` is. */
  startedAt: string | null;
  /** The same as Unix time in ms; part of signatures. */
  startedAtMs: number | null;
}

/**
 * Admits one attempt in one statement. Its row exists before anything is sent, and only if the
 * delivery is open, the round is current, the webhook is active, and a concurrency slot is free.
 * The attempt holds its slots until its end is recorded: one of the webhook's, of its
 * organization's and of the organization's at this host.
 *
 * `$1` organization, `$2` webhook, `$3` event, `$4` round, `$5` whether it is the schedule's last,
 * `$6` whether it is admitted only as the first of its round, `$7` the admission's id. While it is
 * in progress the delivery counts as due in 60 s; after that, the reconciler repairs it. An attempt
 * of the round proves that its workflow was started, which is recorded here: most deliveries then
 * need no statement of the relay for it. Two workers may choose the same slot, or begin the same
 * delivery: the unique indexes refuse the second one (23505), which then tries again. Numbers
 * follow the rows and not only the count: an outcome whose row was lost is inserted again, after
 * the delivery continued or was settled, and a number that exists would be refused each time. A
 * claim gives the delivery its place in the webhook's sequence. PostgreSQL may have lost the claim
 * in a failover, while the workflow runs: then the admission gives it one.
 *
 * While the region's deliveries are held, the delivery gets a new round that is not started. The
 * relay starts it when they are no longer held.
 */
export const admitAttemptSql = /* sql */ `
  with target as (
    select d.organization_id, d.webhook_id, d.event_id, d.epoch,
      greatest(d.attempts, (select max(n.number) from delivery_attempt n
        where n.organization_id = $1 and n.webhook_id = $2 and n.event_id = $3)) as attempts,
      d.sequence, d.next_attempt_at, w.url, ${concurrencySlotsSql} as slots,
      ${organizationSlotsSql} as organization_slots, ${isSlowSql} as is_slow, ${hostSql} as host, e.type, e.body,
      $6 and exists (
        select from delivery_attempt a
        where a.organization_id = $1 and a.webhook_id = $2 and a.event_id = $3 and a.round = $4) as is_begun
    from delivery d
    join webhook w on w.organization_id = d.organization_id and w.id = d.webhook_id and w.state = 'active'
      and w.epoch = d.epoch
    left join event e on e.organization_id = d.organization_id and e.id = d.event_id
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3 and d.round = $4 and d.state = 'waiting'
      and ${isAdmittingSql}
    for no key update of d
  ), returned as (
    update delivery d set round = d.round + 1, started = false, claimed = false, leased_until = null
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3 and d.round = $4 and d.state = 'waiting'
      and not ${isAdmittingSql}
  ), secret as (
    select s.id, s.sealed, s.valid_until, s.created_at from webhook_secret s
    where s.organization_id = $1 and s.webhook_id = $2 and (s.valid_until is null or s.valid_until > clock_timestamp())
  ), free as (
    select s.slot, o.slot as organization_slot, h.slot as host_slot from target t
    cross join lateral (
      select n.slot from generate_series(1, t.slots) as n (slot)
      where n.slot not in (select c.slot from concurrency_slot c where c.organization_id = $1 and c.webhook_id = $2)
      order by random() limit 1) s
    cross join lateral (
      select n.slot from generate_series(1, t.organization_slots) as n (slot)
      where n.slot not in (
        select c.organization_slot from concurrency_slot c where c.organization_id = $1 and c.is_slow = t.is_slow)
      order by random() limit 1) o
    cross join lateral (
      select n.slot from generate_series(1, ${hostSlots}) as n (slot)
      where n.slot not in (select c.host_slot from concurrency_slot c where c.organization_id = $1 and c.host = t.host)
      order by random() limit 1) h
    where not t.is_begun
  ), held as (
    insert into concurrency_slot (organization_id, webhook_id, slot, is_slow, organization_slot, host, host_slot,
      event_id, number,
      started_at, admission_id)
    select t.organization_id, t.webhook_id, f.slot, t.is_slow, f.organization_slot, t.host, f.host_slot, t.event_id,
      t.attempts + 1,
      clock_timestamp(), $7
    from target t, free f
    returning number, started_at
  ), admitted as (
    insert into delivery_attempt (organization_id, webhook_id, event_id, number, round, is_last, signed_with,
      started_at)
    select t.organization_id, t.webhook_id, t.event_id, h.number, $4, $5, coalesce((select array_agg(s.id)
      from secret s), '{}'), h.started_at
    from target t, held h
    returning number, started_at
  ), numbered as (
    update webhook w set next_sequence = w.next_sequence + 1
    from target t, admitted a
    where t.sequence is null and w.organization_id = $1 and w.id = $2
    returning w.next_sequence - 1 as sequence
  ), counted as (
    update delivery d set attempts = a.number, claimed = false, started = true, leased_until = null,
      sequence = coalesce(d.sequence, (select n.sequence from numbered n)),
      next_attempt_at = clock_timestamp() + interval '60 seconds'
    from admitted a
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3
  )
  select a.number, t.is_begun as "isBegun", t.url, t.type, t.body,
    coalesce(t.sequence, (select n.sequence from numbered n))::text as sequence,
    a.started_at::text as "startedAt", (extract(epoch from a.started_at) * 1000)::double precision as "startedAtMs",
    case when a.number is null and not t.is_begun then json_build_object(
      'slots', t.slots,
      -- Its own webhook's, unless none is: then others hold the slots of the organization or the
      -- host.
      'underWayMs', (select extract(epoch from clock_timestamp() - coalesce(min(c.started_at) filter (where
        c.webhook_id = $2), min(c.started_at))) * 1000
        from concurrency_slot c where c.organization_id = $1 and (c.webhook_id = $2 or c.is_slow = t.is_slow
          or c.host = t.host)),
      'ahead', (select count(*) from (
        select from delivery r where r.organization_id = $1 and r.webhook_id = $2 and r.state = 'waiting'
          and r.started and not r.claimed
          and r.epoch = t.epoch and r.next_attempt_at < t.next_attempt_at
          order by r.next_attempt_at limit 100) before)) end as queue,
    (select json_agg(json_build_object('id', s.id, 'sealed', encode(s.sealed,
      'base64')) order by s.valid_until desc nulls first, s.created_at desc) from secret s) as secrets
  from target t left join admitted a on true`;

/** Waits for another connection's admission of the delivery `$1`…`$3`, which is then found. */
export const awaitAdmissionSql = /* sql */ `
  select from delivery d where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3 for no key update`;

/** Finds the attempt of an admission (`$4`) whose reply was lost: an `AdmittedRow` or no row. */
export const findAdmissionSql = /* sql */ `
  select c.number, false as "isBegun", null as queue, w.url, e.type, e.body, d.sequence::text as sequence,
    c.started_at::text as "startedAt", (extract(epoch from c.started_at) * 1000)::double precision as "startedAtMs",
    (select json_agg(json_build_object('id', s.id, 'sealed', encode(s.sealed,
      'base64')) order by s.valid_until desc nulls first, s.created_at desc)
      from webhook_secret s where s.organization_id = $1 and s.webhook_id = $2
        and s.id = any (a.signed_with)) as secrets
  from concurrency_slot c
  join delivery_attempt a on a.organization_id = c.organization_id and a.webhook_id = c.webhook_id
    and a.event_id = c.event_id
    and a.number = c.number
  join delivery d on d.organization_id = c.organization_id and d.webhook_id = c.webhook_id and d.event_id = c.event_id
  join webhook w on w.organization_id = c.organization_id and w.id = c.webhook_id
  left join event e on e.organization_id = c.organization_id and e.id = c.event_id
  where c.organization_id = $1 and c.webhook_id = $2 and c.event_id = $3 and c.admission_id = $4`;

/** How late an attempt may be recorded and still count as failing time: turns in the slow queue. */
const lateMargin = /* sql */ `interval '5 minutes'`;

/**
 * The part of `recordOutcomeSql` that counts how long a webhook has failed, for suspension; `w` is
 * its row.
 *
 * The time between two recorded failures counts up to `next_failure_by`, which the first of them
 * sets: the next due time of all the webhook's open deliveries, and a margin. Time after it is time
 * in which the service made no attempt (an outage, internal errors) or nothing was open, and does
 * not count. Rejected: the time since `failing_since`, which counts outages; heartbeats of workers,
 * which continue while Temporal or the network is away.
 */
const failureColumns = /* sql */ `
      last_failed_at = case when $12 = 'delivered' then w.last_failed_at else clock_timestamp() end,
      failing_seconds = case when $12 = 'delivered' then w.failing_seconds when w.failing_since is null then 0
        else w.failing_seconds + greatest(0, extract(epoch from
          least(clock_timestamp(), coalesce(w.next_failure_by, w.last_failed_at)) - coalesce(w.last_failed_at,
            clock_timestamp()))) end,
      next_failure_by = case when $12 = 'delivered' then w.next_failure_by
        else ${lateMargin} + greatest(clock_timestamp(), coalesce(least(
        case when $12 = 'waiting' then clock_timestamp() + make_interval(secs => $13::double precision / 1000) end,
        (select r.next_attempt_at from delivery r
          where r.organization_id = $1 and r.webhook_id = $2 and r.event_id <> $3 and r.state = 'waiting'
            and r.started and r.epoch = w.epoch
          order by r.next_attempt_at limit 1),
        (select clock_timestamp() from delivery u
          where u.organization_id = $1 and u.webhook_id = $2 and u.event_id <> $3 and u.state = 'waiting'
            and not u.started limit 1)
      ), clock_timestamp())) end,
      first_failed_event = case when $12 <> 'delivered' and w.failing_since is null then $3
        else w.first_failed_event end,
      has_failed_twice = case when $12 = 'delivered' then w.has_failed_twice
        else w.failing_since is not null and (w.has_failed_twice or w.first_failed_event <> $3) end`;

/**
 * Records how an attempt ended and what follows for its delivery and its webhook. It is one
 * statement, so no reader sees a part of it.
 *
 * `$1`…`$3` the delivery, `$4` the attempt's number, `$5` the HTTP status or null, `$6` cause, `$7`
 * explanation, `$8` timings (json), `$9` peer address, `$10` kept bytes, `$11` the beginning of the
 * answer, `$12` what follows: `delivered`, `exhausted`, or `waiting` for `$13` milliseconds, `$14`
 * whether the receiver failed (false: an internal error), `$15` the headers as they were sent
 * (json), null for none, `$16` when the attempt was admitted (`startedAt`), `$17` its round, `$18`
 * whether it was the schedule's last, `$19` the secrets that signed it (ids).
 *
 * A 2xx settles the delivery in any round, also one that was parked or exhausted meanwhile; a
 * failure changes only its own round. A PostgreSQL that lost its last commits in a failover may
 * have lost the attempt's row: then the row is inserted again with its outcome, with the next
 * number if another attempt has its own. It may have lost the claim too: then a delivery that is
 * settled gets its place in the webhook's sequence here. Repeating the statement changes nothing.
 *
 * Returns `{recorded, hasDelivery}`. `recorded` is false when the attempt already has an outcome
 * (it was closed as lost, or this is a repetition), or when the delivery's row is missing too,
 * which `hasDelivery` shows.
 */
export const recordOutcomeSql = /* sql */ `
  with target as materialized (
    select d.sequence is null and case $12 when 'delivered' then d.state in ('waiting', 'exhausted')
      when 'exhausted' then d.state = 'waiting' and d.round = $17::integer else false end as lacks_number
    from delivery d where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3
    for no key update
  ), attempt as (
    update delivery_attempt a set finished_at = clock_timestamp(), status = $5, cause = $6, explanation = $7,
      timings = $8::jsonb,
      peer_address = $9::inet, kept_bytes = $10, answer = $11, headers = $15::json
    where a.organization_id = $1 and a.webhook_id = $2 and a.event_id = $3 and a.number = $4
      and a.started_at = $16::timestamptz
      and (a.finished_at is null or $12 = 'delivered')
      and exists (select from target) -- read before this statement changes the delivery
    returning a.round, a.number
  ), restored as (
    insert into delivery_attempt (organization_id, webhook_id, event_id, number, round, is_last, signed_with,
      started_at, finished_at,
      status, cause, explanation, timings, peer_address, kept_bytes, answer, headers)
    select d.organization_id, d.webhook_id, d.event_id,
      case when exists (
          select from delivery_attempt o
          where o.organization_id = $1 and o.webhook_id = $2 and o.event_id = $3 and o.number = $4)
        then (select max(o.number) + 1 from delivery_attempt o
          where o.organization_id = $1 and o.webhook_id = $2 and o.event_id = $3)
        else $4::integer end,
      $17::integer, $18::boolean, $19::uuid[], $16::timestamptz, clock_timestamp(),
      $5, $6, $7, $8::jsonb, $9::inet, $10, $11, $15::json
    from delivery d
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3 and exists (select from target)
      and not exists (
      select from delivery_attempt o
      where o.organization_id = $1 and o.webhook_id = $2 and o.event_id = $3 and o.started_at = $16::timestamptz)
    on conflict do nothing
    returning round, number
  ), ended as (
    select round, number from attempt union all select round, number from restored
  ), released as (
    delete from concurrency_slot c using attempt a
    where c.organization_id = $1 and c.webhook_id = $2 and c.event_id = $3 and c.number = a.number
  ), webhook_now as (
    update webhook w set
      next_sequence = w.next_sequence + (select t.lacks_number::integer from target t),
      failing_since = case when $12 = 'delivered' then null when $14 then coalesce(w.failing_since,
        clock_timestamp()) else w.failing_since end,
      ramp = case when $12 = 'delivered' and w.ramp is not null then nullif(least(w.ramp * 2, 10), 10) else w.ramp end,
      ${failureColumns}
    where w.organization_id = $1 and w.id = $2 and exists (select from ended)
      and case when $12 = 'delivered' then w.failing_since is not null or w.ramp is not null
        or (select t.lacks_number from target t) else $14 end
    returning w.next_sequence
  ), delivery_now as (
    update delivery d set state = $12::text, attempts = greatest(d.attempts, a.number),
      next_attempt_at = case when $12 = 'waiting' then clock_timestamp() + make_interval(secs => $13::double
        precision / 1000) end,
      settled_at = case when $12 <> 'waiting' then clock_timestamp() end, claimed = false,
      sequence = coalesce(d.sequence, (select w.next_sequence - 1 from webhook_now w, target t where t.lacks_number))
    from ended a
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3
      and case $12 when 'delivered' then d.state in ('waiting', 'exhausted') else d.state = 'waiting'
        and d.round = a.round end
  )
  select exists (select from ended) as recorded, exists (
    select from delivery d where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3) as "hasDelivery"`;

/** The result of `recordOutcomeSql`. */
export interface RecordedRow {
  recorded: boolean;
  hasDelivery: boolean;
}

const lostColumns = /* sql */ `finished_at = clock_timestamp(), cause = 'lost',
      explanation = 'The process that made this attempt ended before it could record the answer. The receiver '
        'may have received it, and recognizes a repeat by the event id.'`;

/**
 * Closes a delivery's attempt in progress as lost: its worker died, so the receiver may or may not
 * have got it. Same `$1`…`$3`, `$4` the round, `$5` what follows (`exhausted` or `waiting`), `$6`
 * milliseconds until the next, `$7` its least age in milliseconds. When there is none (it was never
 * admitted, or its outcome is recorded) the delivery stays as it is.
 */
export const recordLostSql = /* sql */ `
  with attempt as (
    update delivery_attempt a set ${lostColumns}
    where a.organization_id = $1 and a.webhook_id = $2 and a.event_id = $3 and a.round = $4 and a.finished_at is null
      and a.started_at <= clock_timestamp() - make_interval(secs => $7::double precision / 1000)
    returning a.number, a.started_at
  ), released as (
    delete from concurrency_slot c using attempt a
    where c.organization_id = $1 and c.webhook_id = $2 and c.event_id = $3 and c.number = a.number
  ), delivery_now as (
    update delivery d set state = $5::text,
      next_attempt_at = case when $5 = 'waiting' then clock_timestamp() + make_interval(secs => $6::double precision
        / 1000) end,
      settled_at = case when $5 <> 'waiting' then clock_timestamp() end, claimed = false
    where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3 and d.round = $4 and d.state = 'waiting'
      and exists (select from attempt)
  )
  select exists (select from attempt) as closed, (
      select extract(epoch from clock_timestamp() - u.started_at) * 1000 from delivery_attempt u
      where u.organization_id = $1 and u.webhook_id = $2 and u.event_id = $3 and u.round = $4 and u.finished_at is null
        and not exists (select from attempt)
    )::double precision as "underWayMs", d.state = 'waiting' and d.round = $4 as open,
    greatest(0, ceil(extract(epoch from d.next_attempt_at - clock_timestamp()) * 1000))::integer as "dueInMs",
    a.number, (extract(epoch from a.started_at) * 1000)::double precision as "startedAtMs"
  from delivery d left join attempt a on true where d.organization_id = $1 and d.webhook_id = $2 and d.event_id = $3`;

/** Whether `recordLostSql` closed an attempt, and the state of the delivery before. */
export interface LostRow {
  closed: boolean;
  /** The age of the attempt that was too young to be closed; null when there is none. */
  underWayMs: number | null;
  open: boolean;
  /** 0 when it is due; null when it is settled. */
  dueInMs: number | null;
  /** The number of the closed attempt, and when it began (Unix, ms); null when it closed none. */
  number: number | null;
  startedAtMs: number | null;
}

/**
 * Closes abandoned attempts: in progress for more than `$1` seconds. Returns a row per attempt:
 * `{organizationId, webhookId, eventId, round, number, startedAtMs}`. Their deliveries are overdue
 * by then, which the reconciler repairs.
 */
export const closeAbandonedAttemptsSql = /* sql */ `
  with closed as (
    update delivery_attempt a set ${lostColumns}
    where a.finished_at is null and a.started_at < clock_timestamp() - make_interval(secs => $1)
    returning a.organization_id, a.webhook_id, a.event_id, a.round, a.number, a.started_at
  ), released as (
    delete from concurrency_slot c using closed a
    where c.organization_id = a.organization_id and c.webhook_id = a.webhook_id and c.event_id = a.event_id
      and c.number = a.number
  )
  select a.organization_id as "organizationId", a.webhook_id as "webhookId", a.event_id as "eventId", a.round, a.number,
    (extract(epoch from a.started_at) * 1000)::double precision as "startedAtMs"
  from closed a`;
