import { Migration } from '@mikro-orm/migrations';

/**
 * All that the read API reaches: the views and functions of schema `api`. Of a family, org_api_read
 * sees names and dates. Views run with their owner's rights, so it needs no right on a table.
 */
export class ReadApi extends Migration {
  override up(): void {
    this.addSql(/* sql */ `
      create view api.key as
        select id, organization_id, creator_id, fingerprint, scopes, expires_at, revoked_at, creator_left_at,
            allowed_addresses
          from public.api_key;
      create view api.organization as
        select id, name, slug, kind, status, created_at from public.organization;
      create view api.member as
        select organization_id, person_id, name, email, title, status from public.membership;
      create view api.member_role as
        select organization_id, person_id, role_id from public.membership_role;
      create view api.role as
        select id, organization_id, key, name, description, permissions, position from public.role;
      create view api.family as
        select organization_id, id, name from public.family;
      -- Begin and end take effect by the clock, the end for seats too; the maintenance loop writes
      -- them a second later. Access that lies ahead is no access yet.
      create view api.client_grant as
        select organization_id, id, kind, professional_id, family_id, since, ends_at,
          case when status = 'ended' or ends_at <= now() then 'ended' else 'active' end as status
        from public.client_grant
        where status in ('active', 'ended') or status = 'scheduled' and since <= now();
      create view api.seat as
        select s.organization_id, s.id, s.grant_id, s.family_id, s.given_at,
          coalesce(s.ended_at, case when g.ends_at <= now() then greatest(g.ends_at, s.given_at) end) as ended_at,
          coalesce(s.end_reason, case when g.ends_at <= now() then 'access_ended' end) as end_reason
        from public.seat s join public.client_grant g on g.organization_id = s.organization_id and g.id = s.grant_id;
      create view api.seat_plan as
        select organization_id, invoiced, price_currency, price_cents from public.seat_plan;
      create view api.subscription as
        select organization_id, id, status, quantity, renews_at, cancel_at_period_end from public.subscription;
      create view api.referral_code as
        select c.organization_id, c.id, c.code, c.link, c.label, c.active,
          (select count(*) from public.referral r where r.organization_id = c.organization_id
            and r.code_id = c.id) as signed_up,
          (select count(*) from public.referral r where r.organization_id = c.organization_id and r.code_id = c.id
            and r.state = 'qualified') as qualified,
          (select count(*) from public.referral r where r.organization_id = c.organization_id and r.code_id = c.id
            and r.state = 'not_counted') as not_counted
        from public.referral_code c;
      create view api.referral_earning as
        select organization_id, month, currency, count(*) as invoices, sum(share_cents) as share_cents
        from public.referral_invoice group by organization_id, month, currency;
      create view api.schema_version as
        select name from public.schema_migration;
    `);

    // De-identified sums across families, as a function, because a view of the daily counts would
    // show the read role single families. It takes no date: the difference of two windows a day
    // apart could be one family's day.
    this.addSql(/* sql */ `
      create function api.outcomes(org uuid) returns table (
        families bigint,
        messages_families bigint, calm_messages bigint, messages bigint,
        exchanges_families bigint, exchanges_on_time bigint, exchanges bigint,
        expenses_families bigint, expenses_answered bigint, expenses_due bigint
      ) language sql stable security definer set search_path = pg_catalog, public, pg_temp
      begin atomic
        with today as (
          select (now() at time zone 'UTC')::date as today
        ), counted as (
          select distinct g.family_id
          from public.client_grant g, today
          where g.organization_id = org and g.status <> 'withdrawn'
            and g.since < today::timestamp at time zone 'UTC'
            and (g.ends_at is null or (g.ends_at > (today - 90)::timestamp at time zone 'UTC' and g.ends_at > g.since))
        ), per_family as (
          select d.family_id, sum(d.messages) as messages, sum(d.calm_messages) as calm_messages,
            sum(d.exchanges) as exchanges, sum(d.exchanges_on_time) as exchanges_on_time,
            sum(d.expenses_due) as expenses_due, sum(d.expenses_answered_in_14_days) as expenses_answered
          from public.family_day d, today
          where d.organization_id = org and d.day >= today - 90 and d.day < today
            and exists (
              select from public.client_grant g
              where g.organization_id = org and g.family_id = d.family_id and g.status <> 'withdrawn'
                and g.since < (d.day + 1)::timestamp at time zone 'UTC'
                and (g.ends_at is null or (g.ends_at > d.day::timestamp at time zone 'UTC' and g.ends_at > g.since)))
          group by d.family_id
        ), sums as (
          select
            count(*) filter (where messages > 0) as messages_families, sum(calm_messages) as calm_messages,
              sum(messages) as messages,
            count(*) filter (where exchanges > 0) as exchanges_families, sum(exchanges_on_time) as exchanges_on_time,
              sum(exchanges) as exchanges,
            count(*) filter (where expenses_due > 0) as expenses_families,
              sum(expenses_answered) as expenses_answered, sum(expenses_due) as expenses_due
          from per_family
        ), total as (
          select count(*) as families from counted
        )
        -- Withheld here, below the read role, so that no statement of it can see a sum over fewer
        -- than five families.
        select t.families,
          s.messages_families,
          case when t.families >= 5 and s.messages_families >= 5 then s.calm_messages end,
          case when t.families >= 5 and s.messages_families >= 5 then s.messages end,
          s.exchanges_families,
          case when t.families >= 5 and s.exchanges_families >= 5 then s.exchanges_on_time end,
          case when t.families >= 5 and s.exchanges_families >= 5 then s.exchanges end,
          s.expenses_families,
          case when t.families >= 5 and s.expenses_families >= 5 then s.expenses_answered end,
          case when t.families >= 5 and s.expenses_families >= 5 then s.expenses_due end
        from total t, sums s;
      end;
    `);

    // The only entries that the read role may add to the audit log: uses of keys that exist, as reads,
    // now. Organization and person are the key's, so a compromised read process cannot record what
    // a person did, write into another organization's log, or into the past. The key is looked up
    // row by row ("offset 0"): a plan that was created while the table was small would later read
    // all of it. Rejected calls (429) arrive as counts and add to one row per key and minute. A
    // count ends at the largest integer: one more would otherwise fail, with all counts of that
    // second.
    this.addSql(/* sql */ `
      create function api.record_key_uses(ids uuid[], keys uuid[], actions text[], statuses smallint[], codes text[],
        addresses inet[]) returns void
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      declare
        recorded bigint;
      begin
        insert into public.audit_entry (id, at, organization_id, person_id, key_id, action, status, code, address)
        select u.id, now(), k.organization_id, k.creator_id, u.key_id, u.action, u.status, u.code, u.address
        from unnest(ids, keys, actions, statuses, codes, addresses) as u (id, key_id, action, status, code, address)
        cross join lateral (select organization_id, creator_id from public.api_key where id = u.key_id offset 0) k
        where u.action ~ '^api\\.[A-Za-z]+$' and u.action <> 'api.console' and u.status >= 100;
        get diagnostics recorded = row_count;
        if recorded <> cardinality(ids) then
          raise exception 'a use names a key that does not exist, or is no read' using errcode = 'check_violation',
            constraint = 'audit_entry_use_of_key';
        end if;
      end $$;

      create function api.record_rejections(fingerprints bytea[], counts bigint[]) returns void
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        insert into public.audit_entry (at, organization_id, person_id, key_id, action, status, code, count)
        select date_trunc('minute', now()), k.organization_id, k.creator_id, k.id, 'api.rate_limited', 429,
          'rate_limited', least(sum(r.rejected), 2147483647)::integer
        from unnest(fingerprints, counts) as r (fingerprint, rejected)
        join public.api_key k on k.fingerprint = r.fingerprint
        where r.rejected > 0
        group by k.id
        order by k.id
        on conflict (key_id, at) where action = 'api.rate_limited' do update
          set count = least(audit_entry.count::bigint + excluded.count, 2147483647)::integer, serial = excluded.serial;
      end $$;

      grant select on api.key, api.organization, api.member, api.member_role, api.role, api.family, api.client_grant,
        api.seat, api.seat_plan,
        api.subscription, api.referral_code, api.referral_earning, api.schema_version to org_api_read;
      grant execute on function api.outcomes, api.record_key_uses, api.record_rejections to org_api_read;
    `);

    // A key sent to the console is rejected without a query, and counted in one row per key and
    // minute, with the address of the first request: nothing but the count of an entry changes, so
    // that each version in the chain can be written again. The console may add to that row and
    // change no other.
    this.addSql(/* sql */ `
      create function api.record_keys_at_console(fingerprints bytea[], counts bigint[], addresses inet[])
      returns void language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      begin
        insert into public.audit_entry (at, organization_id, person_id, key_id, action, status, code, count, address)
        select date_trunc('minute', now()), k.organization_id, k.creator_id, k.id, 'api.console', 403,
          'api_key_not_accepted',
          least(sum(r.rejected), 2147483647)::integer, max(r.address)
        from unnest(fingerprints, counts, addresses) as r (fingerprint, rejected, address)
        join public.api_key k on k.fingerprint = r.fingerprint
        where r.rejected > 0
        group by k.id
        order by k.id
        on conflict (key_id, at) where action = 'api.console'
          do update set count = least(audit_entry.count::bigint + excluded.count, 2147483647)::integer,
            serial = excluded.serial;
      end $$;
    `);
  }
}
