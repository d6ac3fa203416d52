import { Migration } from '@mikro-orm/migrations';
import { putFunction } from './put-function.ts';

/** The counts of a family's day: integers of at most a million, each part after its sum. */
const sums = {
  messages: 'calm_messages',
  exchanges: 'exchanges_on_time',
  expenses_due: 'expenses_answered_in_14_days',
};
const counts = Object.entries(sums).flat();
const fields = ['family', 'day', ...counts];
const quoted = (names: readonly string[]) => names.map((name) => `'${name}'`).join(', ');
const seatsForm = 'A number from 0 to 10,000,000.';
const isSeats = (argument: string) =>
  `perform platform.check_argument('${argument}', ${argument} between 0 and 10000000, '${seatsForm}');`;

/** The platform's functions and views of plans, subscriptions, referrals, and the days behind outcomes. */
export class PlatformMoney extends Migration {
  override up(): void {
    this.addSql(
      putFunction({
        noun: 'plan',
        table: 'seat_plan',
        key: 'one',
        required: { invoiced: 'integer' },
        optional: { price_currency: 'text default null', price_cents: 'integer default null' },
        checks: /* sql */ `
      ${isSeats('invoiced')}
      perform platform.check_text('price_currency', price_currency, 255);
      perform platform.check_argument('price_cents', price_cents >= 0, 'A number that is not negative.');
      perform platform.check_argument('price_cents', (price_currency is null) = (price_cents is null),
        'Pass currency and cents, or neither.');`,
      }),
    );

    this.addSql(
      putFunction({
        noun: 'subscription',
        table: 'subscription',
        key: 'region',
        required: { status: 'text', quantity: 'integer' },
        optional: { renews_at: 'timestamptz default null', cancel_at_period_end: 'boolean default false' },
        checks: /* sql */ `
      perform platform.check_choice('status', status, array['incomplete', 'incomplete_expired', 'trialing', 'active',
        'past_due', 'canceled', 'unpaid', 'paused']);
      ${isSeats('quantity')}
      perform platform.check_time('renews_at', renews_at, true);
      perform platform.check_argument('cancel_at_period_end', cancel_at_period_end is not null, 'true or false.');`,
        idInLog: 'subscriptionId',
      }),
    );

    this.addSql(
      putFunction({
        noun: 'referral_code',
        table: 'referral_code',
        key: 'region',
        required: { code: 'text', link: 'text' },
        optional: { label: 'text default null', active: 'boolean default true' },
        checks: /* sql */ `
      perform platform.check_text('code', code, 255);
      perform platform.check_text('link', link, 10000);
      perform platform.check_argument('label', length(label) <= 10000, 'At most 10,000 characters.');
      perform platform.check_argument('active', active is not null, 'true or false.');`,
        rules: /* sql */ `
      if exists (select from referral_code c where c.organization_id = organization and c.code = put_referral_code.code
        and c.id <> put_referral_code.id) then
        perform platform.reject('code_taken', '23505', 'another referral code has this text', 'code',
          'Use another text.');
      end if;`,
        idInLog: 'referralCodeId',
      }),
    );

    this.addSql(
      putFunction({
        noun: 'referral',
        table: 'referral',
        key: 'region',
        required: { code_id: 'uuid', state: 'text' },
        checks: /* sql */ `
      perform platform.check_choice('state', state, array['signed_up', 'qualified', 'not_counted']);`,
        rules: /* sql */ `
      perform from referral_code c where c.organization_id = organization and c.id = code_id for key share;
      if not found then
        perform platform.reject('no_such_code', 'P0002', 'the organization has no such referral code', code_id::text,
          'Create it with platform.put_referral_code.');
      end if;`,
        idInLog: 'referralId',
      }),
    );

    this.addSql(
      putFunction({
        noun: 'invoice',
        table: 'referral_invoice',
        key: 'region',
        required: { month: 'text', currency: 'text', share_cents: 'bigint' },
        checks: /* sql */ `
      perform platform.check_argument('month', month ~ '^\\d{4}-(0[1-9]|1[0-2])$', 'A month such as 2026-09.');
      perform platform.check_text('currency', currency, 255);
      perform platform.check_argument('share_cents', share_cents between -9007199254740991 and 9007199254740991,
        'At most 2^53 - 1, or as much below zero.');`,
        // The rule of the triggers of referral_invoice (0004), which hold it for every writer.
        rules: /* sql */ `
      if exists (
        select from (
          select i.month, i.currency, i.share_cents from referral_invoice i
          where i.organization_id = organization and i.id <> put_invoice.id
            and ((i.month, i.currency) = (put_invoice.month, put_invoice.currency)
              or (i.month, i.currency) = (select o.month, o.currency from referral_invoice o
                where o.id = put_invoice.id and o.organization_id = organization))
          union all select put_invoice.month, put_invoice.currency, put_invoice.share_cents) as s (m, c, share)
        group by s.m, s.c having abs(sum(s.share)) > 9007199254740991
      ) then
        perform platform.reject('sum_too_large', '23514', 'the shares of a month and currency are too large',
          'share_cents', 'Their sum may be 2^53 - 1, or as much below zero.');
      end if;`,
        idInLog: 'invoiceId',
      }),
    );

    this.addSql(/* sql */ `
      create function platform.is_day(value text) returns boolean language sql immutable parallel safe
      return case when value ~ '^\\d{4}-(0[1-9]|1[0-2])-\\d{2}$' and left(value, 4) <> '0000' then
        substr(value, 9)::integer between 1 and extract(day from
          make_date(left(value, 4)::integer, substr(value, 6, 2)::integer, 1) + interval '1 month' - interval '1 day')
        else false end;

      -- \`days\` is an array of objects with the fields family, day (2026-11-20) and the counts. Days
      -- that it does not have stay as they are.
      create function platform.put_family_days(organization uuid, days jsonb) returns text
      language plpgsql volatile security definer set search_path = pg_catalog, public, pg_temp as $$
      #variable_conflict use_variable
      declare
        wrong text;
        changed integer;
      begin
        perform platform.check_call(array['organization', 'days'], array[organization is null, days is null]);
        perform platform.check_argument('days', jsonb_typeof(days) = 'array', 'An array of objects.');
        perform platform.lock_organization(organization);

        select format('days[%s].%s', x.nth - 1, f.name) into wrong
        from jsonb_array_elements(days) with ordinality as x (item, nth)
          cross join unnest(array[${quoted(fields)}]) with ordinality as f (name, place)
          cross join lateral (select x.item ->> f.name as value, jsonb_typeof(x.item -> f.name) as type) v
        where not coalesce(case
            when f.name = 'family' then v.value ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
            when f.name = 'day' then platform.is_day(v.value)
            when v.type = 'number' and v.value ~ '^[0-9]{1,7}$' then v.value::integer <= 1000000
          end, false)
        order by x.nth, f.place limit 1;
        perform platform.check_argument(wrong, wrong is null, 'A UUID, a day such as 2026-11-20, or a count from 0 to '
          '1,000,000.');

        select format('days[%s].%s', x.nth - 1, k) into wrong
        from jsonb_array_elements(days) with ordinality as x (item, nth), jsonb_object_keys(x.item) with ordinality
          as key (k, place)
        where k <> all (array[${quoted(fields)}]) order by x.nth, key.place limit 1;
        perform platform.check_argument(left(wrong, 100), wrong is null, 'One of ${fields.join(', ')}.');

        select format('days[%s].%s', x.nth - 1, p.part) into wrong
        from jsonb_array_elements(days) with ordinality as x (item, nth)
          cross join (values ${Object.entries(sums)
            .map(([sum, part]) => `('${part}', '${sum}')`)
            .join(', ')}) as p (part, sum)
        where (x.item ->> p.part)::integer > (x.item ->> p.sum)::integer order by x.nth, p.part limit 1;
        perform platform.check_argument(wrong, wrong is null, 'A part is not larger than its sum.');

        select format('days[%s].day', x.nth - 1) into wrong
        from (select nth, row_number() over (partition by (item ->> 'family')::uuid, item ->> 'day' order by nth) as n
          from jsonb_array_elements(days) with ordinality as e (item, nth)) as x
        where x.n > 1 order by x.nth limit 1;
        perform platform.check_argument(wrong, wrong is null, 'A family has one object for a day.');

        perform from family f where f.organization_id = organization and f.id in (
          select (d ->> 'family')::uuid from jsonb_array_elements(days) d) order by f.id for key share;
        select d ->> 'family' into wrong from jsonb_array_elements(days) d
        where not exists (select from family f where f.organization_id = organization
          and f.id = (d ->> 'family')::uuid) limit 1;
        if found then perform platform.reject_family(wrong::uuid); end if;

        insert into family_day as t (organization_id, family_id, day, ${counts.join(', ')})
        select organization, d.family, d.day, ${counts.map((name) => `d.${name}`).join(', ')}
        from jsonb_to_recordset(days) as d (family uuid, day date,
          ${counts.map((name) => `${name} integer`).join(', ')})
        order by d.family, d.day
        on conflict (organization_id, family_id, day) do update set
          ${counts.map((name) => `${name} = excluded.${name}`).join(', ')}
        where (${counts.map((name) => `t.${name}`).join(', ')})
          is distinct from (${counts.map((name) => `excluded.${name}`).join(', ')});
        get diagnostics changed = row_count;
        if changed = 0 then return 'unchanged'; end if;
        perform platform.record_change(organization, 'put_family_days', jsonb_build_object('days', changed));
        return 'changed';
      end $$;

      create view platform.plan as
        select organization_id as organization, invoiced, price_currency, price_cents from public.seat_plan;
      create view platform.subscription as
        select organization_id as organization, id, status, quantity, renews_at, cancel_at_period_end
          from public.subscription;
      create view platform.referral_code as
        select organization_id as organization, id, code, link, label, active from public.referral_code;
      create view platform.referral as
        select organization_id as organization, id, code_id, state from public.referral;
      create view platform.invoice as
        select organization_id as organization, id, month, currency, share_cents from public.referral_invoice;
      grant select on platform.plan, platform.subscription, platform.referral_code, platform.referral, platform.invoice
        to org_api_platform;
      grant execute on function platform.put_plan, platform.put_subscription, platform.put_referral_code,
        platform.put_referral, platform.put_invoice, platform.put_family_days to org_api_platform;
    `);
  }
}
