import { defineEntity, p, sql } from '@mikro-orm/core';
import type { EventType } from '../../contract/events.ts';

/**
 * Whether a receiver verifies what it gets. `verified` takes both: a 2xx for what is signed
 * correctly, and a refusal of what is not. `no_answer`: nothing is proven, because no status came
 * or one that says nothing of the signature.
 */
export type SignatureResult = 'verified' | 'accepts_bad_signatures' | 'refuses_good_signatures' | 'no_answer';

const WebhookSchema = defineEntity({
  name: 'Webhook',
  tableName: 'webhook',
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary(),
    url: p.text(),
    description: p.text(),
    eventTypes: p.array().$type<EventType[]>(),
    state: p.text().$type<'active' | 'parked' | 'deleted'>(),
    parkedReason: p.text().$type<'failing' | 'paused'>().strictNullable(),
    failingSince: p.datetime().strictNullable(),
    lastFailedAt: p.datetime().strictNullable(),
    failingSeconds: p.double().default(0),
    nextFailureBy: p.datetime().strictNullable(),
    firstFailedEvent: p.uuid().strictNullable(),
    hasFailedTwice: p.boolean().default(false),
    slowSince: p.datetime().strictNullable(),
    epoch: p.integer().default(1),
    followUntil: p.datetime().strictNullable(),
    ramp: p.smallint().strictNullable(),
    nextSequence: p.bigint('number').default(1),
    slot: p.smallint().strictNullable(),
    createdAt: p.datetime(),
    signatureResult: p.text().$type<SignatureResult>().strictNullable(),
    signatureCheckedAt: p.datetime().strictNullable(),
    managedBy: p.text().strictNullable(),
    managedUid: p.uuid().strictNullable(),
  },
});

/**
 * Until when deliveries follow a webhook that was resumed or deleted: longer than any writer's
 * transaction lasts.
 */
const followUntil = () => sql<Date>`clock_timestamp() + interval '1 hour'`;

/**
 * A webhook. Its open deliveries wait because its state is `parked`, and no row of theirs changes.
 * `ramp`: how many deliveries at a time, after a resume. `slot`: among the organization's 20.
 * `managedBy`: the name of the cluster object that alone changes it, and `managedUid` its id.
 */
export class Webhook extends WebhookSchema.class {
  /** Pauses it; false when it is paused or suspended already. */
  pause(): boolean {
    if (this.state === 'parked') return false;
    return this.hold();
  }

  /** Pauses it, also when it is suspended; false when it is paused already. */
  hold(): boolean {
    if (this.parkedReason === 'paused') return false;
    this.state = 'parked';
    this.parkedReason = 'paused';
    this.ramp = null;
    return true;
  }

  /**
   * Opens it again, one delivery at a time at first; false when it is active. Its failures are
   * cleared, and the new epoch makes every started delivery one that is to be started again.
   */
  resume(): boolean {
    if (this.state === 'active') return false;
    this.state = 'active';
    this.parkedReason = null;
    this.failingSince = null;
    this.ramp = 1;
    this.epoch += 1;
    this.followUntil = followUntil();
    return true;
  }

  /** Deletes it and frees its slot; false when it is deleted already. What was sent stays. */
  delete(): boolean {
    if (this.state === 'deleted') return false;
    this.state = 'deleted';
    this.parkedReason = null;
    this.failingSince = null;
    this.ramp = null;
    this.slot = null;
    this.followUntil = followUntil();
    return true;
  }

  /** Hands it over to the organization's members; false when no cluster object manages it. */
  release(): boolean {
    if (this.managedBy === null) return false;
    this.managedBy = null;
    this.managedUid = null;
    return true;
  }

  /** Sends to another URL, which begins without the failures of the old one. */
  moveTo(url: string): void {
    if (url === this.url) return;
    this.url = url;
    this.failingSince = null;
    this.clearSignatureResult();
  }

  /** Whether the receiver verifies signatures is unknown after a change of URL or secret. */
  clearSignatureResult(): void {
    this.signatureResult = null;
    this.signatureCheckedAt = null;
  }
}
WebhookSchema.setClass(Webhook);

const WebhookSecretSchema = defineEntity({
  name: 'WebhookSecret',
  tableName: 'webhook_secret',
  properties: {
    organizationId: p.uuid().primary(),
    webhookId: p.uuid().primary(),
    id: p.uuid().primary(),
    sealed: p.blob(),
    createdAt: p.datetime(),
    validUntil: p.datetime().strictNullable(),
  },
});

/** A signing secret, sealed; `validUntil` null: the newest. */
export class WebhookSecret extends WebhookSecretSchema.class {
  /** Lets it sign until `at` at most, and returns until when it does. */
  endBy(at: Date): Date {
    if (this.validUntil === null || this.validUntil > at) this.validUntil = at;
    return this.validUntil;
  }
}
WebhookSecretSchema.setClass(WebhookSecret);
