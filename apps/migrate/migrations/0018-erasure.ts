import { Migration } from '@mikro-orm/migrations';

/**
 * Erasure of a family: its name is replaced, and its id by a random one, so that nothing here refers
 * to the platform's family. Grants and seats stay as those of an unnamed family, which keeps counts,
 * events and the ledger as they are.
 */
export class Erasure extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      -- The planner's statistics would keep copies of names and of what receivers answered.
      alter table family alter column name set statistics 0;
      alter table delivery_attempt alter column response set statistics 0;

      -- Ids that no writer may bring back, as SHA-256 of their 16 bytes. An id has 122 random
      -- bits, so its digest does not lead back to it.
      create table erased_family (
        family_digest bytea primary key
      );

      create table erasure (
        organization_id uuid not null constraint erasure_organization references organization,
        id uuid not null default new_id(),
        family_digest bytea not null constraint erasure_digest references erased_family,
        erased_at timestamptz not null default clock_timestamp(),
        erased_by text not null constraint erasure_by_known check (erased_by in ('platform', 'orgctl', 'restore')),
        -- A case number, never a name.
        reference text not null constraint erasure_reference_form check (reference ~ '^[A-Za-z0-9._/-]{1,64}$'),
        -- The id of the unnamed family.
        kept_as uuid not null,
        counts jsonb not null,
        -- Where people wrote the name: places and ids.
        mentions jsonb not null,
        completed_at timestamptz,
        -- When it was last tried to complete it.
        tried_at timestamptz,
        -- Whether the worker has logged the certificate, open and completed.
        logged boolean not null default false,
        logged_completed boolean not null default false,
        primary key (organization_id, id)
      );
      create index erasure_by_digest on erasure (family_digest);
      create index erasure_by_time on erasure (erased_at);
      create index erasure_to_complete on erasure (tried_at nulls first, erased_at) where completed_at is null;
      create index erasure_open on erasure (erased_at) where completed_at is null or not logged_completed;

      -- How many families the platform may erase within 24 hours. Only the owner changes it.
      create table erasure_limit (
        id boolean primary key default true constraint erasure_limit_one_row check (id),
        families integer not null default 50 constraint erasure_limit_not_negative check (families >= 0)
      );
      insert into erasure_limit default values;

      -- The share of that limit that was used.
      create function erasure_limit_used() returns double precision
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select (select count(distinct e.family_digest) from erasure e
            where e.erased_by = 'platform' and e.erased_at > now() - interval '24 hours')::double precision
          / greatest(l.families, 1) from erasure_limit l;
      end;

      -- Makes who adds families wait for who erases them, and the other way round, until the transaction
      -- ends: an erasure sees no row that is not committed, so that family would keep its name. All
      -- digests share 256 locks, because an import adds a hundred thousand families.
      insert into named_lock select 'family.' || part from generate_series(0, 255) as part;
      create function lock_families(digests bytea[], is_erasure boolean) returns void
      language plpgsql volatile set search_path = pg_catalog, public, pg_temp as $$
      declare
        names constant text[] := array(select distinct 'family.' || get_byte(d, 0) from unnest(digests) d);
      begin
        if is_erasure then
          perform from named_lock l where l.name = any (names) order by l.name for update;
        else
          perform from named_lock l where l.name = any (names) order by l.name for share;
        end if;
      end $$;

      create function is_family_erased(family uuid) returns boolean
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select exists (select from erased_family e where e.family_digest = sha256(uuid_send(family)));
      end;

      create function platform.reject_erased(family uuid) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        if is_family_erased(family) then
          perform platform.reject('family_erased', '23514', 'the family was erased', family::text,
            'Drop the call. A family that returns has a new id.');
        end if;
      end $$;

      create function platform.reject_family(family uuid) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform platform.reject_erased(family);
        perform platform.reject('no_such_family', 'P0002', 'the organization has no such family', family::text,
          'Create it with platform.put_family; a family of two organizations is created in both.');
      end $$;

      -- For every writer, also one that waits here for an erasure: the next statement sees what was
      -- committed meanwhile.
      create function family_stays_erased() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform platform.check_isolation();
        perform lock_families(array(select sha256(uuid_send(n.id)) from new_family n), false);
        perform platform.reject_erased(n.id) from new_family n
          where sha256(uuid_send(n.id)) in (select e.family_digest from erased_family e);
        return null;
      end $$;
      create trigger family_stays_erased after insert on family referencing new table as new_family
        for each statement execute function family_stays_erased();
    `);

    this.addSql(/* sql */ `
      -- A text in the form in which names are compared. lower() of a column with collation "C" would
      -- change ASCII only.
      create function fold_text(value text) returns text language sql immutable parallel safe
      return lower(normalize(value, NFKC) collate "und-x-icu");

      -- The same of bytes that may be no text: each byte is a character.
      create function fold_bytes(value bytea) returns text language sql immutable parallel safe
      return lower(convert_from(value, 'LATIN1') collate "C");

      -- A text as JSON with ASCII only.
      create function escape_as_json(value text) returns text language sql immutable parallel safe
      return (select coalesce(string_agg(case when a < 128 then c when a < 65536 then '\\u' || lpad(to_hex(a), 4, '0')
          else '\\u' || to_hex(55296 + ((a - 65536) >> 10)) || '\\u' || to_hex(56320 + ((a - 65536) & 1023)) end, ''
          order by n), '')
        from (select c, ascii(c) as a, n from regexp_split_to_table(value, '') with ordinality as x (c, n)) as x);

      -- Whether a name says whom a text is about: two words, or one of four bytes. Function words of
      -- English do not count, because a family may be named "Of", and common words of texts here no more
      -- than as one of two.
      create function is_telling(name text) returns boolean language sql immutable parallel safe
      return (select count(*) > 1
          or coalesce(bool_or(octet_length(w) > 3 and w not in ('family', 'client', 'test', 'webhook')), false)
        from regexp_split_to_table(fold_text(name), '\\W+') w
        where w <> '' and ts_lexize('pg_catalog.english_stem', w) <> '{}');

      -- A regular expression of what stands for a family: one of the forms of its name as whole words
      -- (family Martin is not in Martinez), or its id with or without hyphens. A name that is not
      -- telling stands for it only as a whole line or as a whole value in quotes, which is no key.
      create function family_pattern(forms text[], family uuid, is_word boolean) returns text
      language sql immutable parallel safe
      return (select case when is_word then '(^|\\W|_|\\\\[a-z])(' else '(^|\\n|")\\s*(' end
          || string_agg(distinct regexp_replace(f, '([][\\\\^$.|?*+(){}-])', '\\\\\\1', 'g'), '|')
          || case when is_word then ')($|\\W|_)|' else ')\\s*($|\\n|\\\\*"(?!\\s*:))|' end
          || family || '|' || replace(family::text, '-', '')
        from unnest(forms) f);

      create function family_text_pattern(name text, family uuid) returns text language sql immutable parallel safe
      return family_pattern(array[fold_text(name),
        fold_text(substr(to_json(name)::text, 2, length(to_json(name)::text) - 2))], family, is_telling(name))
        collate "und-x-icu";

      create function family_bytes_pattern(name text, family uuid) returns text language sql immutable parallel safe
      return (select family_pattern(array_agg(fold_bytes(convert_to(f.form, 'UTF8'))), family, is_telling(name))
        from (values (name), (lower(name collate "und-x-icu")), (upper(name collate "und-x-icu"))) as c (cased)
          cross join lateral (values (normalize(c.cased, NFC)), (normalize(c.cased, NFD))) as n (normal)
          cross join lateral (values (n.normal), (escape_as_json(n.normal)),
            (escape_as_json(substr(to_json(n.normal)::text, 2, length(to_json(n.normal)::text) - 2)))) as f (form))
        collate "C";

      -- Texts of people in which the family occurs. A person decides about them. Names of people in
      -- the audit log are theirs.
      create function list_mentions(organization uuid, pattern text) returns jsonb
      language sql stable set search_path = pg_catalog, public, pg_temp
      begin atomic
        with t (place, id, text) as (
          select 'webhook', w.id::text, concat_ws(chr(10), w.description, w.url) from webhook w
            where w.organization_id = organization
          union all select 'api_key', k.id::text, concat_ws(chr(10), k.label, k.description) from api_key k
            where k.organization_id = organization
          union all select 'role', r.id::text, concat_ws(chr(10), r.key, r.name, r.description) from role r
            where r.organization_id = organization
          union all select 'membership', m.person_id, concat_ws(chr(10), m.name, m.email, m.title) from membership m
            where m.organization_id = organization
          union all select 'referral_code', c.id::text, concat_ws(chr(10), c.code, c.link, c.label) from referral_code c
            where c.organization_id = organization
          union all select 'audit_entry', a.id::text, a.detail::text from audit_entry a
            where a.organization_id = organization and a.status is null
        )
        select coalesce(jsonb_agg(jsonb_build_object('place', m.place, 'id', m.id)), '[]')
        from (select t.place, t.id from t where fold_text(t.text) ~ pattern order by 1, 2 limit 1000) m;
      end;

      create function erasure_certificate(e erasure) returns jsonb language sql stable
      set search_path = pg_catalog, public, pg_temp
      return jsonb_build_object('erasureId', e.id, 'organizationId', e.organization_id,
        'familyDigest', encode(e.family_digest, 'hex'), 'erasedAt', api.utc(e.erased_at), 'erasedBy', e.erased_by,
        'reference', e.reference, 'counts', e.counts, 'mentions', e.mentions,
        'completedAt', case when e.completed_at is not null then api.utc(e.completed_at) end);
    `);

    this.addSql(/* sql */ `
      -- Erases what receivers answered to events of these grants and seats.
      create function erase_responses(organization uuid, subjects uuid[]) returns bigint
      language sql volatile set search_path = pg_catalog, public, pg_temp
      begin atomic
        with erased as (
          update delivery_attempt a set response = null, response_encoding = null
          from event e
          where e.organization_id = organization and e.subject_id = any (subjects)
            and a.organization_id = e.organization_id and a.event_id = e.id
            and a.webhook_id in (select d.webhook_id from delivery d
              where d.organization_id = e.organization_id and d.event_id = e.id)
            and (a.response is not null or a.response_encoding is not null)
          returning 1
        ) select count(*) from erased;
      end;

      create function list_subjects(organization uuid, family uuid) returns uuid[]
      language sql stable set search_path = pg_catalog, public, pg_temp
      begin atomic
        select array(select g.id from client_grant g where g.organization_id = organization and g.family_id = family
          union all select s.id from seat s where s.organization_id = organization and s.family_id = family);
      end;

      create function erase_family_in(organization uuid, erased uuid, old_name text, reference text, caller text)
      returns void language plpgsql volatile set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      declare
        subjects uuid[];
        new_id uuid;
        text_pattern constant text := family_text_pattern(old_name, erased);
        bytes_pattern constant text := family_bytes_pattern(old_name, erased);
        withdrawn bigint; ended bigint; grants bigint; seats bigint; days bigint; unnamed_days bigint;
        responses bigint; found_responses bigint; in_flight bigint;
        entries uuid[];
        made public.erasure;
      begin
        -- Organization, plan, grant, seat.
        perform platform.lock_plan(organization);
        -- Under the lock that this erasure has: of two at once, none waits for that of the other.
        loop
          new_id := gen_random_uuid();
          exit when get_byte(sha256(uuid_send(new_id)), 0) = get_byte(sha256(uuid_send(erased)), 0);
        end loop;
        perform from client_grant g where g.organization_id = organization and g.family_id = erased
          order by g.id for no key update;
        -- Access ends first: receivers hear it, by ids as always. What has not begun is withdrawn.
        perform begin_due_grant(organization, g.id) from client_grant g
          where g.organization_id = organization and g.family_id = erased and g.status = 'scheduled';
        update client_grant g set status = 'withdrawn' where g.organization_id = organization and g.family_id = erased
          and g.status = 'scheduled';
        get diagnostics withdrawn = row_count;
        update client_grant g set status = 'ended', end_reason = 'ended',
          ends_at = greatest(g.since, least(g.ends_at, clock_timestamp()))
          where g.organization_id = organization and g.family_id = erased and g.status = 'active';
        get diagnostics ended = row_count;

        insert into family (organization_id, id, name) values (organization, new_id, 'Erased family');
        -- In one statement: a seat refers to its grant's family.
        with s as (
          update seat x set family_id = new_id where x.organization_id = organization and x.family_id = erased
          returning 1
        ), g as (
          update client_grant x set family_id = new_id where x.organization_id = organization and x.family_id = erased
          returning 1
        ) select (select count(*) from s), (select count(*) from g) into seats, grants;
        -- Days of the window stay, unnamed: without them, the outcomes of two days would differ by
        -- exactly this family.
        delete from family_day d where d.organization_id = organization and d.family_id = erased
          and d.day < (now() at time zone 'UTC')::date - 90;
        get diagnostics days = row_count;
        update family_day d set family_id = new_id where d.organization_id = organization and d.family_id = erased;
        get diagnostics unnamed_days = row_count;
        delete from family f where f.organization_id = organization and f.id = erased;

        subjects := list_subjects(organization, new_id);
        responses := erase_responses(organization, subjects);
        update delivery_attempt a set response = null, response_encoding = null
          where a.organization_id = organization and a.response is not null
            and fold_bytes(a.response) ~ bytes_pattern;
        get diagnostics found_responses = row_count;
        -- Names of webhooks, roles and keys at their time are texts that members wrote.
        with erased_entry as (
          update audit_entry a set names = null, names_salt = null
          where a.organization_id = organization and a.status is null and a.names ?| array['webhook', 'role', 'key']
            and fold_text(concat_ws(chr(10), a.names ->> 'webhook', a.names ->> 'role', a.names ->> 'key',
              case when a.names ? 'key' then a.names ->> 'renamed' end)) ~ text_pattern
          returning a.id
        ) select array(select e.id from erased_entry e) into entries;
        select count(*) into in_flight from event e join delivery d on d.organization_id = e.organization_id
          and d.event_id = e.id
          where e.organization_id = organization and e.subject_id = any (subjects) and d.settled_at is null;

        insert into erasure (organization_id, family_digest, erased_by, reference, kept_as, counts, mentions)
          values (organization, sha256(uuid_send(erased)), caller, reference, new_id,
            jsonb_build_object('names', 1, 'grants', grants, 'grantsEnded', ended, 'grantsWithdrawn', withdrawn,
              'seats', seats, 'familyDaysDeleted', days, 'familyDaysUnnamed', unnamed_days,
              'responses', responses + found_responses, 'deliveriesInFlight', in_flight,
              'entriesWithoutNames', cardinality(entries)),
            list_mentions(organization, text_pattern))
          returning * into made;
        -- An entry has a bound, so several may list what one erasure removed.
        insert into audit_entry (organization_id, action, detail)
        select organization, 'family.erase', jsonb_build_object('erasureId', made.id, 'by', caller,
          'counts', made.counts, 'entries', to_jsonb(entries[first:first + 299]))
        from generate_series(1, greatest(cardinality(entries), 1), 300) as first;
      end $$;

      -- Locks what an erasure changes as every writer does: organizations, then plans, which is where an import
      -- begins. Then who adds the family is waited for, also in an organization where it is not visible yet. One
      -- that became visible meanwhile may be locked by who waits here, so the end of the block gives all locks back,
      -- and they are taken again. Erasures are few, so few transactions do this.
      create function lock_erasure(erased uuid) returns void
      language plpgsql volatile set search_path = pg_catalog, public, pg_temp as $$
      declare
        locked uuid[];
      begin
        loop
          begin
            locked := array(select o.id from organization o
              where o.id in (select f.organization_id from family f where f.id = erased)
              order by o.id for no key update);
            perform from seat_plan p where p.organization_id = any (locked)
              order by p.organization_id for no key update;
            perform lock_families(array[sha256(uuid_send(erased))], true);
            if not exists (select from family f where f.id = erased and f.organization_id <> all (locked)) then
              return;
            end if;
            raise exception using errcode = 'OA001', message = 'the family was added to another organization';
          exception when sqlstate 'OA001' then null;
          end;
        end loop;
      end $$;

      -- Erases a family in every organization. Repeated, it changes nothing. Returns its certificates.
      create function platform.erase(erased uuid, reference text, caller text) returns jsonb
      language plpgsql volatile set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform platform.check_call(array['family', 'reference'], array[erased is null, reference is null]);
        -- Before any row is written: PostgreSQL logs the row that a constraint rejects.
        perform platform.check_argument('reference', reference ~ '^[A-Za-z0-9._/-]{1,64}$',
          'A case number of at most 64 characters: letters, digits and . _ / -');
        perform lock_erasure(erased);
        return platform.erase_locked(erased, reference, caller);
      end $$;

      create function platform.erase_locked(erased uuid, reference text, caller text) returns jsonb
      language plpgsql volatile set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      declare
        digest constant bytea := sha256(uuid_send(erased));
        found_in record;
        most integer;
        certificates jsonb;
      begin
        if caller = 'platform' and exists (select from family f where f.id = erased) then
          -- The lock makes two callers count each other.
          select l.families into strict most from erasure_limit l for update;
          if most = 0 or erasure_limit_used() >= 1 then
            perform platform.reject('too_many_erasures', '23514', 'the platform has erased as many as a day allows',
              format('families in 24 hours: %s', most),
              'Erase this one tomorrow, or by orgctl family erase. The owner can raise erasure_limit.');
          end if;
        end if;
        for found_in in select f.organization_id, f.name from family f where f.id = erased
          order by f.organization_id for update
        loop
          insert into erased_family values (digest) on conflict do nothing;
          perform erase_family_in(found_in.organization_id, erased, found_in.name, reference, caller);
        end loop;
        select jsonb_agg(erasure_certificate(e) order by e.erased_at, e.id) into certificates from erasure e
          where e.family_digest = digest;
        if certificates is null then
          perform platform.reject_erased(erased);
          perform platform.reject('no_such_family', 'P0002', 'no organization has such a family', erased::text,
            'Check the id. No family of the region has it, and none with it was erased.');
        end if;
        return certificates;
      end $$;

      create function platform.erase_family(family uuid, reference text) returns jsonb
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        return platform.erase(family, reference, 'platform');
      end $$;
      grant execute on function platform.erase_family to org_api_platform;
      grant execute on function is_family_erased to org_api_import;

      -- After a backup was restored: erases again what certificates name, and rejects those ids that the
      -- backup does not have. \`certificates\`: objects with familyDigest and reference.
      create function erase_again(certificates jsonb) returns jsonb
      language plpgsql volatile set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      declare
        digests constant bytea[] := array(select distinct decode(c ->> 'familyDigest', 'hex')
          from jsonb_array_elements(certificates) c);
        erased record;
        made jsonb := '[]';
      begin
        perform platform.check_isolation();
        -- All of them: so no one is under way who holds one of the locks of families and waits for another.
        perform from organization o order by o.id for no key update;
        perform from seat_plan p order by p.organization_id for no key update;
        perform lock_families(digests, true);
        insert into erased_family select unnest(digests) on conflict do nothing;
        for erased in select distinct on (f.id) f.id, c ->> 'reference' as reference
          from jsonb_array_elements(certificates) c
          join family f on sha256(uuid_send(f.id)) = decode(c ->> 'familyDigest', 'hex') order by f.id
        loop
          made := made || platform.erase_locked(erased.id, erased.reference, 'restore');
        end loop;
        return made;
      end $$;
    `);

    this.addSql(/* sql */ `
      -- What follows an erasure: responses that came afterwards, days that have left the window, and the
      -- statistics, once no response can follow. A response to an event of another family may have been
      -- on its way too. Returns how many responses it erased.
      create function repeat_erasures() returns bigint
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        open_erasure public.erasure;
        subjects uuid[];
        erased bigint := 0;
        late bigint;
        is_completed boolean := false;
      begin
        delete from family_day d using erasure e where e.erased_at > now() - interval '100 days'
          and d.organization_id = e.organization_id and d.family_id = e.kept_as
          and d.day < (now() at time zone 'UTC')::date - 90;
        -- Those first that wait longest for a try: a hundred that a paused webhook delays keep no other waiting.
        for open_erasure in select * from erasure e where e.completed_at is null
          order by e.tried_at nulls first, e.erased_at limit 100 for update skip locked
        loop
          update erasure e set tried_at = clock_timestamp()
            where e.organization_id = open_erasure.organization_id and e.id = open_erasure.id;
          subjects := list_subjects(open_erasure.organization_id, open_erasure.kept_as);
          erased := erased + erase_responses(open_erasure.organization_id, subjects);
          update delivery_attempt a set response = null, response_encoding = null
            where a.organization_id = open_erasure.organization_id and a.response is not null
              and a.started_at between open_erasure.erased_at - interval '5 minutes' and open_erasure.erased_at
              and a.finished_at > open_erasure.erased_at;
          get diagnostics late = row_count;
          erased := erased + late;
          continue when open_erasure.erased_at > now() - interval '5 minutes' or exists (
            select from event v join delivery d on d.organization_id = v.organization_id and d.event_id = v.id
            where v.organization_id = open_erasure.organization_id and v.subject_id = any (subjects)
              and (d.settled_at is null or d.settled_at > now() - interval '5 minutes'));
          update erasure e set completed_at = now()
            where e.organization_id = open_erasure.organization_id and e.id = open_erasure.id;
          is_completed := true;
        end loop;
        if is_completed then
          analyze family (id), client_grant (family_id), seat (family_id), family_day (family_id);
        end if;
        return erased;
      end $$;

      -- The certificates that the worker has not logged yet, or not as completed.
      create function list_erasures_to_log() returns table (organization_id uuid, id uuid, certificate jsonb)
      language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        select e.organization_id, e.id, erasure_certificate(e) from erasure e
        where not e.logged_completed and (not e.logged or e.completed_at is not null)
        order by e.erased_at limit 100;
      end;

      create function record_erasures_logged(certificates jsonb) returns void
      language sql volatile security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        update erasure e set logged = true, logged_completed = c.value -> 'completedAt' <> 'null'
        from jsonb_array_elements(certificates) c
        where e.organization_id = (c.value ->> 'organizationId')::uuid and e.id = (c.value ->> 'erasureId')::uuid;
      end;

      grant execute on function repeat_erasures, list_erasures_to_log, record_erasures_logged, erasure_limit_used
        to org_api_worker;
    `);
  }
}
