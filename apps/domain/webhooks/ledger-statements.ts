import { healthyConcurrency, maxConcurrency, organizationConcurrency } from './limits.ts';
import { hasRetryAfterSql, isHoldingSql, isOpenSql, overdueOfWebhookSql } from './open-deliveries.ts';

/**
 * The ledger compares what was to be delivered, as the trigger that created the events counted it,
 * with the results, as proof shows them.
 *
 * The proof of a settled delivery is
 * - `delivered`: an attempt of any run that was answered with a 2xx;
 * - `exhausted`: an attempt of its last run that was the schedule's last and ended without a 2xx,
 *   including `lost`;
 * - `cancelled`: the entry in the audit log which says that its webhook was deleted, or that a
 *   person cancelled it.
 *
 * `roll_up_ledger` has the same condition: a sum is written by the database alone.
 */
export const isProvenSql = /* sql */ `
  case d.state
    when 'delivered' then exists (
      select from delivery_attempt a
      where a.organization_id = d.organization_id and a.webhook_id = d.webhook_id and a.event_id = d.event_id
        and a.status between 200 and 299 and a.finished_at is not null)
    when 'exhausted' then exists (
      select from delivery_attempt a
      where a.organization_id = d.organization_id and a.webhook_id = d.webhook_id and a.event_id = d.event_id
        and a.ends_schedule and a.run = d.run and a.finished_at is not null and (a.status is null
        or a.status not between 200 and 299))
    else exists (
      select from webhook_deletion l where l.organization_id = d.organization_id and l.webhook_id = d.webhook_id::text)
    or exists (
      select from delivery_cancellation l
      where l.organization_id = d.organization_id and l.webhook_id = d.webhook_id::text
        and l.event_id = d.event_id::text)
  end`;

const settledStates = /* sql */ `('delivered', 'exhausted', 'cancelled')`;

/**
 * Whether overdue deliveries of the webhook `w` with its receiver `r` wait for their own receiver or
 * for others of their organization: the receiver asked to wait or answered 410, as many attempts
 * were made within the last minute as the webhook or its organization may have at once, or it is
 * degraded and was tried within the last five.
 *
 * Slots that are taken now would say less: a hanging receiver leaves them free for seconds between
 * two attempts, and a claim of a dead worker takes them too. The index requires a number.
 */
const waitsForReceiver = /* sql */ `(
  coalesce(${hasRetryAfterSql}, false) or r.gone_at is not null
  or (select count(*) from (
      select from delivery_attempt a
      where a.organization_id = w.organization_id and a.webhook_id = w.id and a.number > 0
        and a.started_at between clock_timestamp() - interval '1 minute' and clock_timestamp()
      limit ${maxConcurrency}) used) >= r.concurrency
  or (select count(*) from (
      select from webhook o join delivery_attempt a on a.organization_id = o.organization_id and a.webhook_id = o.id
      where o.organization_id = w.organization_id and a.number > 0
        and a.started_at between clock_timestamp() - interval '1 minute' and clock_timestamp()
      limit ${organizationConcurrency}) used) >= ${organizationConcurrency}
  or r.concurrency < ${healthyConcurrency} and exists (
    select from delivery_attempt a
    where a.organization_id = w.organization_id and a.webhook_id = w.id and a.number > 0
      and a.started_at between clock_timestamp() - interval '5 minutes' and clock_timestamp()))`;

/**
 * Two counts for each organization and each webhook: `changes` against `events` of an organization
 * (`webhook_id` null), and `given` sequence numbers against `numbered` deliveries of a webhook. The
 * first of each is independent of the rows of the second. Where the two differ, rows were deleted
 * or never created.
 */
const independentCounts = /* sql */ `
  select c.organization_id, c.webhook_id, sum(c.counted)::bigint as counted, sum(c.found)::bigint as found
  from (
    select l.organization_id, l.webhook_id, l.changes as counted, l.events + l.numbered as found from ledger_count l
    union all
    select r.organization_id, r.webhook_id, r.next_sequence - 1, 0 from receiver r
    union all
    select e.organization_id, null, 0, count(*) from event e where not e.rolled_up group by e.organization_id
    union all
    select d.organization_id, d.webhook_id, 0, count(d.sequence) from delivery d
      where ${isOpenSql} group by d.organization_id, d.webhook_id
    union all
    select d.organization_id, d.webhook_id, 0, count(d.sequence) from delivery d
    where not d.rolled_up and d.state in ${settledStates} group by d.organization_id, d.webhook_id
  ) c
  group by c.organization_id, c.webhook_id
  having sum(c.counted) <> sum(c.found)`;

/** Lists differences of the independent counts, at most `$1`: rows as those of `listLedgerFaultsSql`. */
export const listUnexplainedSql = /* sql */ `
  select case when c.webhook_id is null then 'events_differ' else 'numbers_differ' end as kind,
    c.organization_id as "organizationId", c.webhook_id as "webhookId", null as "eventId", null as state,
    c.counted::float8 as counted, c.found::float8 as found
  from (${independentCounts}) c
  order by c.organization_id, c.webhook_id nulls first limit $1`;

/** Folds sums of one day, organization or webhook into one row, at most 50,000 of each table. */
export const foldLedgerSql = /* sql */ `select fold_ledger()`;

