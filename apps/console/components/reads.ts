import { operationsOfScope } from '#domain/contract/operations.ts';
import type { Scope } from '#domain/contract/scopes.ts';

/** The data that each read returns, by operation id. */
export const reads: Readonly<Record<string, string>> = {
  getOrg: 'the organization',
  getFirmRoster: 'the roster of clients',
  getOrgSeatFamilies: 'the families with seats',
  listMembers: 'the members',
  getFirmOutcomes: 'the outcomes',
  listOrgReferralCodes: 'the referral codes',
  getOrgReferralEarnings: 'the referral earnings',
  listRoles: 'the roles',
  getOrgSeats: 'the seat counts',
};

const and = new Intl.ListFormat('en');

/** Returns what operations read, in words: `the members and the roles`. */
export const describeReads = (operations: readonly string[]): string =>
  and.format(operations.map((operation) => reads[operation] ?? operation));

export const describeScope = (scope: Scope): string => describeReads(operationsOfScope[scope]);
