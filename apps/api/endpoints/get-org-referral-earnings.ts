import { ReferralEarnings } from '#domain/contract/resources.ts';
import { referralEarningsSql } from '#domain/db/statements/referrals.ts';
import { endpoint } from '../endpoint.ts';

/** Referral earnings by month. */
export const getOrgReferralEarnings = endpoint({
  operationId: 'getOrgReferralEarnings',
  resource: '/referral-earnings',
  scope: 'org.referrals.manage',
  summary: 'Referral earnings by month',
  description: 'The organization’s share of referred invoices, summed per month and currency. Only sums are given.',
  response: ReferralEarnings,
  body: referralEarningsSql,
});
