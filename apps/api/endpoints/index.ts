import type { Endpoint } from '../endpoint.ts';
import { getFirmOutcomes } from './get-firm-outcomes.ts';
import { getFirmRoster } from './get-firm-roster.ts';
import { getOrg } from './get-org.ts';
import { getOrgReferralEarnings } from './get-org-referral-earnings.ts';
import { getOrgSeatFamilies } from './get-org-seat-families.ts';
import { getOrgSeats } from './get-org-seats.ts';
import { listMembers } from './list-members.ts';
import { listOrgReferralCodes } from './list-org-referral-codes.ts';
import { listRoles } from './list-roles.ts';

/** The nine reads, in the order in which they are documented. */
export const endpoints: readonly Endpoint[] = [
  getOrg,
  getFirmRoster,
  listMembers,
  getFirmOutcomes,
  listOrgReferralCodes,
  getOrgReferralEarnings,
  listRoles,
  getOrgSeats,
  getOrgSeatFamilies,
];
