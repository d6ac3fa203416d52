import { Migration } from '@mikro-orm/migrations';

/** The activity log, partitioned by month, and the functions that maintain its partitions. */
export class Activity extends Migration {
  override up(): void {
    // There are no foreign keys: a row outlives what it names, and a lock on the key's row for each
    // read would slow down reads.
    this.addSql(/* sql */ `
      create sequence activity_serial;
      create table activity (
        id uuid not null default new_id(),
        at timestamptz not null default now(),
        organization_id uuid not null,
        person_id text,
        key_id uuid,
        action text not null constraint activity_action_length check (length(action) between 1 and 64),
        status smallint,
        code text constraint activity_code_length check (length(code) <= 64),
        address inet,
        count integer not null default 1 constraint activity_count_positive check (count > 0),
        detail jsonb constraint activity_detail_size check (length(detail::text) <= 16384)
          constraint activity_detail_object check (jsonb_typeof(detail) = 'object')
          -- Pages look up the objects of a line by these ids, and the log's stream sends them: one
          -- that is no id would fail a page or carry a name. Those of people are the platform's texts.
          constraint activity_detail_ids check (not detail @? '$.keyvalue() ? (@.key like_regex "Id$"
            && @.value.type() != "null" && (@.value.type() != "string" || !(@.key like_regex "^(member|person)Id$"
              || @.value like_regex "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" flag "i")))'),
        -- The order in which lines are written: a counted line gets another one with each change.
        -- Lines are linked into the chain, and streamed, when every transaction that may have a
        -- smaller one has ended, so that a late commit is not missed.
        serial bigint not null default nextval('activity_serial'),
        -- How the person, and the member, role and webhook of "detail", were named at the time.
        names jsonb,
        primary key (id, at)
      ) partition by range (at);
      create index activity_by_serial on activity (serial);
      create index activity_by_organization on activity (organization_id, at desc, id desc);
      create unique index activity_refusals_of_minute on activity (key_id, at) where action = 'api.rate_limited';
      create unique index activity_keys_at_console_of_minute on activity (key_id, at) where action = 'api.console';

      -- What the console searches by, newest row first; "status" is included so that a key's uses
      -- are counted by an index-only scan. The partial indexes have few rows and cost a read
      -- nothing: actions of people, and refusals.
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
        include (key_id, person_id, action, status) where status >= 400;

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

      -- Names the people and objects of an action, for every writer, so that a later rename changes
      -- no line. Calls with a key show the key, and have no names. The name of a family is
      -- not copied. The name of a webhook is formed as in search.ts.
      create function name_activity() returns trigger
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
          'member', (select m.name from membership m
            where m.organization_id = new.organization_id and m.person_id = about ->> 'memberId'),
          'role', (select r.name from role r where r.id = role_of
            and (r.organization_id is null or r.organization_id = new.organization_id)),
          'webhook', (select coalesce(nullif(left(regexp_replace(w.description, '\\s+', ' ', 'g'), 100), ''),
              split_part(w.url, '/', 3) || ' (' || right(w.id::text, 6) || ')') from webhook w
            where w.organization_id = new.organization_id and w.id = webhook_of))) into new.names;
        return new;
      end $$;
      create trigger name_activity before insert on activity for each row
        when (new.status is null) execute function name_activity();
    `);

    this.addSql(/* sql */ `
      -- Creates the partition of each month from this one to three ahead. A month with lines in the
      -- default partition gets none, because attaching it would fail; an alert reports that.
      -- Returns the number of created partitions.
      create function keep_activity_partitions() returns integer
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        first timestamp;
        made integer := 0;
      begin
        perform from named_lock where name = 'activity_partitions' for update;
        for first in select generate_series(m, m + interval '3 months', interval '1 month')
          from date_trunc('month', now() at time zone 'UTC') m loop
          continue when to_regclass(format('public.activity_%s', to_char(first, 'YYYY_MM'))) is not null;
          continue when exists (select from activity_default d
            where d.at >= first at time zone 'UTC' and d.at < (first + interval '1 month') at time zone 'UTC');
          -- As ISO text in UTC, which no TimeZone or DateStyle of the caller changes.
          execute format('create table public.activity_%s partition of public.activity for values from (%L) to (%L)',
            to_char(first, 'YYYY_MM'), to_char(first, 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
            to_char(first + interval '1 month', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'));
          made := made + 1;
          continue when to_regclass(format('public.activity_link_%s', to_char(first, 'YYYY_MM'))) is not null;
          continue when exists (select from activity_link_default d where d.month = first::date);
          execute format('create table public.activity_link_%s partition of public.activity_link for values in (%L)',
            to_char(first, 'YYYY_MM'), to_char(first, 'YYYY-MM-DD'));
        end loop;
        return made;
      end $$;

      -- Only the owner may shorten it: a compromised worker could otherwise drop the log of its
      -- actions. The migrator writes it.
      create table retention_floor (
        id boolean primary key default true constraint retention_floor_one_row check (id),
        activity_days integer not null default 90 constraint retention_floor_positive check (activity_days > 0),
        -- What the worker applied last, for the console to state; null before its first run.
        applied_days integer,
        -- The same of settled deliveries.
        applied_delivery_days integer
      );
      insert into retention_floor default values;

      -- The log of purges: from which month on a purge kept the log, each time that this advanced.
      -- Only drop_old_activity writes it, and verification compares it with the dropped chains.
      create table activity_purge (
        kept_from timestamptz primary key,
        purged_at timestamptz not null,
        floor_days integer not null,
        constraint activity_purge_older_than_floor check (kept_from <= purged_at - floor_days * interval '24 hours')
      );

      -- Drops the months whose every line is older than this number of days, also from the default
      -- partitions. Returns the dropped months that had a partition. An interval would compare a
      -- month as 30 days and subtract it as a month: days have one meaning. No number of days is
      -- null, too large or negative and passes the comparison of the two times.
      create function drop_old_activity(retention_days integer) returns text[]
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        least_days integer;
        old_before timestamptz := now() - retention_days * interval '24 hours';
        first_kept timestamptz := date_trunc('month', old_before at time zone 'UTC') at time zone 'UTC';
        partition text;
        dropped text[] := '{}';
      begin
        select f.activity_days into strict least_days from retention_floor f;
        if (old_before <= now() - least_days * interval '24 hours') is not true then
          raise exception 'activity is kept for % days at least (ACTIVITY_RETENTION_FLOOR of the migrator)', least_days
            using errcode = 'invalid_parameter_value';
        end if;
        update retention_floor set applied_days = retention_days where applied_days is distinct from retention_days;
        perform from named_lock where name = 'activity_partitions' for update;
        insert into activity_purge (kept_from, purged_at, floor_days)
        select first_kept, now(), least_days
          where not exists (select from activity_purge p where p.kept_from >= first_kept);
        for partition in
          select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = 'public.activity'::regclass and c.relname ~ '^activity_\\d{4}_\\d{2}$'
            and (to_date(substr(c.relname, 10), 'YYYY_MM') + interval '1 month') at time zone 'UTC' <= first_kept
          order by c.relname
        loop
          execute format('drop table public.%I', partition);
          dropped := dropped || substr(partition, 10);
        end loop;
        -- Whole months here too, because each chain covers one month.
        delete from activity_default where at < first_kept;

        -- A month's links are deleted with its lines. The last hash stays.
        update activity_chain set dropped_places = places, dropped_hash = hash
          where (month + interval '1 month') at time zone 'UTC' <= first_kept and dropped_places <> places;
        for partition in
          select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
          where i.inhparent = 'public.activity_link'::regclass and c.relname ~ '^activity_link_\\d{4}_\\d{2}$'
            and (to_date(substr(c.relname, 15), 'YYYY_MM') + interval '1 month') at time zone 'UTC' <= first_kept
        loop
          execute format('drop table public.%I', partition);
        end loop;
        delete from activity_link_default where (month + interval '1 month') at time zone 'UTC' <= first_kept;
        return dropped;
      end $$;

    `);

    // Each row's hash covers the hash of the row before it, per organization and month. The
    // maintenance loop appends to the chain after the rows have committed, so no read and no change
    // waits for it.
    this.addSql(/* sql */ `
      -- One link of the chain. "digest" is null, because the line's content gives it, except for
      -- lines that count requests: they change within their minute, and each version has a link.
      create table activity_link (
        organization_id uuid not null,
        month date not null,
        place bigint not null constraint activity_link_place_positive check (place > 0),
        line_id uuid not null,
        line_at timestamptz not null,
        digest bytea,
        hash bytea not null constraint activity_link_hash_length check (length(hash) = 32),
        primary key (organization_id, month, place)
      ) partition by list (month);
      create table activity_link_default partition of activity_link default;

      -- The end of each chain. Retention dropped the part up to "dropped_places".
      create table activity_chain (
        organization_id uuid not null,
        month date not null,
        places bigint not null,
        hash bytea not null,
        dropped_places bigint not null default 0,
        dropped_hash bytea,
        anchored_places bigint not null default 0,
        anchored_on date,
        primary key (organization_id, month),
        constraint activity_chain_dropped_has_hash check ((dropped_places = 0) = (dropped_hash is null))
      );
      create index activity_chain_to_anchor on activity_chain (anchored_on) where anchored_places <> places;

      -- Every line before the serial "linked_to" has its link; before "streamed_to" it was
      -- sent to the operator's log system. Null: nothing is streamed yet.
      create table activity_progress (
        id boolean primary key default true constraint activity_progress_one_row check (id),
        linked_to bigint not null default 0,
        streamed_to bigint,
        -- Calls before the serial "summed_to" are in "call_sum", which was done at "summed_at".
        summed_to bigint not null default 0,
        summed_at timestamptz,
        leased_until timestamptz
      );
      insert into activity_progress default values;

      -- The content of a line as SHA-256. No setting of a session changes it.
      create function activity_digest(line activity) returns bytea language sql stable parallel safe
      set search_path = pg_catalog, public, pg_temp
      return sha256(convert_to(json_build_array(line.id,
        to_char(line.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), line.organization_id, line.person_id,
        line.key_id, line.action, line.status, line.code, line.address::text, line.count, line.detail,
        line.names)::text, 'UTF8'));

      -- What the first line of a chain is linked to.
      create function activity_chain_start(organization uuid, month date) returns bytea language sql stable
      parallel safe set search_path = pg_catalog, public, pg_temp
      return sha256(convert_to('activity ' || organization || ' ' || to_char(month, 'YYYY-MM'), 'UTF8'));

      create function activity_next_hash(state bytea, before bytea, digest bytea) returns bytea language sql immutable
      parallel safe return sha256(coalesce(state, before) || digest);
      create aggregate activity_hash(before bytea, digest bytea) (sfunc = activity_next_hash, stype = bytea);

      -- The open transactions that wrote to the log, without the caller's. Each holds this lock of
      -- the table before it draws a serial, and until others see its lines.
      create function activity_writers() returns setof text language sql volatile
      set search_path = pg_catalog, public, pg_temp
      begin atomic
        select l.virtualtransaction from pg_locks l
        where l.locktype = 'relation' and l.relation = 'public.activity'::regclass and l.mode = 'RowExclusiveLock'
          and l.database = (select d.oid from pg_database d where d.datname = current_database())
          and l.granted and l.pid is distinct from pg_backend_pid();
      end;

      -- Appends at most this number of lines to their chains: those with a serial that was drawn
      -- before each open writer of the log. A line that commits late gets a later place, and none
      -- is skipped. A writer that stays open delays the chain; a transaction that wrote no line
      -- does not. Returns how many links were appended and whether no more are left.
      create function append_activity_chain(at_most integer) returns table (linked integer, is_all_done boolean)
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        settled bigint;
        writers text[];
        from_serial bigint;
        to_serial bigint;
        found_lines integer;
      begin
        -- Each statement must see what was committed before it.
        if current_setting('transaction_isolation') <> 'read committed' then
          raise exception 'the chain is appended in a transaction that is read committed';
        end if;
        select p.linked_to into strict from_serial from activity_progress p for update;
        select s.last_value + s.is_called::integer into settled from activity_serial s;
        select array_agg(w) into writers from activity_writers() w;
        -- A writer takes milliseconds. One that takes longer is looked for again at the next call.
        for tries in 1..20 loop
          exit when writers is null or not exists (select from activity_writers() w where w = any(writers));
          if tries = 20 then
            linked := 0;
            is_all_done := false;
            return next;
            return;
          end if;
          perform pg_sleep(0.005);
        end loop;
        select count(*)::integer, max(x.serial) + 1 into found_lines, to_serial from (
          select a.serial from activity a where a.serial >= from_serial and a.serial < settled
          order by a.serial limit at_most) x;
        is_all_done := found_lines < at_most;
        if is_all_done then to_serial := settled; end if;
        with fresh as (
          select a.organization_id, date_trunc('month', a.at at time zone 'UTC')::date as month, a.id, a.at, a.serial,
            a.action in ('api.rate_limited', 'api.console') as is_count, activity_digest(a) as digest
          from activity a where a.serial >= from_serial and a.serial < to_serial
        ), placed as (
          select f.*, coalesce(c.places, 0) + row_number() over line as place,
            activity_hash(coalesce(c.hash, activity_chain_start(f.organization_id, f.month)), f.digest) over line
              as hash
          from fresh f left join activity_chain c on c.organization_id = f.organization_id and c.month = f.month
          window line as (partition by f.organization_id, f.month order by f.serial, f.at, f.id
            rows between unbounded preceding and current row)
        ), link as (
          insert into activity_link (organization_id, month, place, line_id, line_at, digest, hash)
          select p.organization_id, p.month, p.place, p.id, p.at, case when p.is_count then p.digest end, p.hash
          from placed p
        ), chain as (
          insert into activity_chain (organization_id, month, places, hash)
          select distinct on (p.organization_id, p.month) p.organization_id, p.month, p.place, p.hash from placed p
          order by p.organization_id, p.month, p.place desc
          on conflict (organization_id, month) do update set places = excluded.places, hash = excluded.hash
        )
        select count(*)::integer into linked from placed;
        update activity_progress set linked_to = to_serial;
        return next;
      end $$;

      -- The age (s) of the oldest line without a link; 0 when every line has one.
      create function activity_unlinked_age() returns double precision
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select coalesce(greatest(extract(epoch from clock_timestamp() - (
          select a.at from activity a where a.serial >= (select p.linked_to from activity_progress p)
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

      -- Adds the calls of the lines with these serials to the sums.
      create function add_call_sums(from_serial bigint, to_serial bigint) returns void
      language sql volatile set search_path = pg_catalog, public, pg_temp
      begin atomic
        with fresh as (
          select a.organization_id, date_trunc('hour', a.at, 'UTC') as hour, a.key_id, a.action, a.status,
            coalesce(a.code, '') as code, a.count, a.action in ('api.rate_limited', 'api.console') as is_count
          from activity a
          where a.serial >= from_serial and a.serial < to_serial and a.key_id is not null and a.status is not null
        ), recounted as (
          -- A line that counts requests changes within its minute, so its hour is counted again.
          select a.organization_id, h.hour, a.key_id, a.action, a.status, coalesce(a.code, '') as code,
            sum(a.count) as calls
          from (select distinct f.organization_id, f.hour, f.action from fresh f where f.is_count) h
          join activity a on a.organization_id = h.organization_id and a.action = h.action
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

      -- Adds the calls of at most this number of lines, of those that are linked, to the sums. Deletes
      -- sums by the hour after 3 days and by the day after 100: the console shows 24 hours and 90 days.
      create function sum_calls(at_most integer) returns table (is_all_done boolean)
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        progress public.activity_progress;
        found_lines integer;
        to_serial bigint;
      begin
        select * into strict progress from activity_progress p for update;
        at_most := least(greatest(at_most, 1), 100000);
        select count(*)::integer, max(x.serial) + 1 into found_lines, to_serial from (
          select a.serial from activity a where a.serial >= progress.summed_to and a.serial < progress.linked_to
          order by a.serial limit at_most) x;
        is_all_done := found_lines < at_most;
        if is_all_done then to_serial := progress.linked_to; end if;
        -- Tables are written in the order in which they were created: a change of the schema locks
        -- several in that order, and neither then waits for the other.
        update activity_progress
          set summed_to = to_serial, summed_at = case when is_all_done then now() else summed_at end;
        perform add_call_sums(progress.summed_to, to_serial);
        -- Only then is no line of these hours left, which would be counted again without its sum.
        if is_all_done then
          delete from call_sum s where (s.unit = 'hour' and s.starts_at < now() - interval '3 days')
            or (s.unit = 'day' and s.starts_at < now() - interval '100 days');
        end if;
        return next;
      end $$;

      -- The ends of chains that grew since their last anchor, which was before today (UTC), at most
      -- this number. The worker logs each and then records it, so that a crash repeats a log line.
      create function list_activity_anchors(at_most integer)
      returns table (organization_id uuid, month text, places bigint, hash text)
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select c.organization_id, to_char(c.month, 'YYYY-MM'), c.places, encode(c.hash, 'hex') from activity_chain c
        where c.anchored_places <> c.places
          and (c.anchored_on is null or c.anchored_on < (now() at time zone 'UTC')::date)
        order by c.organization_id, c.month limit least(greatest(at_most, 1), 10000);
      end;

      create function record_activity_anchors(organizations uuid[], months text[], anchored bigint[]) returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        update activity_chain c set anchored_on = (now() at time zone 'UTC')::date, anchored_places = a.places
        from unnest(organizations, months, anchored) as a (organization_id, month, places)
        where c.organization_id = a.organization_id and c.month = to_date(a.month, 'YYYY-MM')
          and a.places between c.anchored_places and c.places;
      end;
    `);

    this.addSql(/* sql */ `
      -- Returns about this number of lines for the operator's log system, in the order of their
      -- chains: ids, codes and addresses, no name. During the lease no other caller gets lines. The
      -- first call starts with the next line.
      create function claim_activity_stream(at_most integer, lease_seconds integer)
      returns table (up_to bigint, id uuid, at text, organization_id uuid, person_id text, key_id uuid, action text,
        status smallint, code text, address text, count integer, object_ids jsonb)
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        progress public.activity_progress;
        found_lines integer;
        to_serial bigint;
      begin
        select * into strict progress from public.activity_progress for update;
        if progress.streamed_to is null then
          update public.activity_progress set streamed_to = linked_to;
          return;
        end if;
        if progress.leased_until > clock_timestamp() then return; end if;
        select count(*)::integer, max(x.serial) + 1 into found_lines, to_serial from (
          select a.serial from public.activity a
          where a.serial >= progress.streamed_to and a.serial < progress.linked_to
          order by a.serial limit least(greatest(at_most, 1), 10000)) x;
        if found_lines = 0 then return; end if;
        -- At most five minutes, whatever is asked for: a lease must not outlast its process by years.
        update public.activity_progress set leased_until = clock_timestamp()
          + least(greatest(lease_seconds, 0), 300) * interval '1 second';
        return query
          select to_serial, a.id, to_char(a.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), a.organization_id,
            a.person_id, a.key_id, a.action, a.status, a.code, host(a.address), a.count,
            (select jsonb_object_agg(d.key, d.value) from jsonb_each_text(a.detail) d where d.key ~ 'Id$')
          from public.activity a where a.serial >= progress.streamed_to and a.serial < to_serial
          order by a.serial, a.at, a.id;
      end $$;

      -- Records that the lines before a serial were accepted, and ends the lease.
      create function record_activity_streamed(up_to bigint) returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        update activity_progress set streamed_to = up_to, leased_until = null
          where streamed_to < up_to and up_to <= linked_to;
      end;
    `);

    this.addSql(/* sql */ `select keep_activity_partitions()`);
  }
}
