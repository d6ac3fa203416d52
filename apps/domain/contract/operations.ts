import type { Scope } from './scopes.ts';

/**
 * Which reads a scope opens, by operation id; a key without the scope, or whose maker lost it, is
 * refused there.
 */
export const operationsOfScope: Readonly<Record<Scope, readonly string[]>> = {
  'org.read': ['getOrg'],
  'org.clients.read': ['getFirmRoster', 'getOrgSeatFamilies'],
  'org.members.read': ['listMembers'],
  'org.analytics.read': ['getFirmOutcomes'],
  'org.referrals.manage': ['listOrgReferralCodes', 'getOrgReferralEarnings'],
  'org.roles.read': ['listRoles'],
  'org.billing.manage': ['getOrgSeats'],
};
