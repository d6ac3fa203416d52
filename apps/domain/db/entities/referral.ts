import { defineEntity, p } from '@mikro-orm/core';

/** Referral codes and what came of them: one entity per table of migration 0004. */
export const ReferralCode = defineEntity({
  name: 'ReferralCode',
  tableName: 'referral_code',
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary(),
    code: p.text(),
    link: p.text(),
    label: p.text().strictNullable(),
    active: p.boolean(),
  },
});

/** One sign-up by a code. */
export const Referral = defineEntity({
  name: 'Referral',
  tableName: 'referral',
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary(),
    codeId: p.uuid(),
    state: p.text().$type<'signed_up' | 'qualified' | 'not_counted'>(),
  },
});

/**
 * One invoice's share for the organization, in minor currency units; `month` is `YYYY-MM`. Reads
 * give sums only.
 */
export const ReferralInvoice = defineEntity({
  name: 'ReferralInvoice',
  tableName: 'referral_invoice',
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary(),
    month: p.text(),
    currency: p.text(),
    shareCents: p.bigint('number'),
  },
});
