import { deliveriesPerStatement as atMost } from '#domain/webhooks/limits.ts';
import { waitAfterFailureSql } from '../schedule.ts';
import { slotMs } from '../times.ts';
import { unblockNextSql } from './order.ts';

/** A delivery that `repairDeliveriesSql` requeued or settled, or whose slot it freed. */
export interface RepairedRow {
  organizationId: string;
  webhookId: string;
  eventId: string;
  run: number;
  /**
   * `lost`: its attempt had no outcome in time. `not_started`: its run asked for no attempt in time.
   * `late`: its run did not ask when it was due. `old_slot`: only a slot was left, and the delivery
   * stays as it is.
   */
  kind: 'lost' | 'not_started' | 'late' | 'old_slot';
  /** The state that follows. */
  state: 'queued' | 'running' | 'delivered' | 'exhausted' | 'cancelled';
  /** The lost attempt's number, and when it began (Unix, ms); null for the other kinds. */
  number: number | null;
  startedAtMs: number | null;
}

const waitMs = waitAfterFailureSql({
  delaysMs: '$3::double precision[]',
  failures: 'd.failures',
  random: 'random()',
});

/**
 * Repairs deliveries whose process or workflow is gone; any worker runs it each second.
 *
 * Frees slots whose time has passed: an attempt in progress is closed as lost and counts as a
 * failure, so at most `$1` attempts fail or are lost after the event or a redelivery, even if each
 * kills its worker; a claim whose attempt was not admitted goes back to the queue. Runs that have
 * not asked `$2` seconds after they were due go back to the queue, too. The run's number stays: one
 * that was only late may still ask until another is claimed. `$3`: the wait after each failure in
 * ms, in order; the last one is used for all further ones, and a tenth is added at random. At most
 * `deliveriesPerStatement` of each.
 * Returns a `RepairedRow` per delivery.
 *
 * A slot that has longer than an attempt may have, by more than a statement takes, is from before the
 * clock was set back: its time begins again, so an attempt in progress keeps it.
 *
 * Times are compared with `statement_timestamp()`: a volatile function would use no index (122 ms
 * instead of 0.4 with 500,000 sleeping deliveries). Each delivery is locked by its key before its
 * slot is read again, and rows that another connection has locked are skipped. What is exhausted
 * unblocks the next delivery of its subject.
 */
export const repairDeliveriesSql = /* sql */ `
  with target as materialized (
    select d.organization_id, d.webhook_id, d.event_id, d.state, d.failures, d.subject_id
    from (select s.* from slot s where s.until < statement_timestamp() order by s.until limit ${atMost}) o
    cross join lateral (
      select d.organization_id, d.webhook_id, d.event_id, d.state, d.failures, d.subject_id from delivery d
      where d.organization_id = o.organization_id and d.webhook_id = o.webhook_id and d.event_id = o.event_id
      limit 1
      for no key update skip locked
    ) d
  ), bounded as (
    update slot s set until = statement_timestamp() + interval '${slotMs} milliseconds'
    where s.until > statement_timestamp() + interval '${slotMs} milliseconds 10 seconds'
  ), freed as (
    delete from slot s using target t
    where s.organization_id = t.organization_id and s.webhook_id = t.webhook_id and s.event_id = t.event_id
      and s.until < statement_timestamp()
    returning s.organization_id, s.webhook_id, s.event_id, s.run, s.attempt_id, t.subject_id,
      t.state = 'running' as is_current, t.failures + 1 >= $1::integer as ends_schedule
  ), settled as materialized (
    select f.organization_id, f.webhook_id, f.event_id, f.subject_id from freed f
    where f.is_current and f.attempt_id is not null and f.ends_schedule
  ), ${unblockNextSql('settled')}, lost as (
    -- A worker with a longer schedule may have made it: by this one it was the last.
    update delivery_attempt a set finished_at = clock_timestamp(), cause = 'lost',
      ends_schedule = a.ends_schedule or f.is_current and f.ends_schedule,
      explanation = 'No outcome was recorded in time: the process that made this attempt ended, or the database was '
        'unavailable. The receiver may have received it, and recognizes a repeat by the event id.'
    from freed f
    where a.organization_id = f.organization_id and a.webhook_id = f.webhook_id and a.event_id = f.event_id
      and a.id = f.attempt_id and a.finished_at is null
    returning a.organization_id, a.webhook_id, a.event_id, a.number, a.started_at
  ), late as (
    select d.organization_id, d.webhook_id, d.event_id, d.run from delivery d
    where d.state = 'running' and d.due_at < statement_timestamp() - make_interval(secs => $2::double precision)
      and not exists (
        select from slot s where s.organization_id = d.organization_id and s.webhook_id = d.webhook_id
          and s.event_id = d.event_id)
    order by d.due_at limit ${atMost}
    for no key update skip locked
  ), repaired as (
    select f.organization_id, f.webhook_id, f.event_id, f.run, f.is_current,
      case when f.attempt_id is not null then 'lost' when f.is_current then 'not_started' else 'old_slot' end as kind,
      l.number, l.started_at
    from freed f left join lost l on l.organization_id = f.organization_id and l.webhook_id = f.webhook_id
      and l.event_id = f.event_id
    union all
    select l.organization_id, l.webhook_id, l.event_id, l.run, true, 'late', null, null from late l
  )
  update delivery d set
    attempts = greatest(d.attempts, x.number),
    failures = d.failures + (x.is_current and x.kind = 'lost')::integer,
    state = case when not x.is_current then d.state when x.kind = 'lost' and d.failures + 1 >= $1::integer
      then 'exhausted' else 'queued' end,
    due_at = case when not x.is_current then d.due_at when x.kind <> 'lost' then clock_timestamp()
      when d.failures + 1 < $1::integer then clock_timestamp() + make_interval(secs => ${waitMs} / 1000) end,
    settled_at = case when x.is_current and x.kind = 'lost' and d.failures + 1 >= $1::integer
      then clock_timestamp() else d.settled_at end
  from repaired x
  where d.organization_id = x.organization_id and d.webhook_id = x.webhook_id and d.event_id = x.event_id
  returning d.organization_id as "organizationId", d.webhook_id as "webhookId", d.event_id as "eventId", x.run, x.kind,
    d.state, x.number, (extract(epoch from x.started_at) * 1000)::double precision as "startedAtMs"`;
