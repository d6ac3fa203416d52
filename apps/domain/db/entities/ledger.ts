import { defineEntity, p } from '@mikro-orm/core';

/** What was rolled up of one day's events: sums, several rows a day. See migration 0008. */
export const LedgerDay = defineEntity({
  name: 'LedgerDay',
  tableName: 'ledger_day',
  properties: {
    id: p.bigint('number').primary(),
    day: p.date(),
    obligations: p.bigint('number').default(0),
    delivered: p.bigint('number').default(0),
    exhausted: p.bigint('number').default(0),
    cancelled: p.bigint('number').default(0),
  },
});
