import { escapeLiteral } from 'pg';
import { dayMs } from '#domain/contract/durations.ts';
import { itemPath } from './check-identity.ts';
import type { DocumentClock } from './resolve.ts';

/**
 * Checks in SQL, part two: families, access and seats, as they would be after the import. Each
 * statement returns rows of (path, problem).
 */

const erasedProblem = `'is the id of a family that was erased; a family that returns has a new id'`;

const checkFamily = (list: string, staged: string) => `
  select ${itemPath('x', list, 'familyId')}, case when z.id is not null then ${erasedProblem}
    else 'is the id of no family of the organization, in the file or the database' end
  from ${staged} x left join staged_erased z on z.id = x.family_id
  where x.family_id is not null and x.organization_id is not null
    and not exists (select from staged_family f where f.organization = x.organization and f.id = x.family_id)
    and not exists (select from family f where f.organization_id = x.organization_id and f.id = x.family_id)`;

const references = [
  `select ${itemPath('f', 'families', 'id')}, ${erasedProblem}
   from staged_family f where f.id in (select id from staged_erased)`,
  checkFamily('grants', 'staged_grant'),
  `select ${itemPath('g', 'grants', 'professionalUserId')},
    'is the userId of no member of the organization, in the file or the database'
   from staged_grant g
   where g.professional_id is not null and g.organization_id is not null
     and not exists (select from staged_member m where m.organization = g.organization
     and m.user_id = g.professional_id)
     and not exists (select from membership m where m.organization_id = g.organization_id
     and m.person_id = g.professional_id)`,
  `select ${itemPath('s', 'seats', 'grantId')}, 'is the id of no grant of the organization, in the file or the database'
   from staged_seat s where s.grant_id is not null and s.organization_id is not null and not s.grant_found`,
  checkFamily('familyDays', 'staged_family_day'),
];

const states = [
  `select ${itemPath('g', 'grants', 'familyId')}, 'the grant belongs to another family in the database'
   from staged_grant g where g.family_id is not null and g.stored_family_id <> g.family_id`,
  `select ${itemPath('g', 'grants', 'endReason')},
    concat('the grant ', case g.stored_status when 'ended' then 'has ended' else 'was withdrawn' end,
      ' in the database and cannot become active again; access given again is a new grant')
   from staged_grant g where g.stored_status in ('ended', 'withdrawn') and g.status = 'active' and not g.left_alone`,
  `select ${itemPath('g', 'grants', 'since')}, 'lies ahead, but the grant has begun in the database'
   from staged_grant g where g.lies_ahead and g.stored_status in ('active', 'ended')`,
  `select ${itemPath('s', 'seats', 'grantId')}, 'the seat belongs to another grant in the database'
   from staged_seat s where s.grant_id is not null and s.stored_grant_id <> s.grant_id`,
  `select ${itemPath('s', 'seats', 'endedAt')},
    'the seat has ended in the database and cannot be assigned again; a seat given again is a new one'
   from staged_seat s where s.stored_ended_at is not null and s.assigned_in_file and not s.left_alone`,
  `select ${itemPath('s', 'seats')}, 'is assigned, but its grant has ended'
   from staged_seat s where s.assigned_in_file and s.grant_status = 'ended'
     and not (s.stored and s.stored_ended_at is not null)`,
  // Also a seat that has ended: it would have been one of access that did not exist.
  `select ${itemPath('s', 'seats')}, concat(case when s.assigned_in_file then 'is' else 'was' end,
     ' assigned, but its grant ', case s.grant_status when 'scheduled' then 'has not begun' else 'was withdrawn' end)
   from staged_seat s where s.grant_status in ('scheduled', 'withdrawn')`,
];

/** Seats of the mentioned organizations that stay assigned and are not in the file. */
const otherAssignedSeats = `
  select o.position as organization, x.organization_id, x.family_id
  from staged_organization o join seat x on x.organization_id = o.id
  where x.ended_at is null
    and not exists (select from staged_seat s where s.organization_id = x.organization_id and s.id = x.id)
    and not exists (select from staged_grant g where g.organization_id = x.organization_id and g.id = x.grant_id
    and g.status = 'ended')`;

const seatCount = (sql: string) => `${sql} || case ${sql} when 1 then ' seat' else ' seats' end`;