/**
 * The whole ledger in one row, `{ledger}`, in one statement and so in one snapshot.
 *
 * Rolled-up deliveries are a sum; only open deliveries, and those settled or created since the last
 * roll-up, are counted, each by a partial index.
 *
 * `difference` is `missing` minus `surplus`. The event of a deleted delivery is not rolled up, so
 * missing deliveries are found among such events and among settled deliveries without proof. What
 * else the sums lack is missing too, and the rest of the difference is surplus. A direct search for
 * invented rows would read every open delivery.
 */
export const readLedgerSql = /* sql */ `
  with rolled as (
    select coalesce(sum(l.deliveries), 0) as deliveries, coalesce(sum(l.delivered), 0) as delivered,
      coalesce(sum(l.exhausted), 0) as exhausted,
      coalesce(sum(l.cancelled), 0) as cancelled
    from ledger_day l
  ), made as (
    select coalesce(sum(e.delivery_count), 0) as deliveries, coalesce(sum(greatest(e.delivery_count - n.found, 0)),
      0) as missing
    from event e
    cross join lateral (select count(*) as found from delivery d where d.organization_id = e.organization_id
      and d.event_id = e.id) n
    where not e.rolled_up
  ), settled as (
    select count(*) filter (where d.state = 'delivered') as delivered, count(*) filter (where d.state = 'exhausted')
      as exhausted,
      count(*) filter (where d.state = 'cancelled') as cancelled, count(*) filter (where ${isProvenSql}) as proven
    from delivery d where not d.rolled_up and d.state in ${settledStates}
  ), open as (
    select d.organization_id, d.webhook_id, count(*) as count from delivery d where ${isOpenSql}
    group by d.organization_id, d.webhook_id
  ), waiting as (
    select coalesce(sum(o.count) filter (where not ${isHoldingSql}), 0) as count,
      coalesce(sum(o.count) filter (where ${isHoldingSql}), 0) as held,
      coalesce(sum(l.count), 0) as overdue,
      coalesce(sum(l.count) filter (where l.count > 0 and not ${waitsForReceiver}), 0) as stuck
    from open o join webhook w on w.organization_id = o.organization_id and w.id = o.webhook_id
    join receiver r on r.organization_id = o.organization_id and r.webhook_id = o.webhook_id
    left join lateral ${overdueOfWebhookSql} l on w.state = 'active'
  ), compared as (
    select r.deliveries + m.deliveries - (r.delivered + r.exhausted + r.cancelled + s.proven) - w.count - w.held
      as difference,
      m.missing + s.delivered + s.exhausted + s.cancelled - s.proven as missing
    from rolled r, made m, settled s, waiting w
  )
  select json_build_object(
    'required', r.deliveries + m.deliveries,
    'delivered', r.delivered + s.delivered,
    'waiting', w.count,
    'held', w.held,
    'exhausted', r.exhausted + s.exhausted,
    'cancelled', r.cancelled + s.cancelled,
    'difference', c.difference,
    'missing', greatest(c.missing, c.difference),
    'surplus', greatest(c.missing, c.difference) - c.difference,
    'overdue', w.overdue,
    'stuck', w.stuck,
    'unexplained', (select coalesce(sum(abs(u.counted - u.found)), 0) from (${independentCounts}) u)) as ledger
  from rolled r, made m, settled s, waiting w, compared c`;

/**
 * Rolls up what was settled, or created, more than `$1` seconds ago, at most `$2` rows of each:
 * deliveries with their proof, and events with as many deliveries as they counted. One row,
 * `{deliveries, events}`. A row with a fault is never rolled up, so it stays where faults are
 * searched. Several processes may run it at once.
 */
export const rollUpLedgerSql = /* sql */ `select deliveries, events from roll_up_ledger($1, $2)`;

/**
 * Lists the causes of the difference, oldest event first, at most `$1`: a row per fault,
 * `{kind, organizationId, webhookId, eventId, state, counted, found}`. It reads what is not rolled
 * up; `everything` reads every row (minutes with many millions), for a suspicion that the triggers
 * were disabled.
 */
export const listLedgerFaultsSql = (everything: boolean) => /* sql */ `
  with candidate as (
    ${
      everything
        ? 'select e.organization_id, e.id from event e'
        : `select e.organization_id, e.id from event e where not e.rolled_up
    union select d.organization_id, d.event_id from delivery d where not d.rolled_up and d.state in ${settledStates}
    union select d.organization_id, d.event_id from delivery d where ${isOpenSql}`
    }
  ), fault as (
    select 'delivery_count_differs' as kind, e.organization_id, null::uuid as webhook_id, e.id as event_id,
      null as state, e.delivery_count as counted, n.found, e.created_at
    from candidate c
    join event e on e.organization_id = c.organization_id and e.id = c.id
    cross join lateral (
      select count(*)::integer as found from delivery d where d.organization_id = e.organization_id
        and d.event_id = e.id
    ) n
    where e.delivery_count <> n.found
    union all
    select 'no_proof', d.organization_id, d.webhook_id, d.event_id, d.state, null, null, d.created_at
    from delivery d
    where ${everything ? '' : 'not d.rolled_up and '}d.state in ${settledStates} and not ${isProvenSql}
  )
  select f.kind, f.organization_id as "organizationId", f.webhook_id as "webhookId", f.event_id as "eventId",
    f.state, f.counted, f.found
  from fault f order by f.created_at, f.event_id, f.webhook_id nulls first limit $1`;
