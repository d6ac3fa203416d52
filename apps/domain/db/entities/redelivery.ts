import { defineEntity, p } from '@mikro-orm/core';

/**
 * A redelivery of many: the request, its progress and its end. See migration 0009. `requestedBy`
 * null: an operator.
 */
export const Redelivery = defineEntity({
  name: 'Redelivery',
  tableName: 'redelivery',
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary(),
    webhookId: p.uuid(),
    rangeFrom: p.datetime().strictNullable(),
    rangeTo: p.datetime().strictNullable(),
    failedSince: p.datetime().strictNullable(),
    state: p.text().$type<'requested' | 'running' | 'done' | 'cancelled' | 'ended'>().default('requested'),
    endReason: p.text().$type<'webhook_parked' | 'webhook_deleted'>().strictNullable(),
    requestedBy: p.text().strictNullable(),
    requestedAt: p.datetime(),
    cancelRequestedAt: p.datetime().strictNullable(),
    finishedAt: p.datetime().strictNullable(),
    pages: p.integer().default(0),
    reached: p.uuid().strictNullable(),
    seenAll: p.boolean().default(false),
    untold: p.array().default([]),
    seen: p.integer().default(0),
    queued: p.integer().default(0),
    hurried: p.integer().default(0),
    leasedUntil: p.datetime().strictNullable(),
  },
});