const seatRules = [
  `select ${itemPath('r', 'seats', 'grantId')}, 'the family of this grant already has a seat in the file'
   from (select organization, position, row_number() over (partition by organization, family_id
     order by position) as nth
         from staged_seat where assigned_after and family_id is not null) as r
   where r.nth > 1`,
  `select ${itemPath('s', 'seats', 'grantId')},
    'the family of this grant already has a seat in the database, which the file does not end'
   from staged_seat s join (${otherAssignedSeats}) as x on x.organization = s.organization and x.family_id = s.family_id
   where s.assigned_after`,
  // If a part of the plan is itself wrong, the number of seats is not known.
  `with assigned as (
     select organization, count(*) as seats
     from (select organization from staged_seat where assigned_after union all select organization
       from (${otherAssignedSeats}) as x) as a
     group by organization
   ), paid as (
     select organization, sum(quantity) as seats
     from (
       select organization, quantity, status from staged_subscription
       union all
       select o.position, t.quantity, t.status from staged_organization o
         join subscription t on t.organization_id = o.id
       where not exists (select from staged_subscription s where s.organization_id = t.organization_id and s.id = t.id)
     ) as q
     where status in ('active', 'trialing', 'past_due')
     group by organization
   )
   select format('$.organizations[%s].%s', o.position, case when x.unplanned then 'seatPlan' else 'seats' end),
     format('%s%s would be assigned, but the organization has %s (%s invoiced, %s paid)',
       case when x.unplanned then 'is missing: ' end, ${seatCount('a.seats')},
       ${seatCount('(p.invoiced + p.paid)')}, p.invoiced, p.paid)
   from staged_organization o
   join assigned a on a.organization = o.position
   left join paid q on q.organization = o.position
   left join seat_plan t on t.organization_id = o.id
   left join staged_seat_plan f on f.organization = o.position
   cross join lateral (select coalesce(f.invoiced, t.invoiced, 0) as invoiced, coalesce(q.seats, 0) as paid) as p
   cross join lateral (select f.organization is null and p.invoiced + p.paid = 0 as unplanned) as x
   where a.seats > p.invoiced + p.paid
     and not (f.organization is not null and f.invoiced is null)
     and not exists (select from staged_subscription s where s.organization = o.position and (s.status is null
     or s.quantity is null))
     and (f.organization is not null
       or exists (select from staged_subscription s where s.organization = o.position)
       or exists (select from staged_seat s where s.organization = o.position and s.assigned_after and not s.stored))`,
];

/**
 * Sums that a response shows, with the rows of the database that the file leaves as they are. Every
 * month of the organization is summed, because one that loses a refund has a larger sum.
 */
const sums = [
  `select format('$.organizations[%s].referralInvoices', i.organization),
    'the shares of a month and currency sum to more than ${Number.MAX_SAFE_INTEGER}'
   from (
     select s.organization, s.month, s.currency, s.share_cents from staged_referral_invoice s
     where s.month is not null and s.currency is not null and s.share_cents is not null
     union all
     select o.organization, t.month, t.currency, t.share_cents
     from (select distinct s.organization, s.organization_id from staged_referral_invoice s) o
     join referral_invoice t on t.organization_id = o.organization_id
     where not exists (select from staged_referral_invoice x
       where x.organization_id = t.organization_id and x.id = t.id)
   ) i
   group by i.organization, i.month, i.currency having abs(sum(i.share_cents)) > ${Number.MAX_SAFE_INTEGER}`,
];

/** An end with a reason is in the past: not later than the end of the file's day, or than now. */
function endsInFuture(clock: DocumentClock): string[] {
  const endOfDay = Date.parse(`${clock.asOf}T00:00:00.000Z`) + (clock.shiftDays + 1) * dayMs;
  const latest = `${escapeLiteral(new Date(Math.max(endOfDay, clock.now.getTime())).toISOString())}::timestamptz`;
  return [
    `select ${itemPath('g', 'grants', 'endReason')}, 'is given, but endsAt lies ahead'
     from staged_grant g where g.status = 'ended' and g.ends_at > ${latest}`,
    `select ${itemPath('s', 'seats', 'endedAt')}, 'lies ahead'
     from staged_seat s where not s.assigned_in_file and s.ended_at > ${latest}`,
  ];
}

/** Dates that the shift moves outside the years that ISO 8601 writes with four digits. */
const overflows = [
  ['staged_grant', 'grants', 'since', 'since'],
  ['staged_grant', 'grants', 'ends_at', 'endsAt'],
  ['staged_seat', 'seats', 'given_at', 'givenAt'],
  ['staged_seat', 'seats', 'ended_at', 'endedAt'],
  ['staged_subscription', 'seatPlan.subscriptions', 'renews_at', 'renewsAt'],
  ['staged_family_day', 'familyDays', 'day', 'day'],
].map(
  ([from = '', list = '', column = '', field]) => `
    select ${itemPath('r', list, field)}, 'is moved out of the years 1 to 9999 by --today'
    from ${from} r where r.${column} < '0001-01-01' or r.${column} >= '10000-01-01'`,
);

export function clientChecks(clock: DocumentClock): string[] {
  return [
    ...references,
    ...states,
    ...seatRules,
    ...sums,
    ...endsInFuture(clock),
    ...(clock.shiftDays === 0 ? [] : overflows),
  ];
}
