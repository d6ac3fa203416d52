import { unblockNextSql } from './order.ts';

/** A row of `recordOutcomeSql`: the state that follows. */
export interface OutcomeRow {
  state: 'queued' | 'running' | 'blocked' | 'delivered' | 'exhausted' | 'cancelled';
}

const isDelivered = /* sql */ `$4::text = 'delivered'`;

/** Whether the attempt still had its slot, in the current run of an open delivery. */
const isCurrent = /* sql */ `(t.state in ('queued', 'running') and t.run = $8::integer and exists (select from freed))`;

/** Whether a `Retry-After` lasts; one from before the clock was set back does not (`maySend`). */
const isHeld = /* sql */ `(r.retry_after_until > statement_timestamp()
        and r.retry_after_until < statement_timestamp() + interval '1 hour 10 seconds')`;

/** The receiver's concurrency afterwards: 1 while `Retry-After` lasts, also after a late 2xx. */
const concurrencyAfter = /* sql */ `case
        when $21::integer is not null or ${isHeld} then 1
        when not ${isDelivered} then greatest(1, r.concurrency / 2)
        when $20::integer > 3000 then greatest(3, r.concurrency / 2)
        else least(10, r.concurrency * 2) end`;

/**
 * Records how an attempt ended and what follows for its delivery and its receiver.
 *
 * `$1`…`$3` the delivery; `$4` `AttemptOutcome`; `$5` the wait before the next attempt in ms, used
 * unless the delivery is settled; `$6` the attempt's id, `$7` when its receiver was reset last before
 * its admission (`resetAt`; one from before a later reset says nothing of the receiver), `$8` run,
 * `$9` whether it was the last of the schedule, `$10` when it was admitted (`startedAt`), `$11` the
 * secrets that signed it (ids); `$12` the HTTP status or null, `$13` cause, `$14` explanation, `$15`
 * timings (json), `$16` peer address, `$17` kept bytes, `$18` the beginning of the response's body,
 * `$19` the headers as they were sent (json) or null, `$20` how long the receiver took in ms; `$21`
 * seconds for which it asked to wait (`Retry-After` of a 429 or 503) or null, `$22` the body's
 * encoding or null.
 *
 * A 2xx settles the delivery in any run, also one that is exhausted or queued again. A failure changes
 * it only if its own slot was still there: otherwise it was closed as lost and counted then, or a
 * failover lost it. A PostgreSQL that lost its last commits in a failover may have lost the attempt's
 * row, which is inserted with the next number, because a newer attempt may have its own; and the
 * claim: then a settled delivery gets its sequence number here. What is settled unblocks the next
 * delivery of its subject. Repeating the statement changes nothing.
 *
 * `target` reads and locks the delivery before any part changes a row: a part that read it later
 * would not see a row that this statement has changed, and the attempt would stay open.
 *
 * Returns an `OutcomeRow`; no row when PostgreSQL does not have the delivery any more.
 */
