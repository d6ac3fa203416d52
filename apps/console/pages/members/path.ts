import { NotFound } from '../../web/answer.ts';
import type { MemberVisit } from '../../web/visit.ts';

/**
 * Ids that stand in an address as they are. The platform's look like this; an import may bring any
 * text, which stands there as `~` and base64url.
 */
const plainForm = /^\w[\w.-]{0,99}$/;

/** The path of a member's page, or of one below it (`/remove`). */
export const memberPath = (visit: MemberVisit, personId: string, rest = ''): string =>
  visit.at(
    `/members/person/${plainForm.test(personId) ? personId : `~${Buffer.from(personId, 'utf8').toString('base64url')}`}${rest}`,
  );

/** Whom the path names. @throws NotFound when no id is written so. */
export function personIdOf({ params }: MemberVisit): string {
  const given = params.personId ?? '';
  const personId = given.startsWith('~') ? Buffer.from(given.slice(1), 'base64url').toString('utf8') : given;
  // PostgreSQL has no text with NUL.
  if (personId === '' || personId.includes('\0')) throw new NotFound();
  return personId;
}

/** The roster of one member; null for whoever may not see it. */
export const clientsPath = (visit: MemberVisit, personId: string): string | null =>
  visit.may('org.clients.read') ? visit.at(`/clients?${new URLSearchParams({ professional: personId })}`) : null;
