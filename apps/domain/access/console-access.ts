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
 * A session that began at an organization's provider opens this organization only. One that began with a password
 * has to wait at an organization that requires its provider.
 *
 * This is the only rule for it. A session starts only for a person with a membership that gives any
 * (`signIn`), and each request and each change of organization evaluates it again (`findSession`).
 *
 * @param session - the alias of a row with the `provider_id` of a session; null: whatever the session.
 */
export const consoleAccess = (membership = 'm', session: string | null = null): RawBuilder<unknown> => sql`(
  case
    ${session === null ? sql`` : bySession(membership, session)}
    when ${sql.ref(`${membership}.status`)} = 'active' and ${isConfirmed(membership)} then 'open'
    when ${sql.ref(`${membership}.status`)} in ('active', 'invited') then 'waiting'
  end)`;

function bySession(membership: string, session: string): RawBuilder<unknown> {
  const [organization, provider] = [sql.ref(`${membership}.organization_id`), sql.ref(`${session}.provider_id`)];
  return sql`
    when ${provider} is not null and not exists (
      select from sso_provider p where p.id = ${provider} and p.organization_id = ${organization}) then null
    when ${provider} is null and ${sql.ref(`${membership}.status`)} in ('active', 'invited') and exists (
      select from sso_provider p where p.organization_id = ${organization} and p.is_required) then 'waiting'`;
}
