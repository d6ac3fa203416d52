import type { Scope } from './scopes.ts';

/** The reads of each scope by operation id. A key that lacks the scope is rejected there. */
export const operationsOfScope: Readonly<Record<Scope, readonly string[]>> = {
  'org.read': ['getOrg'],
  'org.clients.read': ['getFirmRoster', 'getOrgSeatFamilies'],
  'org.members.read': ['listMembers'],
  'org.analytics.read': ['getFirmOutcomes'],
  'org.referrals.manage': ['listOrgReferralCodes', 'getOrgReferralEarnings'],
  'org.roles.read': ['listRoles'],
  'org.billing.manage': ['getOrgSeats'],
};
