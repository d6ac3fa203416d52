import { Migration } from '@mikro-orm/migrations';

/**
 * Families as an organization sees them (a name), the consent grants that make them its clients,
 * and their seats. Only the organization's own side is stored: no message, document, money or
 * record of a family has a table.
 */
export class ClientsAndSeats extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create table family (
        organization_id uuid not null constraint family_organization references organization,
        id uuid not null,
        name text collate "C" not null constraint family_name_not_empty check (name <> ''),
        primary key (organization_id, id)
      );

      create table client_grant (
        organization_id uuid not null,
        id uuid not null default new_id() constraint client_grant_id_unique unique,
        kind text not null constraint client_grant_kind_known check (kind in ('attorney', 'neutral')),
        professional_id text collate "C" not null,
        family_id uuid not null,
        since timestamptz not null,
        ends_at timestamptz,
        status text not null default 'active'
          -- \`scheduled\`: it begins at \`since\`, which lies ahead. \`withdrawn\`: it never began. Neither has
          -- an event, and no read shows them; what is due is shown by the clock.
          constraint client_grant_status_known check (status in ('scheduled', 'active', 'ended', 'withdrawn')),
        end_reason text constraint client_grant_end_reason_known check (end_reason in ('ended', 'moved')),
        primary key (organization_id, id),
        constraint client_grant_professional foreign key (organization_id, professional_id) references membership,
        constraint client_grant_family foreign key (organization_id, family_id) references family,
        constraint client_grant_ended_has_reason check ((status = 'ended') = (end_reason is not null)),
        constraint client_grant_ended_has_end check (status <> 'ended' or ends_at is not null),
        constraint client_grant_ends_after_it_began check (ends_at >= since),
        -- lets a seat name its grant and that grant's family in one foreign key
        constraint client_grant_with_family_unique unique (organization_id, id, family_id)
      );
      create index client_grant_roster on client_grant (organization_id, since, id);
      create index client_grant_by_end on client_grant (organization_id, ends_at, id) where ends_at is not null;
      create index client_grant_by_family on client_grant (organization_id, family_id);
      create index client_grant_of_professional on client_grant (organization_id, professional_id, since, id);
      create index client_grant_by_professional on client_grant (organization_id, professional_id);
      -- The maintenance loop searches each second for access that is still open and has an end.
      create index client_grant_due on client_grant (ends_at) where status = 'active' and ends_at is not null;
      -- And for access that begins.
      create index client_grant_scheduled on client_grant (since) where status = 'scheduled';

      create table seat_plan (
        organization_id uuid primary key constraint seat_plan_organization references organization,
        invoiced integer not null default 0 constraint seat_plan_invoiced_form check (invoiced between 0 and 10000000),
        price_currency text,
        price_cents integer constraint seat_plan_price_not_negative check (price_cents >= 0),
        constraint seat_plan_price_whole check ((price_currency is null) = (price_cents is null))
      );

      create table subscription (
        organization_id uuid not null constraint subscription_organization references organization,
        id uuid not null default new_id() constraint subscription_id_unique unique,
        status text not null constraint subscription_status_known check (status in
          ('incomplete', 'incomplete_expired', 'trialing', 'active', 'past_due', 'canceled', 'unpaid', 'paused')),
        quantity integer not null constraint subscription_quantity_form check (quantity between 0 and 10000000),
        renews_at timestamptz,
        cancel_at_period_end boolean not null default false,
        primary key (organization_id, id)
      );

      create table seat (
        organization_id uuid not null constraint seat_plan_of_seat references seat_plan,
        id uuid not null default new_id() constraint seat_id_unique unique,
        grant_id uuid not null,
        family_id uuid not null,
        given_at timestamptz not null default now(),
        ended_at timestamptz,
        end_reason text constraint seat_end_reason_known check (end_reason in ('ended_by_organization',
          'access_ended', 'subscription_ended')),
        primary key (organization_id, id),
        constraint seat_grant_of_family foreign key (organization_id, grant_id, family_id)
          references client_grant (organization_id, id, family_id),
        constraint seat_ended_has_reason check ((ended_at is null) = (end_reason is null)),
        constraint seat_ends_after_it_was_given check (ended_at >= given_at)
      );
      create unique index seat_one_per_family on seat (organization_id, family_id) where ended_at is null;
      create index seat_by_grant on seat (organization_id, grant_id);
      create index seat_assigned on seat (organization_id, given_at, id) where ended_at is null;
      create index seat_ended on seat (organization_id, ended_at, id) where ended_at is not null;
    `);

    // Seats are counted once per statement, under the lock of the plan's row, so that two
    // concurrent writers cannot both take the last one. (Counting per row would make an import of
    // many seats quadratic.) Every writer locks plan, then grant, then seat. The rule runs with the
    // owner's rights, so a login that assigns a seat needs no right on the tables that the rule
    // reads. pg_temp comes last by name; otherwise it would come first, and a writer's temporary
    // table named seat_plan would be read.
    this.addSql(/* sql */ `
      create function seat_capacity(org uuid) returns bigint language sql stable
      begin atomic
        select coalesce((select p.invoiced from seat_plan p where p.organization_id = org), 0)
             + coalesce((select sum(s.quantity) from subscription s
                         where s.organization_id = org and s.status in ('active', 'trialing', 'past_due')), 0);
      end;

      create function seat_assigned_rules() returns trigger
      language plpgsql security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        org uuid;
        -- An array, not a join: a planner with stale statistics made the join a quadratic loop over
        -- 10,000 new seats (43 s).
        grants uuid[];
      begin
        for org in select distinct n.organization_id from new_seat n where n.ended_at is null order by 1 loop
          -- Not "for update": the seat's reference already holds a key share on the row, and two
          -- concurrent assignments would wait for each other.
          perform from seat_plan p where p.organization_id = org for no key update;
          grants := array(select n.grant_id from new_seat n where n.organization_id = org and n.ended_at is null);
          perform from client_grant g where g.organization_id = org and g.id = any (grants) order by g.id for share;
          if exists (
            select from client_grant g
            where g.organization_id = org and g.id = any (grants) and (g.status <> 'active' or g.ends_at <= now())
          ) then
            raise exception 'an assigned seat needs an active grant'
              using errcode = 'check_violation', constraint = 'seat_needs_active_grant';
          end if;
          if (select count(*) from seat s where s.organization_id = org and s.ended_at is null)
              > seat_capacity(org) then
            raise exception 'the seat plan of the organization is used up'
              using errcode = 'check_violation', constraint = 'seat_within_plan';
          end if;
        end loop;
        return null;
      end $$;
      create trigger seat_given after insert on seat
        referencing new table as new_seat for each statement execute function seat_assigned_rules();

      create function seat_stays_ended() returns trigger
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        raise exception 'an ended seat stays ended; assign a new one'
          using errcode = 'check_violation', constraint = 'seat_stays_ended';
      end $$;
      create trigger seat_stays_ended before update on seat
        for each row when (old.ended_at is not null and new.ended_at is null) execute function seat_stays_ended();
    `);

    this.addSql(/* sql */ `
      create function client_grant_never_goes_back() returns trigger
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        raise exception 'access that is % cannot become %; it needs a new grant', old.status, new.status
          using errcode = 'check_violation', constraint = 'client_grant_never_goes_back';
      end $$;
      -- Of a status that is not known, the check of the column says so.
      create trigger client_grant_never_goes_back before update on client_grant
        for each row when (old.status <> new.status
          and new.status in ('scheduled', 'active', 'ended', 'withdrawn')
          and (old.status, new.status) not in
            (('scheduled', 'active'), ('scheduled', 'withdrawn'), ('active', 'ended')))
        execute function client_grant_never_goes_back();

      -- Runs as the writer, because the triggers of seat check the role that writes.
      create function client_grant_end_ends_seat() returns trigger
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        update seat s set ended_at = greatest(s.given_at, least(new.ends_at, now())), end_reason = 'access_ended'
          where s.organization_id = new.organization_id and s.grant_id = new.id and s.ended_at is null;
        return null;
      end $$;
      create trigger client_grant_ended after update on client_grant
        for each row when (old.status = 'active' and new.status = 'ended')
          execute function client_grant_end_ends_seat();
    `);

    // A row that is inserted as ended emits nothing. Inserted as active, it would have been ended a
    // second later, with a client.ended without a client.started before it. Constraints reject
    // contradictions (active, with a reason for its end).
    this.addSql(/* sql */ `
      create function client_grant_arrives_ended() returns trigger
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        new.status := 'ended';
        new.end_reason := 'ended';
        return new;
      end $$;
      create trigger client_grant_arrives_ended before insert on client_grant
        for each row when (new.status = 'active' and new.end_reason is null and new.ends_at <= now())
          execute function client_grant_arrives_ended();
    `);

    // Writers name only what they mean: access with a `since`. A minute absorbs the difference of two
    // clocks, and that of a transaction's time and its statements'.
    this.addSql(/* sql */ `
      create function client_grant_is_scheduled() returns trigger
      language plpgsql set search_path = pg_catalog, public, pg_temp as $$
      begin
        new.status := 'scheduled';
        return new;
      end $$;
      create trigger client_grant_is_scheduled before insert on client_grant
        for each row when (new.status = 'active' and new.since > clock_timestamp() + interval '1 minute')
          execute function client_grant_is_scheduled();

      -- Begins access whose time has come and that the worker has not begun yet. Every change of a grant,
      -- and every new seat of it, calls this first: by the clock, it is active. Locks plan, then grant.
      create function begin_due_grant(org uuid, grant_id uuid) returns void
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        perform from client_grant g where g.organization_id = org and g.id = grant_id and g.status = 'scheduled';
        if not found then return; end if;
        perform from seat_plan p where p.organization_id = org for no key update;
        perform from client_grant g where g.organization_id = org and g.id = grant_id for no key update;
        update client_grant g set status = 'active'
          where g.organization_id = org and g.id = grant_id and g.status = 'scheduled'
            and g.since <= clock_timestamp();
      end $$;
    `);
  }
}
