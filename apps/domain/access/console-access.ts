import type { EntityManager } from '@mikro-orm/postgresql';
import { recordActivity } from '../activity/record.ts';
import { query, type SqlPart, sql } from '../db/statement.ts';
import { type Authority, askerOf } from './authority.ts';

/**
 * Returns an SQL condition on a row of `membership`: whether its organization has confirmed how its
 * person signs in. A sign-in is of the whole region: without this, the holder of one organization's
 * link would enter every other organization that an import makes their person a member of.
 */
export const isConfirmed = (membership = 'm'): SqlPart => sql`exists (
  select from sign_in_confirmation c
  where c.person_id = ${sql.ref(`${membership}.person_id`)}
    and c.organization_id = ${sql.ref(`${membership}.organization_id`)})`;

/**
 * Returns what a row of `membership` allows its person in the console, as an SQL expression: `open`
 * is the organization, within their roles. With `waiting` they can sign in and use a link of the
 * organization, but see nothing of it, not even its name. Null is no access.
 *
 * This is the only rule for it. A session starts only for a person with a membership that gives any
 * (`signIn`), and each request and each change of organization evaluates it again (`findSession`).
 */
export const consoleAccess = (membership = 'm'): SqlPart => sql`(
  case
    when ${sql.ref(`${membership}.status`)} = 'active' and ${isConfirmed(membership)} then 'open'
    when ${sql.ref(`${membership}.status`)} in ('active', 'invited') then 'waiting'
  end)`;

/**
 * Confirms a person's sign-in for an organization that they are an active member of, in the
 * transaction that saw them use the organization's own link, or for an operator. The organization's
 * activity log records it. Returns false, and records nothing, when it was confirmed before or
 * there is no such active member who signs in.
 */
export async function confirmSignIn(
  tx: EntityManager,
  { organizationId, personId, by }: { organizationId: string; personId: string; by: Authority },
  now: Date,
): Promise<boolean> {
  const source = by === 'operator' ? 'operator' : 'link';
  const rows = await query(tx)`
    insert into sign_in_confirmation (person_id, organization_id, confirmed_at, confirmed_by)
    select m.person_id, m.organization_id, ${now.toISOString()}::timestamptz, ${source}
    from membership m join sign_in i on i.person_id = m.person_id
    where m.organization_id = ${organizationId} and m.person_id = ${personId} and m.status = 'active'
    on conflict do nothing returning person_id`;
  if (rows.length === 0) return false;
  await recordActivity(tx, {
    organizationId,
    ...askerOf(by),
    action: 'sign_in.confirm',
    detail: { memberId: personId, by: source },
  });
  return true;
}
