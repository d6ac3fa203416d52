import { type RawBuilder, sql } from 'kysely';

/**
 * Returns an SQL condition on a row of `membership`: whether its organization has confirmed how its
 * person signs in. A sign-in is of the whole region: without this, the holder of one organization's
 * link would enter every other organization that an import makes their person a member of.
 */
export const isConfirmed = (membership = 'm'): RawBuilder<unknown> => sql`exists (
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
export const consoleAccess = (membership = 'm'): RawBuilder<unknown> => sql`(
  case
    when ${sql.ref(`${membership}.status`)} = 'active' and ${isConfirmed(membership)} then 'open'
    when ${sql.ref(`${membership}.status`)} in ('active', 'invited') then 'waiting'
  end)`;
