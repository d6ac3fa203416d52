import { Migration } from '@mikro-orm/migrations';

/**
 * Forgets deliveries that were settled long ago, and finds the attempts that a webhook had lately.
 * Design, sections 3 and 6.
 *
 * What is forgotten stays in the ledger's sums: they tell what was owed since the installation
 * began. Only what is rolled up is forgotten, as that alone was counted and found right; a fault
 * keeps its rows. A function does it because no login but the owner's may delete a delivery.
 * Running pods: survive it; deliveries wait while the indexes are built.
 */
export class DeliveryRetention extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      -- The condition is always true, and keeps every statement that does not name it from this index: without statistics the planner took it for the attempts of one
      -- delivery, instead of the primary key, and read all of the webhook's for each (11 s for a ledger of 5,000).
      create index delivery_attempt_lately on delivery_attempt (organization_id, webhook_id, started_at) where number > 0;
      create index delivery_rolled_up on delivery (settled_at) where rolled_up;
      -- Those of nobody's interest too: an event is stored whether anybody subscribes or not.
      create index event_owes_nothing on event (created_at) where obligations = 0;
    `);

    // One statement deletes attempts, deliveries and events, so that their foreign keys are checked
    // when all are gone, and the triggers of the ledger see each table once. What the triggers take
    // out of the sums is put back: it was counted. Joins along the primary keys only, whatever the
    // statistics say of tables that large.
    this.addSql(/* sql */ `
      create function forget_deliveries(retention interval, at_most integer, out deliveries integer, out events integer)
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        settled_before timestamptz := clock_timestamp() - retention;
      begin
        if retention < interval '31 days' then
          raise exception 'deliveries are kept for 31 days at least' using errcode = 'invalid_parameter_value';
        end if;
        perform set_config(name, 'off', true) from unnest(array['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin']) name;
        with old as materialized (
          select d.organization_id, d.webhook_id, d.event_id from delivery d
          join event e on e.organization_id = d.organization_id and e.id = d.event_id and e.rolled_up
          where d.rolled_up and d.settled_at < settled_before
          order by d.settled_at, d.event_id, d.webhook_id
          limit at_most
          for update of d skip locked
        ), old_event as materialized (
          select o.organization_id, o.event_id, count(*)::integer as gone from old o group by o.organization_id, o.event_id
        ), attempts_gone as (
          delete from delivery_attempt a using old o
          where a.organization_id = o.organization_id and a.webhook_id = o.webhook_id and a.event_id = o.event_id
        ), deliveries_gone as (
          delete from delivery d using old o
          where d.organization_id = o.organization_id and d.webhook_id = o.webhook_id and d.event_id = o.event_id
          returning d.organization_id, d.webhook_id, d.state, d.sequence, (d.created_at at time zone 'UTC')::date as day
        ), events_left as (
          update event e set obligations = e.obligations - o.gone from old_event o
          where e.organization_id = o.organization_id and e.id = o.event_id and e.obligations > o.gone
        ), events_gone as (
          delete from event e using old_event o
          where e.organization_id = o.organization_id and e.id = o.event_id and e.obligations = o.gone
          returning e.organization_id
        ), days as (
          insert into ledger_day (day, obligations, delivered, exhausted, cancelled)
          select d.day, count(*), count(*) filter (where d.state = 'delivered'), count(*) filter (where d.state = 'exhausted'),
            count(*) filter (where d.state = 'cancelled')
          from deliveries_gone d group by d.day
        ), counts as (
          insert into ledger_count (organization_id, webhook_id, events, numbered)
          select e.organization_id, null, count(*), 0 from events_gone e group by e.organization_id
          union all
          select d.organization_id, d.webhook_id, 0, count(*) from deliveries_gone d
          where d.sequence is not null group by d.organization_id, d.webhook_id
        )
        select (select count(*) from deliveries_gone), (select count(*) from events_gone) into deliveries, events;

        -- Those that nobody had subscribed to, and those whose last delivery went before.
        with old as materialized (
          select e.organization_id, e.id from event e
          where e.obligations = 0 and e.created_at < settled_before
            and not exists (select from delivery d where d.organization_id = e.organization_id and d.event_id = e.id)
          order by e.created_at, e.id
          limit at_most
          for update of e skip locked
        ), events_gone as (
          delete from event e using old o where e.organization_id = o.organization_id and e.id = o.id
          returning e.organization_id
        ), counts as (
          insert into ledger_count (organization_id, events)
          select e.organization_id, count(*) from events_gone e group by e.organization_id
        )
        select events + count(*) into events from events_gone;

        -- What this left in the sums becomes one row a day again. It waits for a rolling up that holds some of them, which
        -- never waits for it.
        with folded as (
          delete from ledger_day l where l.day in (select o.day from ledger_day o group by o.day having count(*) > 1)
          returning l.day, l.obligations, l.delivered, l.exhausted, l.cancelled
        )
        insert into ledger_day (day, obligations, delivered, exhausted, cancelled)
        select f.day, sum(f.obligations), sum(f.delivered), sum(f.exhausted), sum(f.cancelled) from folded f group by f.day;
      end $$;
      grant execute on function forget_deliveries to org_api_worker;
    `);
  }
}
