import { ReferralCodes } from '#domain/contract/resources.ts';
import { referralCodesSql } from '#domain/db/statements/referrals.ts';
import { endpoint } from '../endpoint.ts';

/** Referral codes with counts. */
export const listOrgReferralCodes = endpoint({
  operationId: 'listOrgReferralCodes',
  resource: '/referral-codes',
  scope: 'org.referrals.manage',
  summary: 'Referral codes with counts',
  description: 'The organization’s referral codes and how many referrals each brought. The list is complete.',
  response: ReferralCodes,
  body: referralCodesSql,
});
