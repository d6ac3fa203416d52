import { Migration } from '@mikro-orm/migrations';

/**
 * The ledger: two separate counts of every delivery that must agree, and the retention of
 * deliveries.
 *
 * Rows that were counted and found correct are rolled up into sums by day. A change or deletion of
 * such a row subtracts it from its day's sum in the same transaction, so a redelivery, a late 2xx,
 * retention and a manual change all leave the ledger correct. Rows are only added to the sums, so
 * no two changes wait for each other; rolling up folds them.
 */
export class Ledger extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      -- A day may have several rows; their sum counts.
      create table ledger_day (
        id bigint generated always as identity primary key,
        -- UTC, of the event.
        day date not null,
        deliveries bigint not null default 0,
        delivered bigint not null default 0,
        exhausted bigint not null default 0,
        cancelled bigint not null default 0
      );
      create index ledger_day_by_day on ledger_day (day);
    `);

    // The steps of maintenance, one of which reads the ledger. A worker claims a step that is due
    // by moving `due_at` a minute ahead, so one that hangs holds nothing for longer. Workers add
    // the rows.
    this.addSql(/* sql */ `
      create table maintenance_step (
        name text primary key,
        due_at timestamptz not null default clock_timestamp(),
        -- When \`due_at\` was written. It is ahead of a clock that was set back, and so is \`due_at\`.
        set_at timestamptz not null default clock_timestamp(),
        -- What the step found last, which all workers show, and when; null for steps that find nothing.
        reading json,
        read_at timestamptz
      ) with (fillfactor = 50);
    `);

    // Separate triggers count events, one statement at a time. So an event that is
    // missing with all of its deliveries shows, and so does a trigger that was disabled. They also
    // fire for replicated changes ("always"). They run as the owner, because the writer has no
    // right on the table. WHEN sees the writer's role, as for the events.
    this.addSql(/* sql */ `
      create table ledger_count (
        id bigint generated always as identity primary key,
        organization_id uuid not null,
        -- Null: of the organization.
        webhook_id uuid,
        -- Changes of access and seats, and notices, that should have created an event.
        changes bigint not null default 0,
        -- Events that are rolled up.
        events bigint not null default 0,
        -- Rolled up deliveries of the webhook that have a sequence number;
        -- \`receiver.next_sequence\` counts them all.
        numbered bigint not null default 0
      );

      create function count_client_grant_changes() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if tg_op = 'INSERT' then
          insert into ledger_count (organization_id, changes)
          select n.organization_id, count(*) from after_change n
          where n.status = 'active' and (n.ends_at is null or n.ends_at > now()) group by n.organization_id;
        else
          insert into ledger_count (organization_id, changes)
          select n.organization_id, count(*) from after_change n
          join before_change o on o.organization_id = n.organization_id and o.id = n.id
          where (o.status, n.status) in (('scheduled', 'active'), ('active', 'ended')) group by n.organization_id;
        end if;
        return null;
      end $$;
      create function count_seat_changes() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if tg_op = 'INSERT' then
          insert into ledger_count (organization_id, changes)
          select n.organization_id, count(*) from after_change n where n.ended_at is null group by n.organization_id;
        else
          insert into ledger_count (organization_id, changes)
          select n.organization_id, count(*) from after_change n
          join before_change o on o.organization_id = n.organization_id and o.id = n.id
          where o.ended_at is null and n.ended_at is not null group by n.organization_id;
        end if;
        return null;
      end $$;
      create trigger client_grant_inserts_counted after insert on client_grant referencing new table as after_change
        for each statement when (current_user <> 'org_api_backfill') execute function count_client_grant_changes();
      create trigger client_grant_updates_counted after update on client_grant
        referencing old table as before_change new table as after_change
        for each statement when (current_user <> 'org_api_backfill') execute function count_client_grant_changes();
      create trigger seat_inserts_counted after insert on seat referencing new table as after_change
        for each statement when (current_user <> 'org_api_backfill') execute function count_seat_changes();
      create trigger seat_updates_counted after update on seat
        referencing old table as before_change new table as after_change
        for each statement when (current_user <> 'org_api_backfill') execute function count_seat_changes();
      alter table client_grant enable always trigger client_grant_inserts_counted;
      alter table client_grant enable always trigger client_grant_updates_counted;
      alter table seat enable always trigger seat_inserts_counted;
      alter table seat enable always trigger seat_updates_counted;
    `);

    this.addSql(/* sql */ `
      create function delivery_leaves_ledger() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        if old.rolled_up then
          insert into ledger_day (day, delivered, exhausted, cancelled)
            values ((old.created_at at time zone 'UTC')::date,
            -(old.state = 'delivered')::integer, -(old.state = 'exhausted')::integer,
              -(old.state = 'cancelled')::integer);
          if old.sequence is not null then
            insert into ledger_count (organization_id, webhook_id, numbered)
              values (old.organization_id, old.webhook_id, -1);
          end if;
        end if;
        new.rolled_up := false;
        return new;
      end $$;
      create trigger delivery_leaves_ledger before update on delivery for each row
        when (old.rolled_up and (new.state <> old.state or not new.rolled_up))
          execute function delivery_leaves_ledger();
      -- Deletions are counted per statement: retention deletes thousands of rows in one.
      create function deleted_deliveries_leave_ledger() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        insert into ledger_day (day, delivered, exhausted, cancelled)
        select (o.created_at at time zone 'UTC')::date, -count(*) filter (where o.state = 'delivered'),
          -count(*) filter (where o.state = 'exhausted'), -count(*) filter (where o.state = 'cancelled')
        from gone o where o.rolled_up group by 1;
        insert into ledger_count (organization_id, webhook_id, numbered)
        select o.organization_id, o.webhook_id, -count(*) from gone o
        where o.rolled_up and o.sequence is not null group by o.organization_id, o.webhook_id;
        -- Their events counted them, and are checked again, whether they were rolled up or not.
        update event e set rolled_up = false
        where e.rolled_up and (e.organization_id, e.id) in (select o.organization_id, o.event_id from gone o);
        return null;
      end $$;
      create trigger delivery_deleted_leaves_ledger after delete on delivery referencing old table as gone
        for each statement execute function deleted_deliveries_leave_ledger();

      create function event_leaves_ledger() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        insert into ledger_day (day, deliveries) values ((old.created_at at time zone 'UTC')::date,
          -old.delivery_count);
        insert into ledger_count (organization_id, events) values (old.organization_id, -1);
        new.rolled_up := false;
        return new;
      end $$;
      create trigger event_leaves_ledger before update on event for each row
        when (old.rolled_up and (new.delivery_count <> old.delivery_count or not new.rolled_up))
          execute function event_leaves_ledger();
      create function deleted_events_leave_ledger() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        insert into ledger_day (day, deliveries)
        select (o.created_at at time zone 'UTC')::date, -sum(o.delivery_count) from gone o where o.rolled_up group by 1;
        insert into ledger_count (organization_id, events)
        select o.organization_id, -count(*) from gone o where o.rolled_up group by o.organization_id;
        return null;
      end $$;
      create trigger event_deleted_leaves_ledger after delete on event referencing old table as gone
        for each statement execute function deleted_events_leave_ledger();

      -- An attempt that has ended is a proof: without it, or with another outcome, its delivery
      -- needs a new proof.
      create function delivery_attempt_leaves_ledger() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        update delivery d set rolled_up = false
        where d.organization_id = old.organization_id and d.webhook_id = old.webhook_id and d.event_id = old.event_id
          and d.rolled_up;
        return null;
      end $$;
      create trigger delivery_attempt_leaves_ledger after update on delivery_attempt for each row
        when (old.finished_at is not null) execute function delivery_attempt_leaves_ledger();
      create function deleted_attempts_leave_ledger() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        update delivery d set rolled_up = false from (
          select distinct o.organization_id, o.webhook_id, o.event_id from gone o where o.finished_at is not null
        ) o
        where d.organization_id = o.organization_id and d.webhook_id = o.webhook_id and d.event_id = o.event_id
          and d.rolled_up;
        return null;
      end $$;
      create trigger delivery_attempt_deleted_leaves_ledger after delete on delivery_attempt
        referencing old table as gone
        for each statement execute function deleted_attempts_leave_ledger();
    `);

    // The only way for the worker to delete from the sums: each row is added to the sum that
    // replaces it. It waits for nothing: rows that another fold has locked are left to it.
    this.addSql(/* sql */ `
      create function fold_ledger() returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        with held as (
          select l.id from ledger_day l
          where l.day in (select o.day from ledger_day o group by o.day having count(*) > 1)
          order by l.id limit 50000
          for update of l skip locked
        ), folded as (
          delete from ledger_day l using held h where l.id = h.id
          returning l.day, l.deliveries, l.delivered, l.exhausted, l.cancelled
        )
        insert into ledger_day (day, deliveries, delivered, exhausted, cancelled)
        select f.day, sum(f.deliveries), sum(f.delivered), sum(f.exhausted), sum(f.cancelled)
          from folded f group by f.day;
        with several as (
          select l.organization_id, l.webhook_id from ledger_count l
          group by l.organization_id, l.webhook_id having count(*) > 1 limit 5000
        ), held as (
          select l.id from ledger_count l
          join several s on s.organization_id = l.organization_id and s.webhook_id is not distinct from l.webhook_id
          order by l.id limit 50000
          for update of l skip locked
        ), folded as (
          delete from ledger_count l using held h where l.id = h.id
          returning l.organization_id, l.webhook_id, l.changes, l.events, l.numbered
        )
        insert into ledger_count (organization_id, webhook_id, changes, events, numbered)
        select f.organization_id, f.webhook_id, sum(f.changes), sum(f.events), sum(f.numbered)
        from folded f group by f.organization_id, f.webhook_id;
      end;
    `);

    // Sums are written by functions and triggers alone, so that a login cannot add one that no row
    // proves. The proof is that of the ledger's statements.
    this.addSql(/* sql */ `
      create function roll_up_ledger(settled_for_seconds integer, at_most integer)
      returns table (deliveries integer, events integer)
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
      with due_delivery as (
        select d.organization_id, d.webhook_id, d.event_id from delivery d
        where not d.rolled_up and d.state in ('delivered', 'exhausted', 'cancelled')
          and d.settled_at < clock_timestamp() - make_interval(secs => settled_for_seconds) and (case d.state
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
          select from webhook_deletion l
          where l.organization_id = d.organization_id and l.webhook_id = d.webhook_id::text)
        or exists (
          select from delivery_cancellation l
          where l.organization_id = d.organization_id and l.webhook_id = d.webhook_id::text
            and l.event_id = d.event_id::text)
      end)
        order by d.settled_at, d.event_id, d.webhook_id
        limit at_most
        for no key update of d skip locked
      ), delivery_now as (
        update delivery d set rolled_up = true from due_delivery u
        where d.organization_id = u.organization_id and d.webhook_id = u.webhook_id and d.event_id = u.event_id
        returning d.organization_id, d.webhook_id, d.sequence, d.created_at, d.state
      ), due_event as (
        select e.organization_id, e.id from event e
        where not e.rolled_up and e.created_at < clock_timestamp() - make_interval(secs => settled_for_seconds)
          and e.delivery_count = (select count(*) from delivery d where d.organization_id = e.organization_id
          and d.event_id = e.id)
        order by e.created_at, e.id
        limit at_most
        for no key update of e skip locked
      ), event_now as (
        update event e set rolled_up = true from due_event u
        where e.organization_id = u.organization_id and e.id = u.id
        returning e.organization_id, e.created_at, e.delivery_count
      ), counted as (
        select (e.created_at at time zone 'UTC')::date as day, sum(e.delivery_count) as deliveries, 0 as delivered,
          0 as exhausted, 0 as cancelled
        from event_now e group by 1
        union all
        select (d.created_at at time zone 'UTC')::date, 0, count(*) filter (where d.state = 'delivered'),
          count(*) filter (where d.state = 'exhausted'),
          count(*) filter (where d.state = 'cancelled')
        from delivery_now d group by 1
      ), count_now as (
        insert into ledger_count (organization_id, webhook_id, events, numbered)
        select e.organization_id, null, count(*), 0 from event_now e group by e.organization_id
        union all
        select d.organization_id, d.webhook_id, 0, count(*) from delivery_now d
          where d.sequence is not null group by d.organization_id, d.webhook_id
      ), day_now as (
        insert into ledger_day (day, deliveries, delivered, exhausted, cancelled)
        select c.day, sum(c.deliveries), sum(c.delivered), sum(c.exhausted), sum(c.cancelled)
        from counted c group by c.day
      )
      select (select count(*) from delivery_now)::integer as deliveries, (select count(*)
        from event_now)::integer as events;
      end;
    `);

    // One statement deletes attempts, deliveries and events, so that their foreign keys are checked
    // when all are deleted, and the triggers of the ledger see each table once. What the triggers
    // subtract from the sums is added again, because it was counted. Joins use primary keys only,
    // whatever the statistics of tables this large. Days are a number: an interval would compare a
    // month as 30 days. A delivery was also created that long ago, because no login can write that
    // time, and the worker can write the time of settling.
    this.addSql(/* sql */ `
      create function purge_deliveries(retention_days integer, at_most integer, out deliveries integer,
        out events integer)
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        old_before timestamptz := now() - retention_days * interval '24 hours';
      begin
        if (old_before <= now() - interval '744 hours') is not true then
          raise exception 'deliveries are kept for 31 days at least' using errcode = 'invalid_parameter_value';
        end if;
        at_most := least(greatest(at_most, 1), 10000);
        update retention_floor f set applied_delivery_days = retention_days
          where f.applied_delivery_days is distinct from retention_days;
        perform set_config(name, 'off', true) from unnest(array['enable_seqscan', 'enable_hashjoin',
          'enable_mergejoin']) name;
        with old as materialized (
          select d.organization_id, d.webhook_id, d.event_id from delivery d
          join event e on e.organization_id = d.organization_id and e.id = d.event_id and e.rolled_up
          where d.rolled_up and d.settled_at < old_before and d.created_at < old_before
          order by d.settled_at, d.event_id, d.webhook_id
          limit at_most
          for update of d skip locked
        ), old_event as materialized (
          select o.organization_id, o.event_id, count(*)::integer as gone
            from old o group by o.organization_id, o.event_id
        ), attempts_gone as (
          delete from delivery_attempt a using old o
          where a.organization_id = o.organization_id and a.webhook_id = o.webhook_id and a.event_id = o.event_id
        ), deliveries_gone as (
          delete from delivery d using old o
          where d.organization_id = o.organization_id and d.webhook_id = o.webhook_id and d.event_id = o.event_id
          returning d.organization_id, d.webhook_id, d.state, d.sequence, (d.created_at at time zone 'UTC')::date as day
        ), events_left as (
          update event e set delivery_count = e.delivery_count - o.gone from old_event o
          where e.organization_id = o.organization_id and e.id = o.event_id and e.delivery_count > o.gone
        ), events_gone as (
          delete from event e using old_event o
          where e.organization_id = o.organization_id and e.id = o.event_id and e.delivery_count = o.gone
          returning e.organization_id
        ), days as (
          insert into ledger_day (day, deliveries, delivered, exhausted, cancelled)
          select d.day, count(*), count(*) filter (where d.state = 'delivered'),
            count(*) filter (where d.state = 'exhausted'),
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

        -- Those without a subscribed webhook, and those whose last delivery was deleted before.
        with old as materialized (
          select e.organization_id, e.id from event e
          where e.delivery_count = 0 and e.created_at < old_before
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

        -- The remaining sums become one row per day again. It waits for \`fold_ledger\`, which
        -- never waits for it.
        with folded as (
          delete from ledger_day l where l.day in (select o.day from ledger_day o group by o.day having count(*) > 1)
          returning l.day, l.deliveries, l.delivered, l.exhausted, l.cancelled
        )
        insert into ledger_day (day, deliveries, delivered, exhausted, cancelled)
        select f.day, sum(f.deliveries), sum(f.delivered), sum(f.exhausted), sum(f.cancelled)
          from folded f group by f.day;
      end $$;
    `);
  }
}
