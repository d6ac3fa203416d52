import type { PostgresServer } from '#domain/db/server.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { IdentityRefused } from '#domain/identity/refused.ts';
import { enrolmentLink } from '#domain/identity/token.ts';
import { withDatabase } from './databases.ts';
import type { StackOrganization } from './state.ts';

/**
 * How the owner of the first sample organization enters the console: by a link, or by signing in
 * (`link` is null) when one was used before.
 */
export interface SampleOwner {
  organizationName: string;
  email: string;
  link: string | null;
}

/**
 * Creates an enrolment link for the owner of the first organization that has one, which voids older
 * links; null without one. An owner who can already sign in gets no link, because an operator's
 * link would replace their password.
 */
export async function createOwnerLink(
  owner: PostgresServer,
  consoleUrl: string,
  organizations: readonly StackOrganization[],
): Promise<SampleOwner | null> {
  const organization = organizations.find(({ ownerUserId }) => ownerUserId !== null);
  if (organization === undefined) return null;
  const { id: organizationId, name: organizationName, ownerUserId } = organization;
  return withDatabase(owner, async (database) => {
    const { rows } = await database.pool.query<{ email: string; signInEmail: string | null }>(
      `select m.email, i.email as "signInEmail" from membership m
       left join sign_in_confirmation c on c.person_id = m.person_id and c.organization_id = m.organization_id
       left join sign_in i on i.person_id = c.person_id
       where m.organization_id = $1 and m.person_id = $2`,
      [organizationId, ownerUserId],
    );
    const [found] = rows;
    if (found === undefined) return null;
    const { email, signInEmail } = found;
    if (signInEmail !== null) return { organizationName, email: signInEmail, link: null };
    const { token } = await createEnrolment(database.orm.em, { organizationId, email, by: 'operator' });
    return { organizationName, email, link: enrolmentLink(consoleUrl, token) };
  }).catch((error: unknown) => {
    // Two members of an imported file may have the same address, which then identifies neither.
    if (error instanceof IdentityRefused) return null;
    throw error;
  });
}
