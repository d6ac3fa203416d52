import { Migration } from '@mikro-orm/migrations';

/**
 * Forgets deliveries that were settled long ago, and finds the attempts that a webhook had lately. Design, sections 3 and 6.
 *
 * What is forgotten stays in the ledger's sums: they tell what was owed since the installation began. Only what is rolled up is forgotten, as that alone was counted and
 * found right; a fault keeps its rows. A function does it because no login but the owner's may delete a delivery.
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

    // Row by row along the primary keys, as no statistics can mislead that, and statement after statement: the triggers of the ledger change deliveries whose attempts go, and
    // events whose deliveries go. A batch of 500 took 0.3 to 1.1 s on two busy cores.
    this.addSql(/* sql */ `
      create function forget_deliveries(retention interval, at_most integer, out deliveries integer, out events integer)
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        settled_before timestamptz := clock_timestamp() - retention;
        gone record;
        -- Whose sums have changed, in the ledger's UTC.
        days date[] := '{}';
      begin
        if retention < interval '31 days' then
          raise exception 'deliveries are kept for 31 days at least' using errcode = 'invalid_parameter_value';
        end if;
        deliveries := 0;
        events := 0;
        for gone in
          select d.organization_id, d.webhook_id, d.event_id, d.state, d.sequence, (d.created_at at time zone 'UTC')::date as day from delivery d
          join event e on e.organization_id = d.organization_id and e.id = d.event_id and e.rolled_up
          where d.rolled_up and d.settled_at < settled_before
          order by d.settled_at, d.event_id, d.webhook_id
          limit at_most
          for update of d skip locked
        loop
          delete from delivery_attempt a where a.organization_id = gone.organization_id and a.webhook_id = gone.webhook_id and a.event_id = gone.event_id;
          delete from delivery d where d.organization_id = gone.organization_id and d.webhook_id = gone.webhook_id and d.event_id = gone.event_id;
          update event e set obligations = e.obligations - 1 where e.organization_id = gone.organization_id and e.id = gone.event_id;
          -- The triggers have taken it out of the sums; here it comes back.
          insert into ledger_day (day, obligations, delivered, exhausted, cancelled)
          values (gone.day, 1, (gone.state = 'delivered')::integer, (gone.state = 'exhausted')::integer, (gone.state = 'cancelled')::integer);
          if gone.sequence is not null then
            insert into ledger_count (organization_id, webhook_id, numbered) values (gone.organization_id, gone.webhook_id, 1);
          end if;
          days := days || gone.day;
          deliveries := deliveries + 1;
        end loop;

        for gone in
          select e.organization_id, e.id, (e.created_at at time zone 'UTC')::date as day from event e
          where e.obligations = 0 and e.created_at < settled_before
            and not exists (select from delivery d where d.organization_id = e.organization_id and d.event_id = e.id)
          order by e.created_at, e.id
          limit at_most
          for update of e skip locked
        loop
          delete from event e where e.organization_id = gone.organization_id and e.id = gone.id;
          insert into ledger_count (organization_id, events) values (gone.organization_id, 1);
          days := days || gone.day;
          events := events + 1;
        end loop;

        -- What all this left in the sums, a row at a time, becomes one row a day again. It waits for a rolling up that holds some of them, which never waits for it.
        with folded as (
          delete from ledger_day l where l.day = any (days) returning l.day, l.obligations, l.delivered, l.exhausted, l.cancelled
        )
        insert into ledger_day (day, obligations, delivered, exhausted, cancelled)
        select f.day, sum(f.obligations), sum(f.delivered), sum(f.exhausted), sum(f.cancelled) from folded f group by f.day;
      end $$;
      grant execute on function forget_deliveries to org_api_worker;
    `);
  }
}
