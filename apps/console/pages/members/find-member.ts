import { getMemberDetails, type MemberDetails } from '#domain/members/list-members.ts';
import type { MemberVisit } from '../../web/visit.ts';
import { readPersonId } from './path.ts';

/** Returns the member in the path. @throws OrganizationError (404) when there is none. */
export function getMember(visit: MemberVisit): Promise<MemberDetails> {
  const { database, now } = visit.console;
  return getMemberDetails(database, visit.organizationId, readPersonId(visit), now());
}
