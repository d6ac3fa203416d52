import { defineEntity, p, sql } from '@mikro-orm/core';

/** `done`: all were sent again. `cancelled`: by a person. `ended`: early, by `endReason`. */
export type RedeliveryState = 'requested' | 'running' | 'done' | 'cancelled' | 'ended';

/** Why it ended early: what happened to its webhook. */
export type RedeliveryEndReason = 'webhook_paused' | 'webhook_suspended' | 'webhook_deleted';

const RedeliverySchema = defineEntity({
  name: 'Redelivery',
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary(),
    webhookId: p.uuid(),
    rangeFrom: p.datetime().strictNullable(),
    rangeTo: p.datetime().strictNullable(),
    failedSince: p.datetime().strictNullable(),
    state: p.text().$type<RedeliveryState>().default('requested'),
    endReason: p.text().$type<RedeliveryEndReason>().strictNullable(),
    requestedBy: p.text().strictNullable(),
    requestedAt: p.datetime().defaultRaw('now()'),
    cancelRequestedAt: p.datetime().strictNullable(),
    finishedAt: p.datetime().strictNullable(),
    dueAt: p.datetime().defaultRaw('now()'),
    reached: p.uuid().strictNullable(),
    seenAll: p.boolean().default(false),
    seen: p.integer().default(0),
    matched: p.integer().default(0),
    queued: p.integer().default(0),
  },
});

/** A redelivery of many. `requestedBy` null: an operator. Workers write the progress. */
export class Redelivery extends RedeliverySchema.class {
  /** Requests that it stop. Returns false when it has ended, or a stop was requested before. */
  requestCancel(): boolean {
    const isOpen = this.state === 'requested' || this.state === 'running';
    if (!isOpen || this.cancelRequestedAt !== null) return false;
    this.cancelRequestedAt = sql<Date>`clock_timestamp()`;
    return true;
  }

  /** Ends it as cancelled when no worker has begun it. */
  cancelUnlessBegun(): void {
    if (this.state !== 'requested') return;
    this.state = 'cancelled';
    this.finishedAt = sql<Date>`clock_timestamp()`;
  }
}
RedeliverySchema.setClass(Redelivery);
