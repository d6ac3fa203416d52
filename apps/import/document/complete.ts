import { type Client, escapeLiteral } from 'pg';
import type { DocumentClock } from './resolve.ts';

/** The position of what is staged here: no object of a document has it. */
const leftOut = -1;

/**
 * Stages the end of what the lists of a complete document leave out, so that checks, counts, events and
 * writes treat it like the rest. Grants and seats end now, grants that have not begun are withdrawn,
 * members leave, subscriptions are canceled and referral codes become inactive. A list that is absent is
 * left alone, and an empty one ends all. Nothing is deleted; families, roles and other organizations stay.
 */
export async function stageLeftOut(client: Client, clock: DocumentClock): Promise<void> {
  const now = `${escapeLiteral(clock.now.toISOString())}::timestamptz`;
  const missing = (table: string, id = 'id') => `not exists (
    select from ${table} s where s.organization_id = o.id and s.${id} = t.${id})`;
  await client.query(`
    insert into staged_grant (organization_id, organization, position, id, kind, professional_id, family_id, since,
      ends_at, end_reason, status, lies_ahead, clock_ended, stored_status, stored_family_id, left_alone, repeated)
    select o.id, o.position, ${leftOut}, t.id, t.kind, t.professional_id, t.family_id, t.since,
      case when x.begun then greatest(t.since, least(t.ends_at, ${now})) else t.ends_at end,
      case when x.begun then 'ended' end, case when x.begun then 'ended' else 'withdrawn' end, false, false, t.status,
      t.family_id, false, false
    from import_organization o join client_grant t on t.organization_id = o.id
    cross join lateral (select t.status = 'active' or t.since <= ${now} as begun) x
    where o.has_grants and t.status in ('scheduled', 'active') and ${missing('staged_grant')}`);
  // A seat of the file on such a grant is a problem, like any seat on ended access.
  await client.query(`
    update staged_seat s set grant_status = g.status, assigned_after = false from staged_grant g
    where g.position = ${leftOut} and g.organization_id = s.organization_id and g.id = s.grant_id`);
  await client.query(`
    insert into staged_seat (organization_id, organization, position, id, grant_id, family_id, given_at, grant_found,
      grant_status, assigned_in_file, stored_grant_id, stored, left_alone, ended_at, end_reason, assigned_after)
    select o.id, o.position, ${leftOut}, t.id, t.grant_id, t.family_id, t.given_at, true,
      case when g.id is null then 'active' else 'ended' end, false, t.grant_id, true, false,
      greatest(t.given_at, coalesce(g.ends_at, ${now})),
      case when g.id is null then 'ended_by_organization' else 'access_ended' end, false
    from import_organization o join seat t on t.organization_id = o.id
    left join staged_grant g on g.organization_id = o.id and g.id = t.grant_id and g.status = 'ended'
    where t.ended_at is null and (o.has_seats or g.position = ${leftOut}) and ${missing('staged_seat')}`);
  await client.query(`
    insert into import_member (organization, position, user_id, name, email, title, status)
    select o.position, ${leftOut}, m.person_id, m.name, m.email, m.title, 'left'
    from import_organization o join membership m on m.organization_id = o.id
    where o.has_members and m.status <> 'left'
      and not exists (select from staged_member s where s.organization_id = o.id and s.user_id = m.person_id)`);
  // The view of subscriptions moves dates, and this one is not to move.
  await client.query(`
    insert into import_subscription (organization, position, id, status, quantity, renews_at, cancel_at_period_end)
    select o.position, ${leftOut}, t.id, 'canceled', t.quantity,
      t.renews_at - interval '${clock.shiftDays * 24} hours', t.cancel_at_period_end
    from import_organization o join import_seat_plan p on p.organization = o.position
    join subscription t on t.organization_id = o.id
    where p.has_subscriptions and t.status not in ('canceled', 'incomplete_expired')
      and ${missing('staged_subscription')}`);
  await client.query(`
    insert into import_referral_code (organization, position, id, code, link, label, active)
    select o.position, ${leftOut}, t.id, t.code, t.link, t.label, false
    from import_organization o join referral_code t on t.organization_id = o.id
    where o.has_referral_codes and t.active and ${missing('staged_referral_code')}`);
}

/** Returns how many objects end because the document leaves them out, by kind. */
export async function countLeftOut(client: Client): Promise<Record<string, number>> {
  const kinds = {
    members: 'import_member',
    subscriptions: 'import_subscription',
    grants: 'staged_grant',
    seats: 'staged_seat',
    referralCodes: 'import_referral_code',
  };
  const counts = Object.entries(kinds).map(
    ([kind, table]) => `select '${kind}' as kind, count(*)::integer as rows from ${table} where position = ${leftOut}`,
  );
  const { rows } = await client.query<{ kind: string; rows: number }>(counts.join(' union all '));
  return Object.fromEntries(rows.map(({ kind, rows: count }) => [kind, count]));
}
