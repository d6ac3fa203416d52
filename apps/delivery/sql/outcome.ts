import type { AttemptOutcome } from '#domain/webhooks/causes.ts';
import { maxConcurrency } from '#domain/webhooks/limits.ts';
import { hasRetryAfterSql } from '#domain/webhooks/open-deliveries.ts';
import type { DeliveryRun } from '#workflows/deliver-event/types.ts';
import { unblockNextSql } from './order.ts';

/** A row of `recordOutcomeSql`: the state that follows. */
export interface OutcomeRow {
  state: 'queued' | 'running' | 'blocked' | 'delivered' | 'exhausted' | 'cancelled';
}

/** How an attempt ended: what `recordOutcomeSql` records. */
export interface EndedAttempt extends DeliveryRun {
  outcome: AttemptOutcome;
  /** The wait before the next attempt, used unless the delivery is settled. */
  waitMs: number;
  attemptId: string;
  /** When its receiver was reset last before its admission: before a later reset, it says nothing of the receiver. */
  resetAt: string;
  /** Whether it was the last of the schedule. */
  endsSchedule: boolean;
  /** When it was admitted. */
  startedAt: string;
  /** Ids of the secrets that signed it. */
  signedWith: readonly string[];
  /** The HTTP status; null: none arrived. */
  status: number | null;
  cause: string;
  explanation: string | null;
  /** JSON. */
  timings: string;
  peerAddress: string | null;
  keptBytes: number;
  /** The beginning of the response's body, and its encoding or null. */
  response: Buffer | null;
  encoding: string | null;
  /** The headers as they were sent, in JSON, of custom ones the names only; null: nothing was sent. */
  headers: string | null;
  /** How long the receiver took. */
  tookMs: number;
  /** For how long it asked to wait (`Retry-After` of a 429 or 503), or null. */
  retryAfterSeconds: number | null;
}

/** The parameters of `recordOutcomeSql` in their order, with their types. */
const parameters: Record<keyof EndedAttempt, string> = {
  organizationId: 'uuid',
  webhookId: 'uuid',
  eventId: 'uuid',
  outcome: 'text',
  waitMs: 'double precision',
  attemptId: 'uuid',
  resetAt: 'timestamptz',
  run: 'integer',
  endsSchedule: 'boolean',
  startedAt: 'timestamptz',
  signedWith: 'uuid[]',
  status: 'smallint',
  cause: 'text',
  explanation: 'text',
  timings: 'jsonb',
  peerAddress: 'inet',
  keptBytes: 'integer',
  response: 'bytea',
  headers: 'json',
  tookMs: 'integer',
  retryAfterSeconds: 'integer',
  encoding: 'text',
};

const names = Object.keys(parameters) as (keyof EndedAttempt)[];

/** Each parameter as the statement writes it, such as `$1::uuid`. */
const $ = Object.fromEntries(
  names.map((name, index) => [name, `$${index + 1}::${parameters[name]}`]),
) as typeof parameters;

/** Returns the values of `recordOutcomeSql`. */
export const outcomeValues = (ended: EndedAttempt): unknown[] => names.map((name) => ended[name]);

/** The delivery's key as values, and as a condition on a row. */
const { organizationId, webhookId, eventId } = $;
const delivery = `${organizationId}, ${webhookId}, ${eventId}`;
const isOfDelivery = (row: string) =>
  `${row}.organization_id = ${organizationId} and ${row}.webhook_id = ${webhookId} and ${row}.event_id = ${eventId}`;

const isDelivered = /* sql */ `${$.outcome} = 'delivered'`;

/** Whether the attempt still had its slot, and its delivery is open. A slot is of the current run. */
const isCurrent = /* sql */ `(t.state in ('queued', 'running') and exists (select from freed))`;

/** The receiver's concurrency afterwards: 1 while `Retry-After` lasts, also after a late 2xx. */
const concurrencyAfter = /* sql */ `case
        when ${$.retryAfterSeconds} is not null or ${hasRetryAfterSql} then 1
        when not ${isDelivered} then greatest(1, r.concurrency / 2)
        when ${$.tookMs} > 3000 then greatest(3, r.concurrency / 2)
        else least(${maxConcurrency}, r.concurrency * 2) end`;