export const recordOutcomeSql = /* sql */ `
  with target as materialized (
    select d.state, d.run, d.subject_id, d.sequence is null and ${isDelivered}
      and d.state in ('queued', 'running', 'blocked', 'exhausted') as lacks_sequence
    from delivery d where d.organization_id = $1::uuid and d.webhook_id = $2::uuid and d.event_id = $3::uuid
    for no key update
  ), recorded as (
    insert into delivery_attempt as a (organization_id, webhook_id, event_id, id, number, run, ends_schedule,
      signed_with, started_at, finished_at, status, cause, explanation, timings, peer_address, kept_bytes, response,
      response_encoding, headers)
    select $1::uuid, $2::uuid, $3::uuid, $6::uuid, coalesce((select o.number from delivery_attempt o
        where o.organization_id = $1::uuid and o.webhook_id = $2::uuid and o.event_id = $3::uuid and o.id = $6::uuid),
        next_attempt_number($1::uuid, $2::uuid, $3::uuid)), $8::integer, $9::boolean, $11::uuid[], $10::timestamptz,
      clock_timestamp(), $12::smallint, $13::text, $14::text, $15::jsonb, $16::inet, $17::integer, $18::bytea,
      $22::text, $19::json from target
    on conflict (organization_id, webhook_id, event_id, id) do update set finished_at = excluded.finished_at,
      status = excluded.status, cause = excluded.cause, explanation = excluded.explanation,
      timings = excluded.timings, peer_address = excluded.peer_address, kept_bytes = excluded.kept_bytes,
      response = excluded.response, response_encoding = excluded.response_encoding, headers = excluded.headers
    where a.finished_at is null or a.cause = 'lost' and ${isDelivered}
    returning a.number
  ), freed as (
    delete from slot s using target t
    where s.organization_id = $1::uuid and s.webhook_id = $2::uuid and s.event_id = $3::uuid and s.attempt_id = $6::uuid
    returning s.attempt_id
  ), is_exhausted as materialized (
    -- An event that is redelivered, and begins another schedule, is not a second event that failed.
    select (select coalesce(max(a.number) filter (where not a.ends_schedule) < min(a.number) filter (where
        a.ends_schedule), true) from delivery_attempt a where a.organization_id = $1::uuid
        and a.webhook_id = $2::uuid and a.event_id = $3::uuid) as is_first
    from target t where $9::boolean and $4::text = 'failed' and t.state = 'running' and ${isCurrent}
  ), receiver_now as (
    update receiver r set concurrency = ${concurrencyAfter},
      failing_since = case when not ${isDelivered} then coalesce(r.failing_since, clock_timestamp()) end,
      exhausted_in_row = case when ${isDelivered} then 0
        else least(r.exhausted_in_row + (select count(*) from is_exhausted e where e.is_first), 1000) end,
      retry_after_until = case when $21::integer is null then r.retry_after_until else greatest(
        case when ${isHeld} then r.retry_after_until end, clock_timestamp() + make_interval(secs => $21::integer)) end,
      gone_at = case when $12::smallint = 410 then coalesce(r.gone_at, clock_timestamp()) else r.gone_at end,
      next_sequence = r.next_sequence + t.lacks_sequence::integer
    from target t
    where r.organization_id = $1::uuid and r.webhook_id = $2::uuid and $4::text <> 'internal_error'
      and exists (select from recorded) and (t.lacks_sequence or r.reset_at = $7::timestamptz)
      -- Most attempts are accepted by a receiver that accepts all: nothing is written then.
      and (t.lacks_sequence or r.concurrency <> ${concurrencyAfter} or case when ${isDelivered}
        then r.failing_since is not null or r.exhausted_in_row > 0
        else r.failing_since is null or $21::integer is not null or $12::smallint = 410
          or exists (select from is_exhausted) end)
    returning r.next_sequence - 1 as sequence
  ), next as materialized (
    select case when ${isDelivered} and exists (select from recorded)
          and t.state in ('queued', 'running', 'blocked', 'exhausted') then 'delivered'
        when exists (select from is_exhausted) then 'exhausted'
        when not ${isDelivered} and ${isCurrent} then t.state end as state, t.lacks_sequence, t.subject_id
    from target t
  ), settled as materialized (
    select $1::uuid as organization_id, $2::uuid as webhook_id, $3::uuid as event_id, n.subject_id from next n
    where n.subject_id is not null and n.state in ('delivered', 'exhausted')
  ), ${unblockNextSql('settled')}
  update delivery d set state = coalesce(n.state, d.state), attempts = greatest(d.attempts, r.number),
    failures = d.failures + coalesce(n.state <> 'delivered' and $4::text = 'failed', false)::integer,
    due_at = case n.state when 'running' then clock_timestamp() + make_interval(secs => $5::double precision / 1000)
      when 'delivered' then null when 'exhausted' then null else d.due_at end,
    settled_at = case when n.state in ('delivered', 'exhausted') then clock_timestamp() else d.settled_at end,
    sequence = coalesce(d.sequence, (select r.sequence from receiver_now r where n.lacks_sequence))
  from next n left join recorded r on true
  where d.organization_id = $1::uuid and d.webhook_id = $2::uuid and d.event_id = $3::uuid
  returning d.state`;

/**
 * Records what is kept of a response that arrived after its outcome: `$1`…`$3` the delivery, `$4`
 * the attempt's id, `$5` kept bytes, `$6` the beginning, `$7` its encoding or null.
 */
export const recordResponseSql = /* sql */ `
  update delivery_attempt a set kept_bytes = $5::integer, response = $6::bytea, response_encoding = $7::text
  where a.organization_id = $1 and a.webhook_id = $2 and a.event_id = $3 and a.id = $4 and a.status is not null`;
