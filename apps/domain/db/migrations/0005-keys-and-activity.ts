import { Migration } from '@mikro-orm/migrations';

/**
 * API keys (their fingerprints only) and the activity log, partitioned by month. Running pods: none
 * before it.
 */
export class KeysAndActivity extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table api_key (
        id uuid primary key default new_id(),
        organization_id uuid not null constraint api_key_organization references organization,
        maker_id text collate "C" not null constraint api_key_maker references person,
        label text not null default '',
        fingerprint bytea not null constraint api_key_fingerprint_unique unique
          constraint api_key_fingerprint_length check (length(fingerprint) = 32),
        pepper_version smallint not null,
        hint text not null,
        scopes text[] not null
          constraint api_key_scopes_not_empty check (cardinality(scopes) > 0)
          constraint api_key_scopes_known check (scopes <@ array['org.read', 'org.clients.read', 'org.members.read', 'org.analytics.read',
            'org.referrals.manage', 'org.roles.read', 'org.billing.manage']),
        created_at timestamptz not null default now(),
        expires_at timestamptz constraint api_key_expires_after_it_was_made check (expires_at > created_at),
        revoked_at timestamptz,
        -- When its maker's membership, in which it was created, ended: it then answers 403 for good. Written by a trigger alone.
        maker_left_at timestamptz,
        -- One of the organization's 25 slots. A live key always has one; an expired key keeps its until the next key is made.
        slot smallint constraint api_key_slot_of_25 check (slot between 1 and 25),
        predecessor_id uuid constraint api_key_predecessor references api_key,
        constraint api_key_live_has_slot
          check (slot is not null or revoked_at is not null or maker_left_at is not null or expires_at is not null),
        constraint api_key_ended_has_no_slot check ((revoked_at is null and maker_left_at is null) or slot is null)
      );
      -- At most 25 live keys, whoever writes: the index is the proof, not the code that picks a free slot.
      create unique index api_key_slot_unique on api_key (organization_id, slot) where slot is not null;
      create index api_key_by_organization on api_key (organization_id, created_at, id);
    `);

    // Triggers, so that neither the import nor a later writer can forget it. A key and its maker's
    // leaving meet at the membership's row: whichever comes second sees what the first has
    // committed. The rules on updates hold for every login, the owner's included.
    this.addSql(/* sql */ `
      create function api_key_maker_is_active() returns trigger language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform from membership m
          where m.organization_id = new.organization_id and m.person_id = new.maker_id and m.status = 'active' for share;
        if not found then
          raise exception 'only an active member can create a key'
            using errcode = 'check_violation', constraint = 'api_key_maker_is_active';
        end if;
        return new;
      end $$;
      create trigger api_key_maker_is_active before insert on api_key for each row execute function api_key_maker_is_active();

      create function membership_end_ends_keys() returns trigger language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        update api_key k set maker_left_at = clock_timestamp(), slot = null
          where k.organization_id = old.organization_id and k.maker_id = old.person_id and k.maker_left_at is null;
        return null;
      end $$;
      create trigger membership_left_ends_keys after update on membership for each row
        when (old.status <> 'left' and new.status = 'left') execute function membership_end_ends_keys();
      create trigger membership_deleted_ends_keys after delete on membership for each row execute function membership_end_ends_keys();

      create function api_key_stays_ended() returns trigger language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        raise exception 'a key that has ended cannot come back, and an expiry cannot be put off; create a new key'
          using errcode = 'check_violation', constraint = 'api_key_stays_ended';
      end $$;
      create trigger api_key_stays_ended before update on api_key for each row
        when (old.revoked_at is distinct from new.revoked_at and old.revoked_at is not null
          or old.maker_left_at is distinct from new.maker_left_at and old.maker_left_at is not null
          or old.expires_at is not null and (new.expires_at is null or new.expires_at > old.expires_at))
        execute function api_key_stays_ended();
    `);

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
      create table activity_default partition of activity default;
    `);

    this.addSql(/* sql */ `
      -- Makes the partition of each month from this one to three ahead. A month whose lines already went to the default partition
      -- is left there (attaching would fail); the alert on activity_default tells. Returns how many were made.
      create function keep_activity_partitions() returns integer language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        first timestamp;
        made integer := 0;
      begin
        perform pg_advisory_xact_lock(hashtextextended('org_api.activity_partitions', 0));
        for first in select generate_series(m, m + interval '3 months', interval '1 month') from date_trunc('month', now() at time zone 'UTC') m loop
          continue when to_regclass(format('public.activity_%s', to_char(first, 'YYYY_MM'))) is not null;
          continue when exists (select from activity_default d where d.at >= first at time zone 'UTC' and d.at < (first + interval '1 month') at time zone 'UTC');
          execute format('create table public.activity_%s partition of public.activity for values from (%L) to (%L)',
            to_char(first, 'YYYY_MM'), first at time zone 'UTC', (first + interval '1 month') at time zone 'UTC');
          made := made + 1;
        end loop;
        return made;
      end $$;

      -- What nobody but the owner may shorten: a worker under attack could otherwise drop the log of what it did. The migrator writes it.
      create table retention_floor (
        id boolean primary key default true constraint retention_floor_one_row check (id),
        activity_days integer not null default 90 constraint retention_floor_positive check (activity_days > 0)
      );
      insert into retention_floor default values;

      -- Drops the partitions whose every line is older than the retention, and such lines of the default partition. Returns the dropped months.
      create function drop_old_activity(retention interval) returns text[] language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        partition text;
        dropped text[] := '{}';
      begin
        if retention < (select make_interval(days => f.activity_days) from retention_floor f) then
          raise exception 'activity is kept for % days at least (ACTIVITY_RETENTION_FLOOR of the migrator)', (select f.activity_days from retention_floor f)
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
