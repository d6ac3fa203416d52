import { truncate } from '../../components/text.ts';
import { NotFoundError, type Page } from '../../web/response.ts';
import type { MemberVisit } from '../../web/visit.ts';

/** Ids that a path contains unchanged. Other imported ids are `~` and base64url. */
const plainForm = /^\w[\w.-]{0,99}$/;

/** Returns the path of a member's page, or of one below it (`/remove`). */
export const memberPath = (visit: MemberVisit, personId: string, rest = ''): string =>
  visit.at(`/members/person/${plainForm.test(personId) ? personId : `~${encode(personId)}`}${rest}`);

const encode = (personId: string): string => Buffer.from(personId, 'utf8').toString('base64url');

/** Returns the breadcrumbs of a page below a member. */
export const memberBreadcrumbs = (
  visit: MemberVisit,
  { personId, name }: { personId: string; name: string },
): Page['breadcrumbs'] => [
  [truncate(name, 80), memberPath(visit, personId)],
  ['Members', visit.at('/members')],
];

/** Returns the member's id in the path. @throws NotFoundError when the path has no valid id. */
export function readPersonId({ params }: MemberVisit): string {
  const given = params.personId ?? '';
  const personId = given.startsWith('~') ? Buffer.from(given.slice(1), 'base64url').toString('utf8') : given;
  // PostgreSQL has no text with NUL.
  if (personId === '' || personId.includes('\0')) throw new NotFoundError();
  return personId;
}

/** Returns the path of a member's clients; null for visitors who may not see them. */
export const clientsPath = (visit: MemberVisit, personId: string): string | null =>
  visit.may('org.clients.read') ? visit.at(`/clients?${new URLSearchParams({ professional: personId })}`) : null;
