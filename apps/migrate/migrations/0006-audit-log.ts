import { Migration } from '@mikro-orm/migrations';

/** The audit log, partitioned by month, and the functions that maintain its partitions. */
export class AuditLog extends Migration {
  override up(): void {
    // There are no foreign keys: an entry outlives what it names, and a lock on the key's row for
    // each read would slow down reads.
    this.addSql(/* sql */ `
      create sequence audit_entry_serial;
      create table audit_entry (
        id uuid not null default new_id(),
        at timestamptz not null default now(),
        organization_id uuid not null,
        person_id text,
        key_id uuid,
        action text not null constraint audit_entry_action_length check (length(action) between 1 and 64),
        status smallint,
        code text constraint audit_entry_code_length check (length(code) <= 64),
        address inet,
        count integer not null default 1 constraint audit_entry_count_positive check (count > 0),
        detail jsonb constraint audit_entry_detail_size check (length(detail::text) <= 16384)
          constraint audit_entry_detail_object check (jsonb_typeof(detail) = 'object')
          -- Pages look up the objects of an entry by these ids, and the log's stream sends them:
          -- one that is no id would fail a page or carry a name. Those of people are the platform's
          -- texts.
          constraint audit_entry_detail_ids check (not detail @? '$.keyvalue() ? (@.key like_regex "Id$"
            && @.value.type() != "null" && (@.value.type() != "string" || !(@.key like_regex "^(member|person)Id$"
              || @.value like_regex "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" flag "i")))'),
        -- The order in which entries are written: a counted entry gets another one with each
        -- change. Entries are linked into the chain, and streamed, when every transaction that may
        -- have a smaller one has ended, so that a late commit is not missed.
        serial bigint not null default nextval('audit_entry_serial'),
        -- How the person, the key, and the member, role and webhook of "detail", were named at the
        -- time, and for a change of a name the old and the new one ("renamed").
        names jsonb,
        -- The chain covers the digest of the names and not the names, so that an erasure removes
        -- them and the chain still verifies. The salt goes with them: without it, the digest would
        -- confirm a guessed name.
        names_salt bytea,
        names_digest bytea,
        constraint audit_entry_names_salted check ((names is null) = (names_salt is null)),
        primary key (id, at)
      ) partition by range (at);
      create index audit_entry_by_serial on audit_entry (serial);
      create index audit_entry_by_organization on audit_entry (organization_id, at desc, id desc);
      create unique index audit_entry_rejections_of_minute on audit_entry (key_id, at)
        where action = 'api.rate_limited';
      create unique index audit_entry_keys_at_console_of_minute on audit_entry (key_id, at)
        where action = 'api.console';

      -- What the console searches by, newest entry first; "status" is included so that a key's uses
      -- are counted by an index-only scan. The partial indexes have few entries and cost a read
      -- nothing: actions of people, and error responses.
      create index audit_entry_by_key on audit_entry (organization_id, key_id, at desc, id desc)
        include (status) where key_id is not null;
      create index audit_entry_by_person on audit_entry (organization_id, person_id, at desc, id desc)
        where person_id is not null;
      create index audit_entry_by_action on audit_entry (organization_id, action, at desc, id desc);
      create index audit_entry_of_people on audit_entry (organization_id, at desc, id desc)
        include (key_id, person_id) where status is null;
      -- One action of a person is rare among all, so it has an index that it leads.
      create index audit_entry_of_people_by_action on audit_entry (organization_id, action, at desc, id desc)
        include (key_id, person_id) where status is null;
      create index audit_entry_rejected on audit_entry (organization_id, at desc, id desc)
        include (key_id, person_id, action, status) where status >= 400;

      -- The proofs that deliveries were cancelled: a person deleted their webhook, or cancelled one
      -- of them.
      create index audit_entry_webhook_deleted on audit_entry (organization_id, (detail ->> 'webhookId'))
        where action = 'webhook.delete';
      create index audit_entry_delivery_cancelled on audit_entry (organization_id, (detail ->> 'eventId'))
        where action = 'delivery.cancel' and detail ? 'eventId';
      create view webhook_deletion as
        select organization_id, detail ->> 'webhookId' as webhook_id, at from audit_entry
        where action = 'webhook.delete';
      create view delivery_cancellation as
        select organization_id, detail ->> 'webhookId' as webhook_id, detail ->> 'eventId' as event_id, at
        from audit_entry where action = 'delivery.cancel' and detail ? 'eventId';

      create table audit_entry_default partition of audit_entry default;
      alter table audit_entry alter column names set statistics 0;

      -- Names the people and objects of an action, for every writer, so that a later rename changes
      -- no entry. Calls with a key show the key, and have no names. The name of a family is
      -- not copied. The name of a webhook is formed as in search.ts.
      create function audit_names_digest(salt bytea, names jsonb) returns bytea language sql immutable parallel safe
      return sha256(salt || convert_to(names::text, 'UTF8'));

      create function name_audit_entry() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        about jsonb := coalesce(new.detail, '{}');
        role_of uuid;
        webhook_of uuid;
      begin
        -- Another text is no id, and names nothing.
        if about ->> 'roleId' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
          role_of := about ->> 'roleId';
        end if;
        if about ->> 'webhookId' ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then
          webhook_of := about ->> 'webhookId';
        end if;
        select jsonb_strip_nulls(jsonb_build_object(
          'person', (select m.name from membership m
            where m.organization_id = new.organization_id and m.person_id = new.person_id),
          'key', (select left(k.label, 100) from api_key k
            where k.organization_id = new.organization_id and k.id = new.key_id),
          'member', (select m.name from membership m
            where m.organization_id = new.organization_id and m.person_id = about ->> 'memberId'),
          'role', (select r.name from role r where r.id = role_of
            and (r.organization_id is null or r.organization_id = new.organization_id)),
          'webhook', (select coalesce(nullif(left(regexp_replace(w.description, '\\s+', ' ', 'g'), 100), ''),
              split_part(w.url, '/', 3) || ' (' || right(w.id::text, 6) || ')') from webhook w
            where w.organization_id = new.organization_id and w.id = webhook_of),
          'renamed', about -> 'renamed')) into new.names;
        if new.names ? 'renamed' then new.detail := new.detail - 'renamed'; end if;
        new.names_salt := uuid_send(gen_random_uuid());
        new.names_digest := audit_names_digest(new.names_salt, new.names);
        return new;
      end $$;
      create trigger name_audit_entry before insert on audit_entry for each row
        when (new.status is null) execute function name_audit_entry();
    `);

    this.addSql(/* sql */ `
      -- Creates the partition of each month from this one to three ahead. A month with entries in
      -- the default partition gets none, because attaching it would fail; an alert reports that.
      -- Returns the number of created partitions.
      --
      -- A partition is created and dropped under a lock that waits for every transaction that has
      -- read the log, and each new entry waits behind it. So it gives up soon (55P03), before
      -- \`deadlock_timeout\`, and is called again: neither a read nor a statement that locked the
      -- links before the entries fails.
      create function keep_audit_partitions() returns integer
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        first timestamp;
        made integer := 0;
      begin
        perform from named_lock where name = 'audit_partitions' for update;
        set local lock_timeout = '500ms';
        for first in select generate_series(m, m + interval '3 months', interval '1 month')
          from date_trunc('month', now() at time zone 'UTC') m loop
          continue when to_regclass(format('public.audit_entry_%s', to_char(first, 'YYYY_MM'))) is not null;
          continue when exists (select from audit_entry_default d
            where d.at >= first at time zone 'UTC' and d.at < (first + interval '1 month') at time zone 'UTC');
          -- As ISO text in UTC, which no TimeZone or DateStyle of the caller changes.
          execute format('create table public.audit_entry_%s partition of public.audit_entry '
            'for values from (%L) to (%L)',
            to_char(first, 'YYYY_MM'), to_char(first, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
            to_char(first + interval '1 month', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'));
          -- The planner's statistics would keep copies of names.
          execute format('alter table public.audit_entry_%s alter column names set statistics 0',
            to_char(first, 'YYYY_MM'));
          made := made + 1;
          continue when to_regclass(format('public.audit_link_%s', to_char(first, 'YYYY_MM'))) is not null;
          continue when exists (select from audit_link_default d where d.month = first::date);
          execute format('create table public.audit_link_%s partition of public.audit_link for values in (%L)',
            to_char(first, 'YYYY_MM'), to_char(first, 'YYYY-MM-DD'));
        end loop;
        return made;
      end $$;

      -- Only the owner may shorten it: a compromised worker could otherwise drop the log of its
      -- actions. The migrator writes it.
      create table retention_floor (
        id boolean primary key default true constraint retention_floor_one_row check (id),
        audit_log_days integer not null default 90 constraint retention_floor_positive check (audit_log_days > 0),
        -- What the worker applied last, for the console to state; null before its first run.
        applied_days integer,
        -- The same of settled deliveries.
        applied_delivery_days integer
      );
      insert into retention_floor default values;

      -- The log of purges: from which month on a purge kept the log, each time that this advanced.
      -- Only drop_old_audit_entries writes it, and verification compares it with the dropped
      -- chains.
      create table audit_purge (
        kept_from timestamptz primary key,
        purged_at timestamptz not null,
        floor_days integer not null,
        constraint audit_purge_older_than_floor check (kept_from <= purged_at - floor_days * interval '24 hours')
      );

      -- Drops the months whose every entry is older than this number of days, also from the default
      -- partitions. Returns the dropped months that had a partition. An interval would compare a
      -- month as 30 days and subtract it as a month: days have one meaning. No number of days is
      -- null, too large or negative and passes the comparison of the two times.
      create function drop_old_audit_entries(retention_days integer) returns text[]
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        least_days integer;
        old_before timestamptz := now() - retention_days * interval '24 hours';
        first_kept timestamptz := date_trunc('month', old_before at time zone 'UTC') at time zone 'UTC';
        partition text;
        dropped text[] := '{}';
      begin
        select f.audit_log_days into strict least_days from retention_floor f;
        if (old_before <= now() - least_days * interval '24 hours') is not true then
          raise exception 'the audit log is kept for % days at least (AUDIT_LOG_RETENTION_FLOOR of the migrator)',
            least_days using errcode = 'invalid_parameter_value';
        end if;
        update retention_floor set applied_days = retention_days where applied_days is distinct from retention_days;
        perform from named_lock where name = 'audit_partitions' for update;
        set local lock_timeout = '500ms';
        insert into audit_purge (kept_from, purged_at, floor_days)
        select first_kept, now(), least_days
          where not exists (select from audit_purge p where p.kept_from >= first_kept);
        for partition in
          select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = 'public.audit_entry'::regclass and c.relname ~ '^audit_entry_\\d{4}_\\d{2}$'
            and (to_date(substr(c.relname, 13), 'YYYY_MM') + interval '1 month') at time zone 'UTC' <= first_kept
          order by c.relname
        loop
          execute format('drop table public.%I', partition);
          dropped := dropped || substr(partition, 13);
        end loop;
        -- Whole months here too, because each chain covers one month.
        delete from audit_entry_default where at < first_kept;

        -- A month's links are deleted with its entries, before their chains, as they are appended.
        -- The last hash stays.
        for partition in
          select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = 'public.audit_link'::regclass and c.relname ~ '^audit_link_\\d{4}_\\d{2}$'
            and (to_date(substr(c.relname, 12), 'YYYY_MM') + interval '1 month') at time zone 'UTC' <= first_kept
        loop
          execute format('drop table public.%I', partition);
        end loop;
        delete from audit_link_default where (month + interval '1 month') at time zone 'UTC' <= first_kept;
        update audit_chain set dropped_length = length, dropped_hash = hash
          where (month + interval '1 month') at time zone 'UTC' <= first_kept and dropped_length <> length;
        return dropped;
      end $$;

    `);

    // Each entry's hash covers the hash of the entry before it, per organization and month. The
    // maintenance loop appends to the chain after the entries have committed, so no read and no
    // change waits for it.
    this.addSql(/* sql */ `
      -- One link of the chain. "digest" is null, because the entry's content gives it, except for
      -- entries that count requests: they change within their minute, and each version has a link.
      create table audit_link (
        organization_id uuid not null,
        month date not null,
        position bigint not null constraint audit_link_position_positive check (position > 0),
        entry_id uuid not null,
        entry_at timestamptz not null,
        digest bytea,
        hash bytea not null constraint audit_link_hash_length check (length(hash) = 32),
        primary key (organization_id, month, position)
      ) partition by list (month);
      create table audit_link_default partition of audit_link default;

      -- The end of each chain. Retention dropped the part up to "dropped_length".
      create table audit_chain (
        organization_id uuid not null,
        month date not null,
        length bigint not null,
        hash bytea not null,
        dropped_length bigint not null default 0,
        dropped_hash bytea,
        anchored_length bigint not null default 0,
        anchored_on date,
        primary key (organization_id, month),
        constraint audit_chain_dropped_has_hash check ((dropped_length = 0) = (dropped_hash is null))
      );
      create index audit_chain_to_anchor on audit_chain (anchored_on) where anchored_length <> length;

      -- Every entry before the serial "linked_to" has its link; before "streamed_to" it was
      -- sent to the operator's log system. Null: nothing is streamed yet.
      create table audit_progress (
        id boolean primary key default true constraint audit_progress_one_row check (id),
        linked_to bigint not null default 0,
        streamed_to bigint,
        -- Calls before the serial "summed_to" are in "call_sum", which was done at "summed_at".
        summed_to bigint not null default 0,
        summed_at timestamptz,
        claimed_until timestamptz
      );
      insert into audit_progress default values;

      -- The content of an entry, as its digest covers it and evidence packages contain it. No setting
      -- of a session changes it.
      create function audit_entry_text(entry audit_entry) returns text language sql stable parallel safe
      return json_build_array(entry.id,
        to_char(entry.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), entry.organization_id, entry.person_id,
        entry.key_id, entry.action, entry.status, entry.code, entry.address::text, entry.count, entry.detail,
        encode(entry.names_digest, 'hex'))::text;
      create function audit_entry_digest(entry audit_entry) returns bytea language sql stable parallel safe
      set search_path = pg_catalog, public, pg_temp
      return sha256(convert_to(audit_entry_text(entry), 'UTF8'));

      -- Whether the names of an entry are those of its digest. Without names, they were erased: an
      -- entry \`family.erase\` lists it, which is in the chain or among those that are appended next.
      create function audit_names_verify(entry audit_entry) returns boolean language sql stable
      set search_path = pg_catalog, public, pg_temp
      return case
        when entry.names is not null then
          coalesce(audit_names_digest(entry.names_salt, entry.names) = entry.names_digest, false)
        when entry.names_digest is null then true
        else exists (
          select from audit_entry e
          where e.organization_id = entry.organization_id and e.action = 'family.erase'
            and e.detail -> 'entries' ? entry.id::text
            and (exists (select from audit_link l where l.organization_id = e.organization_id
                and l.month = date_trunc('month', e.at at time zone 'UTC')::date and l.entry_id = e.id)
              or e.serial between (select p.linked_to from audit_progress p)
                and (select s.last_value from audit_entry_serial s)))
        end;

      -- What the first entry of a chain is linked to.
      create function audit_chain_start(organization uuid, month date) returns bytea language sql stable
      parallel safe set search_path = pg_catalog, public, pg_temp
      return sha256(convert_to('audit log ' || organization || ' ' || to_char(month, 'YYYY-MM'), 'UTF8'));

      create function audit_next_hash(state bytea, before bytea, digest bytea) returns bytea language sql immutable
      parallel safe return sha256(coalesce(state, before) || digest);
      create aggregate audit_hash(before bytea, digest bytea) (sfunc = audit_next_hash, stype = bytea);

      -- The open transactions that wrote to the log, without the caller's. Each holds this lock of
      -- the table before it draws a serial, and until others see its entries.
      create function audit_writers() returns setof text language sql volatile
      set search_path = pg_catalog, public, pg_temp
      begin atomic
        select l.virtualtransaction from pg_locks l
        where l.locktype = 'relation' and l.relation = 'public.audit_entry'::regclass and l.mode = 'RowExclusiveLock'
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.granted and l.pid is distinct from pg_backend_pid();
      end;

      -- Appends at most this number of entries to their chains: those with a serial that was drawn
      -- before each open writer of the log. An entry that commits late gets a later position, and
      -- none is skipped. A writer that stays open delays the chain; a transaction that wrote no
      -- entry does not. Returns how many links were appended and whether no more are left.
      create function append_audit_chain(at_most integer) returns table (linked integer, is_all_done boolean)
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        settled bigint;
        writers text[];
        from_serial bigint;
        to_serial bigint;
        found_entries integer;
      begin
        -- Each statement must see what was committed before it.
        if current_setting('transaction_isolation') <> 'read committed' then
          raise exception 'the chain is appended in a transaction that is read committed';
        end if;
        select p.linked_to into strict from_serial from audit_progress p for update;
        select s.last_value + s.is_called::integer into settled from audit_entry_serial s;
        select array_agg(w) into writers from audit_writers() w;
        -- A writer takes milliseconds. One that takes longer is looked for again at the next call.
        for tries in 1..20 loop
          exit when writers is null or not exists (select from audit_writers() w where w = any(writers));
          if tries = 20 then
            linked := 0;
            is_all_done := false;
            return next;
            return;
          end if;
          perform pg_sleep(0.005);
        end loop;
        select count(*)::integer, max(x.serial) + 1 into found_entries, to_serial from (
          select a.serial from audit_entry a where a.serial >= from_serial and a.serial < settled
          order by a.serial limit at_most) x;
        is_all_done := found_entries < at_most;
        if is_all_done then to_serial := settled; end if;
        with fresh as (
          select a.organization_id, date_trunc('month', a.at at time zone 'UTC')::date as month, a.id, a.at, a.serial,
            a.action in ('api.rate_limited', 'api.console') as is_count, audit_entry_digest(a) as digest
          from audit_entry a where a.serial >= from_serial and a.serial < to_serial
        ), placed as (
          select f.*, coalesce(c.length, 0) + row_number() over by_chain as position,
            audit_hash(coalesce(c.hash, audit_chain_start(f.organization_id, f.month)), f.digest) over by_chain
              as hash
          from fresh f left join audit_chain c on c.organization_id = f.organization_id and c.month = f.month
          window by_chain as (partition by f.organization_id, f.month order by f.serial, f.at, f.id
            rows between unbounded preceding and current row)
        ), link as (
          insert into audit_link (organization_id, month, position, entry_id, entry_at, digest, hash)
          select p.organization_id, p.month, p.position, p.id, p.at, case when p.is_count then p.digest end, p.hash
          from placed p
        ), chain as (
          insert into audit_chain (organization_id, month, length, hash)
          select distinct on (p.organization_id, p.month) p.organization_id, p.month, p.position, p.hash from placed p
          order by p.organization_id, p.month, p.position desc
          on conflict (organization_id, month) do update set length = excluded.length, hash = excluded.hash
        )
        select count(*)::integer into linked from placed;
        update audit_progress set linked_to = to_serial;
        return next;
      end $$;

      -- The age (s) of the oldest entry without a link; 0 when every entry has one.
      create function audit_unlinked_age() returns double precision
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select coalesce(greatest(extract(epoch from clock_timestamp() - (
          select a.at from audit_entry a where a.serial >= (select p.linked_to from audit_progress p)
          order by a.serial limit 1)), 0), 0)::double precision;
      end;

      -- The calls of keys, per hour and per day (UTC), as the console shows them.
      create table call_sum (
        organization_id uuid not null,
        unit text not null constraint call_sum_unit_known check (unit in ('hour', 'day')),
        starts_at timestamptz not null,
        key_id uuid not null,
        action text not null,
        status smallint not null,
        -- Empty for a call that succeeded.
        code text not null,
        calls bigint not null constraint call_sum_positive check (calls > 0),
        primary key (organization_id, unit, starts_at, key_id, action, status, code)
      );
      create index call_sum_by_age on call_sum (unit, starts_at);

      -- Adds the calls of the entries with these serials to the sums.
      create function add_call_sums(from_serial bigint, to_serial bigint) returns void
      language sql volatile set search_path = pg_catalog, public, pg_temp
      begin atomic
        with fresh as (
          select a.organization_id, date_trunc('hour', a.at, 'UTC') as hour, a.key_id, a.action, a.status,
            coalesce(a.code, '') as code, a.count, a.action in ('api.rate_limited', 'api.console') as is_count
          from audit_entry a
          where a.serial >= from_serial and a.serial < to_serial and a.key_id is not null and a.status is not null
        ), recounted as (
          -- An entry that counts requests changes within its minute, so its hour is counted again.
          select a.organization_id, h.hour, a.key_id, a.action, a.status, coalesce(a.code, '') as code,
            sum(a.count) as calls
          from (select distinct f.organization_id, f.hour, f.action from fresh f where f.is_count) h
          join audit_entry a on a.organization_id = h.organization_id and a.action = h.action
            and a.at >= h.hour and a.at < h.hour + interval '1 hour' and a.key_id is not null and a.status is not null
          group by a.organization_id, h.hour, a.key_id, a.action, a.status, coalesce(a.code, '')
        ), change as (
          select f.organization_id, f.hour, f.key_id, f.action, f.status, f.code, sum(f.count) as calls
          from fresh f where not f.is_count
          group by f.organization_id, f.hour, f.key_id, f.action, f.status, f.code
          union all
          select r.organization_id, r.hour, r.key_id, r.action, r.status, r.code, r.calls - coalesce(s.calls, 0)
          from recounted r
          left join call_sum s on s.organization_id = r.organization_id and s.unit = 'hour' and s.starts_at = r.hour
            and s.key_id = r.key_id and s.action = r.action and s.status = r.status and s.code = r.code
        )
        insert into call_sum as s (organization_id, unit, starts_at, key_id, action, status, code, calls)
        select c.organization_id, u.unit, u.starts_at, c.key_id, c.action, c.status, c.code, sum(c.calls)
        from change c
        cross join lateral (values ('hour', c.hour), ('day', date_trunc('day', c.hour, 'UTC'))) u (unit, starts_at)
        where c.calls > 0
        group by c.organization_id, u.unit, u.starts_at, c.key_id, c.action, c.status, c.code
        on conflict (organization_id, unit, starts_at, key_id, action, status, code)
          do update set calls = s.calls + excluded.calls;
      end;

      -- Adds the calls of at most this number of entries, of those that are linked, to the sums.
      -- Deletes sums by the hour after 3 days and by the day after 100: the console shows 24 hours
      -- and 90 days.
      create function sum_calls(at_most integer) returns table (is_all_done boolean)
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        progress public.audit_progress;
        found_entries integer;
        to_serial bigint;
      begin
        select * into strict progress from audit_progress p for update;
        at_most := least(greatest(at_most, 1), 100000);
        select count(*)::integer, max(x.serial) + 1 into found_entries, to_serial from (
          select a.serial from audit_entry a where a.serial >= progress.summed_to and a.serial < progress.linked_to
          order by a.serial limit at_most) x;
        is_all_done := found_entries < at_most;
        if is_all_done then to_serial := progress.linked_to; end if;
        -- Tables are written in the order in which they were created: a change of the schema locks
        -- several in that order, and neither then waits for the other.
        update audit_progress
          set summed_to = to_serial, summed_at = case when is_all_done then now() else summed_at end;
        perform add_call_sums(progress.summed_to, to_serial);
        -- Only then is no entry of these hours left, which would be counted again without its sum.
        if is_all_done then
          delete from call_sum s where (s.unit = 'hour' and s.starts_at < now() - interval '3 days')
            or (s.unit = 'day' and s.starts_at < now() - interval '100 days');
        end if;
        return next;
      end $$;

      -- The ends of chains that grew since their last anchor, which was before today (UTC), at most
      -- this number. The worker logs each and then records it, so that a crash repeats a log line.
      create function list_audit_anchors(at_most integer)
      returns table (organization_id uuid, month text, length bigint, hash text)
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select c.organization_id, to_char(c.month, 'YYYY-MM'), c.length, encode(c.hash, 'hex') from audit_chain c
        where c.anchored_length <> c.length
          and (c.anchored_on is null or c.anchored_on < (now() at time zone 'UTC')::date)
        order by c.organization_id, c.month limit least(greatest(at_most, 1), 10000);
      end;

      create function record_audit_anchors(organizations uuid[], months text[], anchored bigint[]) returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        update audit_chain c set anchored_on = (now() at time zone 'UTC')::date, anchored_length = a.length
        from unnest(organizations, months, anchored) as a (organization_id, month, length)
        where c.organization_id = a.organization_id and c.month = to_date(a.month, 'YYYY-MM')
          and a.length between c.anchored_length and c.length;
      end;
    `);

    this.addSql(/* sql */ `
      -- Returns about this number of entries for the operator's log system, in the order of their
      -- chains: ids, codes and addresses, no name. During the claim no other caller gets entries.
      -- The first call starts with the next entry.
      create function claim_audit_stream(at_most integer, claim_seconds integer)
      returns table (up_to bigint, id uuid, at text, organization_id uuid, person_id text, key_id uuid, action text,
        status smallint, code text, address text, count integer, object_ids jsonb)
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        progress public.audit_progress;
        found_entries integer;
        to_serial bigint;
      begin
        select * into strict progress from public.audit_progress for update;
        if progress.streamed_to is null then
          update public.audit_progress set streamed_to = linked_to;
          return;
        end if;
        -- One that ends later than a claim may is from before the clock was set back.
        if progress.claimed_until between clock_timestamp() and clock_timestamp() + interval '5 minutes' then
          return;
        end if;
        select count(*)::integer, max(x.serial) + 1 into found_entries, to_serial from (
          select a.serial from public.audit_entry a
          where a.serial >= progress.streamed_to and a.serial < progress.linked_to
          order by a.serial limit least(greatest(at_most, 1), 10000)) x;
        if found_entries = 0 then return; end if;
        -- At most five minutes, whatever is asked for: a claim must not outlast its process by
        -- years.
        update public.audit_progress set claimed_until = clock_timestamp()
          + least(greatest(claim_seconds, 0), 300) * interval '1 second';
        return query
          select to_serial, a.id, to_char(a.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), a.organization_id,
            a.person_id, a.key_id, a.action, a.status, a.code, host(a.address), a.count,
            (select jsonb_object_agg(d.key, d.value) from jsonb_each_text(a.detail) d where d.key ~ 'Id$')
          from public.audit_entry a where a.serial >= progress.streamed_to and a.serial < to_serial
          order by a.serial, a.at, a.id;
      end $$;

      -- Records that the entries before a serial were accepted, and ends the claim.
      create function record_audit_streamed(up_to bigint) returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        update audit_progress set streamed_to = up_to, claimed_until = null
          where streamed_to < up_to and up_to <= linked_to;
      end;
    `);

    this.addSql(/* sql */ `select keep_audit_partitions()`);
  }
}
