import { Migration } from '@mikro-orm/migrations';

/**
 * The activity log, partitioned by month, and the functions that keep its partitions.
 */
export class Activity extends Migration {
  override up(): void {
    // No foreign keys: a line outlives what it names, and a lock on the key's row for each read
    // would cost the hot path.
    this.addSql(/* sql */ `
      create table activity (
        id uuid not null default new_id(),
        at timestamptz not null default now(),
        organization_id uuid not null,
        person_id text,
        key_id uuid,
        action text not null constraint activity_action_not_empty check (action <> ''),
        status smallint,
        code text,
        address inet,
        count integer not null default 1 constraint activity_count_positive check (count > 0),
        detail jsonb,
        primary key (id, at)
      ) partition by range (at);
      create index activity_by_organization on activity (organization_id, at desc, id desc);
      create unique index activity_refusals_of_minute on activity (key_id, at) where action = 'api.rate_limited';
      create unique index activity_keys_at_console_of_minute on activity (key_id, at) where action = 'api.console';

      -- What the console searches by, newest row first; "status" rides along so that a key's uses
      -- are counted in the index alone. The partial ones hold few rows and cost a read nothing:
      -- what people did, and what was refused.
      create index activity_by_key on activity (organization_id, key_id, at desc, id desc)
        include (status) where key_id is not null;
      create index activity_by_person on activity (organization_id, person_id, at desc, id desc)
        where person_id is not null;
      create index activity_by_action on activity (organization_id, action, at desc, id desc);
      create index activity_of_people on activity (organization_id, at desc, id desc)
        include (key_id, person_id) where status is null;
      -- One action of a person is rare among all, so it has an index that it leads.
      create index activity_of_people_by_action on activity (organization_id, action, at desc, id desc)
        include (key_id, person_id) where status is null;
      create index activity_refused on activity (organization_id, at desc, id desc)
        include (key_id, person_id, action) where status >= 400;

      -- The proofs that deliveries were cancelled: a person deleted their webhook, or cancelled one
      -- of them.
      create index activity_webhook_deleted on activity (organization_id, (detail ->> 'webhookId'))
        where action = 'webhook.delete';
      create index activity_delivery_cancelled on activity (organization_id, (detail ->> 'eventId'))
        where action = 'delivery.cancel' and detail ? 'eventId';
      create view webhook_deletion as
        select organization_id, detail ->> 'webhookId' as webhook_id, at from activity where action = 'webhook.delete';
      create view delivery_cancellation as
        select organization_id, detail ->> 'webhookId' as webhook_id, detail ->> 'eventId' as event_id, at from activity
        where action = 'delivery.cancel' and detail ? 'eventId';

      create table activity_default partition of activity default;
    `);

    this.addSql(/* sql */ `
      -- Makes the partition of each month from this one to three ahead. A month whose lines already
      -- went to the default partition is left there (attaching would fail); the alert on
      -- activity_default tells. Returns how many were made.
      create function keep_activity_partitions() returns integer
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        first timestamp;
        made integer := 0;
      begin
        perform pg_advisory_xact_lock(hashtextextended('org_api.activity_partitions', 0));
        for first in select generate_series(m, m + interval '3 months', interval '1 month')
          from date_trunc('month', now() at time zone 'UTC') m loop
          continue when to_regclass(format('public.activity_%s', to_char(first, 'YYYY_MM'))) is not null;
          continue when exists (select from activity_default d
            where d.at >= first at time zone 'UTC' and d.at < (first + interval '1 month') at time zone 'UTC');
          execute format('create table public.activity_%s partition of public.activity for values from (%L) to (%L)',
            to_char(first, 'YYYY_MM'), first at time zone 'UTC', (first + interval '1 month') at time zone 'UTC');
          made := made + 1;
        end loop;
        return made;
      end $$;

      -- Only the owner may shorten it: a compromised worker could otherwise drop the log of what
      -- it did. The migrator writes it.
      create table retention_floor (
        id boolean primary key default true constraint retention_floor_one_row check (id),
        activity_days integer not null default 90 constraint retention_floor_positive check (activity_days > 0)
      );
      insert into retention_floor default values;

      -- Drops the partitions whose every line is older than the retention, and such lines of the
      -- default partition. Returns the dropped months.
      create function drop_old_activity(retention interval) returns text[]
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        partition text;
        dropped text[] := '{}';
      begin
        if retention < (select make_interval(days => f.activity_days) from retention_floor f) then
          raise exception 'activity is kept for % days at least (ACTIVITY_RETENTION_FLOOR of the migrator)',
            (select f.activity_days from retention_floor f)
            using errcode = 'invalid_parameter_value';
        end if;
        perform pg_advisory_xact_lock(hashtextextended('org_api.activity_partitions', 0));
        for partition in
          select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = 'public.activity'::regclass and c.relname ~ '^activity_\\d{4}_\\d{2}$'
            and (to_date(substr(c.relname, 10), 'YYYY_MM') + interval '1 month') at time zone 'UTC' <= now() - retention
          order by c.relname
        loop
          execute format('drop table public.%I', partition);
          dropped := dropped || substr(partition, 10);
        end loop;
        delete from activity_default where at < now() - retention;
        return dropped;
      end $$;

      select keep_activity_partitions();
    `);
  }
}
