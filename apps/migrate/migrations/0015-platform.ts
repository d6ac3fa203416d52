import { Migration } from '@mikro-orm/migrations';

/**
 * What the platform's own application calls: schema `platform`, functions to write and views to
 * read. Tables change with a release; this schema only grows. A function takes the locks in their
 * order (organization, plan, grant, seat), may be repeated, and rejects with a code, the error's constraint name,
 * which `test/golden/platform.json` lists. This file has what all functions share, and those of
 * grants and seats.
 *
 * No function has an exception block: each would be a subtransaction, and more than 64 of them in a
 * transaction slow every other session. Rows that are referred to are locked as the references lock
 * them, so that what was checked still holds at the insert.
 */
export class Platform extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create schema platform;
      grant usage on schema platform to org_api_platform;

      -- The SQLSTATE is the kind: P0002 something does not exist, 23505 the id has other content,
      -- 23514 a rule, 22023 an argument. No text has a value that a caller passed, beside ids: the
      -- server logs errors, and names and addresses are not for a log.
      create function platform.reject(code text, state text, message text, detail text, hint text) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        raise exception using errcode = state, constraint = code, schema = 'platform', message = message,
          detail = coalesce(detail, ''), hint = hint;
      end $$;

      -- In another isolation level each statement sees the database as it was when the transaction began:
      -- a limit would count without what others did since, and a repeat would miss the first call.
      create function platform.check_isolation() returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        if current_setting('transaction_isolation') <> 'read committed' then
          perform platform.reject('wrong_isolation', '25000', 'the transaction is not read committed',
            current_setting('transaction_isolation'), 'Begin it with isolation level read committed.');
        end if;
      end $$;

      -- What every function begins with.
      create function platform.check_call(arguments text[], missing boolean[]) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform platform.check_isolation();
        if true = any (missing) then
          perform platform.reject('argument_missing', '22023', 'an argument is missing',
            (select string_agg(a, ', ' order by n) from unnest(arguments, missing) with ordinality as x (a, m, n)
              where m),
            'Pass every argument that has no default.');
        end if;
      end $$;

      -- An argument that is null has a default, and passes.
      create function platform.check_argument(argument text, is_valid boolean, form text) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        if not is_valid then
          perform platform.reject('argument_invalid', '22023', 'an argument is invalid', argument, form);
        end if;
      end $$;

      -- One of several values. The hint has them.
      create function platform.check_choice(argument text, value text, allowed text[]) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform platform.check_argument(argument, value = any (allowed),
          format('One of %s.', array_to_string(allowed, ', ')));
      end $$;

      -- Distinct items, each one of \`allowed\` unless that is null. The detail has the position of the
      -- first that is not, counted from 0 as in JSON.
      create function platform.check_list(argument text, items text[], allowed text[]) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      declare
        wrong text;
      begin
        -- Before what PostgreSQL cannot compute of a matrix.
        perform platform.check_argument(argument, coalesce(array_ndims(items), 1) = 1, 'A list of texts.');
        select format('%s[%s]', argument, x.n - 1) into wrong
        from (select item, n, row_number() over (partition by item order by n) as nth
          from unnest(items) with ordinality as u (item, n)) as x
        where x.item is null or x.nth > 1 or x.item <> all (allowed) order by x.n limit 1;
        perform platform.check_argument(wrong, wrong is null, concat('Each item once, and none null.',
          case when allowed is not null then format(' One of %s.', array_to_string(allowed, ', ')) end));
      end $$;

      create function platform.check_text(argument text, value text, longest integer) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform platform.check_argument(argument, value ~ '[^[:space:]]' and length(value) <= longest,
          format('A text that is not blank, of at most %s characters.', longest));
      end $$;

      -- A time that every response can show. A clock may be a minute ahead of the database's.
      create function platform.check_time(argument text, moment timestamptz, may_lie_ahead boolean) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform platform.check_argument(argument, moment >= '0001-01-01T00:00:00Z' and moment < '10000-01-01T00:00:00Z',
          'A time of the years 1 to 9999.');
        if not may_lie_ahead and moment > clock_timestamp() + interval '1 minute' then
          perform platform.reject('lies_ahead', '22023', 'a time lies ahead', argument,
            'Call when it has come. platform.plan_end plans an end of access.');
        end if;
      end $$;

      create function platform.check_owner(organization uuid, owner uuid) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        if owner is distinct from organization then
          perform platform.reject('id_taken', '23505', 'the id is that of a row of another organization',
            coalesce(owner::text, 'system'), 'Use a new id.');
        end if;
      end $$;

      create function platform.reject_organization(organization uuid) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform platform.reject('no_such_organization', 'P0002', 'the organization does not exist',
          organization::text, 'Check the id. An organization begins with platform.put_organization.');
      end $$;

      -- The first lock of every call, so that transactions of one organization wait for each other at
      -- their first call, and never deadlock whatever the order of their calls is. The console's changes
      -- of members and roles take it too.
      create function platform.lock_organization(organization uuid) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform from organization o where o.id = organization for no key update;
        if not found then perform platform.reject_organization(organization); end if;
      end $$;

      create function platform.reject_grant(organization uuid, id uuid) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform platform.reject('no_such_grant', 'P0002', 'the organization has no such grant', reject_grant.id::text,
          coalesce((select format('It is a grant of organization %s.', g.organization_id) from client_grant g
            where g.id = reject_grant.id),
            'Check the id. If platform.start_grant is still on its way, repeat the call after it.'));
      end $$;

      -- An entry of the audit log without a person, whose actor is the system.
      create function platform.record_change(organization uuid, done text, about jsonb) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        insert into audit_entry (organization_id, action, detail) values (organization, 'platform.' || done, about);
      end $$;
    `);

    this.addSql(/* sql */ `
      -- Access whose \`since\` lies ahead is scheduled by a trigger, and begins then. A grant that exists
      -- is found before the times are checked: repeated with the same values it changes nothing, also
      -- after it has ended or was withdrawn, so that a queue that delivers twice cannot give access
      -- again. A time that is left out is not compared, and neither is the end once it is final. An open
      -- grant with another end is an error: the caller would take an end for planned that is not.
      create function platform.start_grant(organization uuid, id uuid, kind text, professional text, family uuid,
        since timestamptz default null, ends_at timestamptz default null) returns text
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      declare
        stored public.client_grant;
        differing text;
        begins constant timestamptz := coalesce(since, clock_timestamp());
      begin
        perform platform.check_call(array['organization', 'id', 'kind', 'professional', 'family'],
          array[organization is null, id is null, kind is null, professional is null, family is null]);
        perform platform.check_choice('kind', kind, array['attorney', 'neutral']);
        perform platform.check_time('since', since, true);
        perform platform.check_time('ends_at', ends_at, true);
        perform platform.lock_organization(organization);
        select * into stored from client_grant g where g.id = start_grant.id;
        if not found then
          if ends_at < begins then
            perform platform.reject('ends_before_it_begins', '22023', 'access ends before it begins', 'ends_at',
              'Correct one of the two times.');
          end if;
          perform from family f where f.organization_id = organization and f.id = family for key share;
          if not found then perform platform.reject_family(family); end if;
          perform from membership m where m.organization_id = organization and m.person_id = professional
            for key share;
          if not found then
            perform platform.reject('no_such_member', 'P0002', 'the organization has no such member', 'professional',
              'Add the member with platform.put_member.');
          end if;
          insert into client_grant (organization_id, id, kind, professional_id, family_id, since, ends_at)
            values (organization, id, kind, professional, family, begins, ends_at) on conflict do nothing;
          if found then
            perform platform.record_change(organization, 'start_grant', jsonb_build_object('grantId', id));
            return 'created';
          end if;
          -- Another call inserted it meanwhile.
          select * into strict stored from client_grant g where g.id = start_grant.id;
        end if;
        perform platform.check_owner(organization, stored.organization_id);
        -- A grant of an erased family has another family now.
        if stored.family_id <> family then perform platform.reject_erased(family); end if;
        differing := concat_ws(', ', case when stored.kind <> kind then 'kind' end,
          case when stored.professional_id <> professional then 'professional' end,
          case when stored.family_id <> family then 'family' end,
          case when stored.since <> since then 'since' end,
          case when stored.status in ('scheduled', 'active') and ends_at is not null
            and stored.ends_at is distinct from ends_at then 'ends_at' end);
        if differing <> '' then
          perform platform.reject('grant_differs', '23505', 'the grant exists with other values', differing,
            case when differing = 'ends_at' then 'Set its end with platform.plan_end.'
              else 'A grant keeps these values. Other access has a new id; platform.move_grant moves access to another '
                'member.' end);
        end if;
        return 'unchanged';
      end $$;

      -- The lock of the plan comes before that of a grant also where a function does not read it: the console
      -- and the import lock in this order.
      create function platform.lock_plan(organization uuid) returns boolean
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform platform.lock_organization(organization);
        perform from seat_plan p where p.organization_id = organization for no key update;
        return found;
      end $$;

      -- The grant, locked. It has begun when its time has come, and ended when its planned end has: as the
      -- worker writes it within seconds, so that a call answers the same before and after.
      create function platform.lock_grant(organization uuid, id uuid) returns public.client_grant
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      declare
        stored public.client_grant;
      begin
        perform platform.lock_plan(organization);
        perform public.begin_due_grant(organization, id);
        update client_grant g set status = 'ended', end_reason = 'ended'
          where g.organization_id = organization and g.id = lock_grant.id and g.status = 'active'
            and g.ends_at <= clock_timestamp();
        select * into stored from client_grant g where g.organization_id = organization and g.id = lock_grant.id
          for no key update;
        if not found then perform platform.reject_grant(organization, id); end if;
        return stored;
      end $$;

      create function platform.reject_ended(stored public.client_grant) returns void
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform platform.reject('grant_has_ended', '23514', 'the grant has ended already',
          case when stored.status = 'withdrawn' then 'withdrawn before it began'
            else format('%s at %s', coalesce(stored.end_reason, 'ended'), api.utc(stored.ends_at)) end,
          'An end is final. Access that begins again is a new grant.');
      end $$;

      -- Null: no end is planned any more.
      create function platform.plan_end(organization uuid, id uuid, ends_at timestamptz) returns text
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      declare
        stored public.client_grant;
      begin
        perform platform.check_call(array['organization', 'id'], array[organization is null, id is null]);
        perform platform.check_time('ends_at', ends_at, true);
        stored := platform.lock_grant(organization, id);
        if stored.ends_at is not distinct from ends_at then return 'unchanged'; end if;
        if stored.status in ('ended', 'withdrawn') then perform platform.reject_ended(stored); end if;
        if ends_at <= now() then
          perform platform.reject('ends_in_past', '22023', 'the planned end has passed', 'ends_at',
            'platform.end_grant ends access now, or at a time that has passed.');
        end if;
        if ends_at < stored.since then
          perform platform.reject('ends_before_it_begins', '22023', 'access ends before it begins', 'ends_at',
            'platform.end_grant withdraws access that has not begun.');
        end if;
        update client_grant g set ends_at = plan_end.ends_at
          where g.organization_id = organization and g.id = plan_end.id;
        perform platform.record_change(organization, 'plan_end', jsonb_build_object('grantId', id));
        return 'changed';
      end $$;

      -- Ends access and its seat; returns false when it had ended so. Access that has not begun is
      -- withdrawn: receivers never hear of it, and its id stays used.
      create function platform.finish_grant(stored public.client_grant, reason text, moment timestamptz) returns boolean
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        if stored.status = 'ended' then
          if stored.end_reason = reason and (moment is null or moment = stored.ends_at) then return false; end if;
          perform platform.reject_ended(stored);
        end if;
        if stored.status = 'withdrawn' then return false; end if;
        if stored.status = 'scheduled' then
          update client_grant g set status = 'withdrawn'
            where g.organization_id = stored.organization_id and g.id = stored.id;
          return true;
        end if;
        if moment < stored.since then
          perform platform.reject('ends_before_it_begins', '22023', 'access ends before it begins', 'ended_at',
            'Correct the time, or leave it out: access then ends now.');
        end if;
        update client_grant g set status = 'ended', end_reason = reason,
          ends_at = greatest(g.since, coalesce(moment, clock_timestamp()))
          where g.organization_id = stored.organization_id and g.id = stored.id;
        return true;
      end $$;

      create function platform.end_grant(organization uuid, id uuid, reason text default 'ended',
        ended_at timestamptz default null) returns text
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      begin
        perform platform.check_call(array['organization', 'id', 'reason'],
          array[organization is null, id is null, reason is null]);
        perform platform.check_choice('reason', reason, array['ended', 'moved']);
        perform platform.check_time('ended_at', ended_at, false);
        if not platform.finish_grant(platform.lock_grant(organization, id), reason, ended_at) then
          return 'unchanged';
        end if;
        perform platform.record_change(organization, 'end_grant', jsonb_build_object('grantId', id));
        return 'changed';
      end $$;

      -- The old access ends with reason \`moved\`, its seat with it, and one of the same kind, family
      -- and planned end begins. Access that has not begun is withdrawn, and the new one begins at its time.
      create function platform.move_grant(organization uuid, id uuid, new_id uuid, professional text) returns text
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      declare
        old_grant public.client_grant;
        begins constant timestamptz := clock_timestamp();
      begin
        perform platform.check_call(array['organization', 'id', 'new_id', 'professional'],
          array[organization is null, id is null, new_id is null, professional is null]);
        perform platform.check_argument('new_id', new_id <> id, 'An id that no grant has.');
        old_grant := platform.lock_grant(organization, id);
        -- A repeat finds both: the old access moved, and the new one as this call would start it.
        if (old_grant.status = 'withdrawn' or old_grant.end_reason = 'moved')
          and exists (select from client_grant g where g.id = new_id) then
          return platform.start_grant(organization, new_id, old_grant.kind, professional, old_grant.family_id);
        end if;
        if old_grant.status in ('ended', 'withdrawn') then perform platform.reject_ended(old_grant); end if;
        if old_grant.professional_id = professional then
          perform platform.reject('same_professional', '23514', 'the member has this access already', 'professional',
            'Move it to another member.');
        end if;
        perform platform.finish_grant(old_grant, 'moved', greatest(begins, old_grant.since));
        if platform.start_grant(organization, new_id, old_grant.kind, professional, old_grant.family_id,
          greatest(begins, old_grant.since), old_grant.ends_at) <> 'created'
        then
          perform platform.reject('grant_differs', '23505', 'the grant exists, and was not moved here', 'new_id',
            'Use a new id.');
        end if;
        perform platform.record_change(organization, 'move_grant',
          jsonb_build_object('grantId', id, 'newGrantId', new_id));
        return 'changed';
      end $$;

      create function platform.give_seat(organization uuid, id uuid, grant_id uuid,
        given_at timestamptz default null) returns text
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      declare
        stored public.seat;
        of_grant public.client_grant;
        other uuid;
        differing text;
      begin
        perform platform.check_call(array['organization', 'id', 'grant_id'],
          array[organization is null, id is null, grant_id is null]);
        perform platform.check_time('given_at', given_at, false);
        -- Plan, grant, seat: the order of every writer. Under the plan's lock no other seat appears.
        if not platform.lock_plan(organization) then
          perform platform.reject('no_plan', 'P0002', 'the organization has no plan', organization::text,
            'Create it with platform.put_plan.');
        end if;
        select * into stored from seat s where s.id = give_seat.id;
        if found then
          perform platform.check_owner(organization, stored.organization_id);
          differing := concat_ws(', ', case when stored.grant_id <> grant_id then 'grant_id' end,
            case when stored.given_at <> given_at then 'given_at' end);
          if differing = '' then return 'unchanged'; end if;
          perform platform.reject('seat_differs', '23505', 'the seat exists with other values', differing,
            'Use a new id.');
        end if;
        of_grant := platform.lock_grant(organization, grant_id);
        -- The rules of the trigger of seat (0003), which holds them for every writer.
        if of_grant.status <> 'active' then
          perform platform.reject('grant_not_active', '23514', 'a seat needs active access', of_grant.status,
            case when of_grant.status = 'scheduled' then 'Repeat the call when the access has begun.'
              else 'Start a new grant, then give the seat to it.' end);
        end if;
        select s.id into other from seat s where s.organization_id = organization
          and s.family_id = of_grant.family_id and s.ended_at is null;
        if found then
          perform platform.reject('family_has_seat', '23514', 'the family has a seat already', other::text,
            'End that seat first.');
        end if;
        if (select count(*) from seat s where s.organization_id = organization and s.ended_at is null)
            >= seat_capacity(organization) then
          perform platform.reject('no_free_seat', '23514', 'every seat is given',
            format('seats: %s', seat_capacity(organization)), 'End a seat, or raise the plan or a subscription.');
        end if;
        insert into seat (organization_id, id, grant_id, family_id, given_at)
          values (organization, id, grant_id, of_grant.family_id, coalesce(given_at, clock_timestamp()))
          on conflict do nothing;
        if not found then
          -- Another organization gave the same id meanwhile: its plan is another lock.
          perform platform.check_owner(organization, (select s.organization_id from seat s where s.id = give_seat.id));
        end if;
        perform platform.record_change(organization, 'give_seat',
          jsonb_build_object('seatId', id, 'grantId', grant_id));
        return 'created';
      end $$;

      -- A seat may have ended with its access: the platform's end comes late, and changes nothing.
      create function platform.end_seat(organization uuid, id uuid, reason text default 'ended_by_organization',
        ended_at timestamptz default null) returns text
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      declare
        stored public.seat;
      begin
        perform platform.check_call(array['organization', 'id', 'reason'],
          array[organization is null, id is null, reason is null]);
        perform platform.check_choice('reason', reason,
          array['ended_by_organization', 'access_ended', 'subscription_ended']);
        perform platform.check_time('ended_at', ended_at, false);
        perform platform.lock_plan(organization);
        select * into stored from seat s where s.organization_id = organization and s.id = end_seat.id
          for no key update;
        if not found then
          perform platform.reject('no_such_seat', 'P0002', 'the organization has no such seat', end_seat.id::text,
            coalesce((select format('It is a seat of organization %s.', s.organization_id) from seat s
              where s.id = end_seat.id),
              'Check the id. If platform.give_seat is still on its way, repeat the call after it.'));
        end if;
        if stored.ended_at is not null then return 'unchanged'; end if;
        if ended_at < stored.given_at then
          perform platform.reject('ends_before_it_begins', '22023', 'the seat ends before it was given', 'ended_at',
            'Correct the time, or leave it out: the seat then ends now.');
        end if;
        update seat s set end_reason = reason,
          ended_at = greatest(s.given_at, coalesce(end_seat.ended_at, clock_timestamp()))
          where s.organization_id = organization and s.id = end_seat.id;
        perform platform.record_change(organization, 'end_seat',
          jsonb_build_object('seatId', id, 'grantId', stored.grant_id));
        return 'changed';
      end $$;

      create view platform.client_grant as
        select organization_id as organization, id, kind, professional_id as professional, family_id as family, since,
          ends_at, status, end_reason from public.client_grant;
      create view platform.seat as
        select organization_id as organization, id, grant_id, given_at, ended_at, end_reason as reason
          from public.seat;
      -- What the platform's changes caused: ids, and no body.
      create view platform.event as
        select organization_id as organization, id, type, (body::jsonb -> 'data' ->> 'grantId')::uuid as grant_id,
          created_at from public.event where subject_id is not null; -- operational events have none
      grant select on platform.client_grant, platform.seat, platform.event to org_api_platform;
      grant execute on function platform.start_grant, platform.plan_end, platform.end_grant, platform.move_grant,
        platform.give_seat, platform.end_seat to org_api_platform;
    `);
  }
}