/**
 * Records how an attempt ended and what follows for its delivery and its receiver.
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
    select d.state, d.subject_id, d.sequence is null and ${isDelivered} and d.state <> 'cancelled' as lacks_sequence
    from delivery d where ${isOfDelivery('d')}
    for no key update
  ), recorded as (
    insert into delivery_attempt as a (organization_id, webhook_id, event_id, id, number, run, ends_schedule,
      signed_with, started_at, finished_at, status, cause, explanation, timings, peer_address, kept_bytes, response,
      response_encoding, headers)
    select ${delivery}, ${$.attemptId}, coalesce((select o.number from delivery_attempt o
        where ${isOfDelivery('o')} and o.id = ${$.attemptId}),
        next_attempt_number(${delivery})), ${$.run}, ${$.endsSchedule}, ${$.signedWith},
      ${$.startedAt}, clock_timestamp(), ${$.status}, ${$.cause}, ${$.explanation}, ${$.timings}, ${$.peerAddress},
      ${$.keptBytes}, ${$.response}, ${$.encoding}, ${$.headers} from target
    on conflict (organization_id, webhook_id, event_id, id) do update set finished_at = excluded.finished_at,
      status = excluded.status, cause = excluded.cause, explanation = excluded.explanation,
      timings = excluded.timings, peer_address = excluded.peer_address, kept_bytes = excluded.kept_bytes,
      response = excluded.response, response_encoding = excluded.response_encoding, headers = excluded.headers
    where a.finished_at is null or a.cause = 'lost' and ${isDelivered}
    returning a.number
  ), freed as (
    delete from slot s using target t
    where ${isOfDelivery('s')} and s.attempt_id = ${$.attemptId}
    returning s.attempt_id
  ), is_exhausted as materialized (
    -- An event that is redelivered, and begins another schedule, is not a second event that failed.
    select (select coalesce(max(a.number) filter (where not a.ends_schedule) < min(a.number) filter (where
        a.ends_schedule), true) from delivery_attempt a where ${isOfDelivery('a')}) as is_first
    from target t where ${$.endsSchedule} and ${$.outcome} = 'failed' and t.state = 'running' and ${isCurrent}
  ), receiver_now as (
    update receiver r set concurrency = ${concurrencyAfter},
      failing_since = case when not ${isDelivered} then coalesce(r.failing_since, clock_timestamp()) end,
      exhausted_in_row = case when ${isDelivered} then 0
        else least(r.exhausted_in_row + (select count(*) from is_exhausted e where e.is_first), 1000) end,
      retry_after_until = greatest(case when ${hasRetryAfterSql} then r.retry_after_until end,
        clock_timestamp() + make_interval(secs => ${$.retryAfterSeconds})),
      gone_at = case when ${$.status} = 410 then coalesce(r.gone_at, clock_timestamp()) else r.gone_at end,
      next_sequence = r.next_sequence + t.lacks_sequence::integer
    from target t
    where r.organization_id = ${organizationId} and r.webhook_id = ${webhookId} and ${$.outcome} <> 'internal_error'
      and exists (select from recorded) and (t.lacks_sequence or r.reset_at = ${$.resetAt})
      -- Most attempts are accepted by a receiver that accepts all: nothing is written then.
      and (t.lacks_sequence or r.concurrency <> ${concurrencyAfter} or case when ${isDelivered}
        then r.failing_since is not null
        else r.failing_since is null or ${$.retryAfterSeconds} is not null or ${$.status} = 410
          or exists (select from is_exhausted) end)
    returning r.next_sequence - 1 as sequence
  ), next as materialized (
    select case when ${isDelivered} and exists (select from recorded)
          and t.state in ('queued', 'running', 'blocked', 'exhausted') then 'delivered'
        when exists (select from is_exhausted) then 'exhausted'
        when not ${isDelivered} and ${isCurrent} then t.state end as state, t.lacks_sequence, t.subject_id
    from target t
  ), settled as materialized (
    select ${organizationId} as organization_id, ${webhookId} as webhook_id, ${eventId} as event_id,
      n.subject_id from next n
    where n.state in ('delivered', 'exhausted')
  ), ${unblockNextSql('settled')}
  update delivery d set state = coalesce(n.state, d.state), attempts = greatest(d.attempts, r.number),
    failures = d.failures + coalesce(n.state <> 'delivered' and ${$.outcome} = 'failed', false)::integer,
    due_at = case n.state when 'running' then clock_timestamp() + make_interval(secs => ${$.waitMs} / 1000)
      when 'delivered' then null when 'exhausted' then null else d.due_at end,
    settled_at = case when n.state in ('delivered', 'exhausted') then clock_timestamp() else d.settled_at end,
    sequence = coalesce(d.sequence, (select r.sequence from receiver_now r where n.lacks_sequence))
  from next n left join recorded r on true
  where ${isOfDelivery('d')}
  returning d.state`;

/**
 * Records what is kept of a response that arrived after its outcome: `$1`…`$3` the delivery, `$4`
 * the attempt's id, `$5` kept bytes, `$6` the beginning, `$7` its encoding or null.
 */
export const recordResponseSql = /* sql */ `
  update delivery_attempt a set kept_bytes = $5::integer, response = $6::bytea, response_encoding = $7::text
  where a.organization_id = $1 and a.webhook_id = $2 and a.event_id = $3 and a.id = $4 and a.status is not null`;
