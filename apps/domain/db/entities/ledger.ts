import { defineEntity, p } from '@mikro-orm/core';

/**
 * Counts that are kept apart from events and deliveries: several rows of an organization or
 * webhook. See migration 0008.
 */
export const LedgerCount = defineEntity({
  name: 'LedgerCount',
  tableName: 'ledger_count',
  properties: {
    id: p.bigint('number').primary(),
    organizationId: p.uuid(),
    webhookId: p.uuid().strictNullable(),
    changes: p.bigint('number').default(0),
    events: p.bigint('number').default(0),
    numbered: p.bigint('number').default(0),
  },
});

/** What was rolled up of one day's events: sums, several rows a day. See migration 0008. */
export const LedgerDay = defineEntity({
  name: 'LedgerDay',
  tableName: 'ledger_day',
  properties: {
    id: p.bigint('number').primary(),
    day: p.date(),
    deliveries: p.bigint('number').default(0),
    delivered: p.bigint('number').default(0),
    exhausted: p.bigint('number').default(0),
    cancelled: p.bigint('number').default(0),
  },
});
