/**
 * The values of fields that have one of several: in the contract, in imports and in schema `platform`. The constraints
 * of the tables and the functions of the platform have the same, which tests compare.
 */

export const organizationKinds = [
  'direct',
  'law_firm',
  'mediation',
  'legal_aid',
  'court',
  'nonprofit',
  'other',
] as const;

export const memberStatuses = ['invited', 'active', 'suspended', 'left'] as const;

export const grantKinds = ['attorney', 'neutral'] as const;

export const grantEndReasons = ['ended', 'moved'] as const;

export const seatEndReasons = ['ended_by_organization', 'access_ended', 'subscription_ended'] as const;

export const suspendReasons = ['failures', 'gone'] as const;
export type SuspendReason = (typeof suspendReasons)[number];

export const subscriptionStatuses = [
  'incomplete',
  'incomplete_expired',
  'trialing',
  'active',
  'past_due',
  'canceled',
  'unpaid',
  'paused',
] as const;

export const referralStates = ['signed_up', 'qualified', 'not_counted'] as const;
