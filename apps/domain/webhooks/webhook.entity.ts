import { defineEntity, p } from '@mikro-orm/core';
import type { SuspendReason } from '../contract/choices.ts';
import type { EventType } from '../contract/events.ts';

/**
 * Whether a receiver verifies signatures. `verified` needs both: a 2xx for a correct signature, and
 * a rejection of a wrong one. `no_response`: nothing is proven, because no status arrived or one
 * that says nothing about the signature.
 */
export type SignatureResult = 'verified' | 'accepts_bad_signatures' | 'rejects_good_signatures' | 'no_response';

/** Whether it is sent events: `paused` by a person, `suspended` by the service. Both hold its deliveries. */
export type WebhookState = 'active' | 'paused' | 'suspended' | 'deleted';

const WebhookSchema = defineEntity({
  name: 'Webhook',
  properties: {
    organizationId: p.uuid().primary(),
    id: p.uuid().primary(),
    url: p.text(),
    description: p.text(),
    eventTypes: p.array().$type<EventType[]>(),
    ordered: p.boolean(),
    postsPerSecond: p.smallint().strictNullable(),
    headerNames: p.array().$type<string[]>(),
    headersSealed: p.blob().strictNullable(),
    state: p.text().$type<WebhookState>(),
    suspendedReason: p.text().$type<SuspendReason>().strictNullable(),
    stateAt: p.datetime().defaultRaw('clock_timestamp()'),
    number: p.smallint().strictNullable(),
    createdAt: p.datetime(),
    signatureResult: p.text().$type<SignatureResult>().strictNullable(),
    signatureCheckedAt: p.datetime().strictNullable(),
    managedBy: p.text().strictNullable(),
    managedUid: p.uuid().strictNullable(),
  },
});

/**
 * A webhook. While it is paused or suspended, its open deliveries are held. `ordered`: the events
 * of one seat or grant are sent one after the other. `postsPerSecond`: the most posts in a second;
 * null: no bound. `headersSealed`: its custom headers with their
 * values, of which `headerNames` has the names; null for none. `number`: 1 to 20, unique in its
 * organization; null when deleted.
 * `managedBy`: the name of the cluster object that alone may change it, and `managedUid` its id.
 */
export class Webhook extends WebhookSchema.class {
  /** Pauses it. Returns false when it is paused or suspended already. */
  pause(): boolean {
    if (this.state === 'suspended') return false;
    return this.pauseAlways();
  }

  /** Pauses it, also when it is suspended. Returns false when it is paused already. */
  pauseAlways(): boolean {
    if (this.state === 'paused') return false;
    this.state = 'paused';
    this.suspendedReason = null;
    return true;
  }

  /** Resumes it; a trigger resets its failures. Returns false if it is active. */
  resume(): boolean {
    if (this.state === 'active') return false;
    this.state = 'active';
    this.suspendedReason = null;
    return true;
  }

  /**
   * Deletes it with its custom headers, and frees its number. Returns false when it is deleted
   * already. Its deliveries stay.
   */
  delete(): boolean {
    if (this.state === 'deleted') return false;
    this.state = 'deleted';
    this.suspendedReason = null;
    this.number = null;
    this.setHeaders([], null);
    return true;
  }

  /** Gives it to the organization's members. */
  detach(): void {
    this.managedBy = null;
    this.managedUid = null;
  }

  /** Replaces the custom headers. */
  setHeaders(names: string[], sealed: Buffer | null): void {
    this.headerNames = names;
    this.headersSealed = sealed;
  }

  /** Changes the URL. A trigger resets the failures of the old one. */
  moveTo(url: string): void {
    if (url === this.url) return;
    this.url = url;
    this.clearSignatureResult();
  }

  /** Clears the result of the signature check, which a change of URL or secret makes unknown. */
  clearSignatureResult(): void {
    this.signatureResult = null;
    this.signatureCheckedAt = null;
  }
}
WebhookSchema.setClass(Webhook);

const WebhookSecretSchema = defineEntity({
  name: 'WebhookSecret',
  properties: {
    organizationId: p.uuid().primary(),
    webhookId: p.uuid().primary(),
    id: p.uuid().primary(),
    sealed: p.blob(),
    createdAt: p.datetime(),
    validUntil: p.datetime().strictNullable(),
  },
});

/** A signing secret, sealed; `validUntil` null: the newest one. */
export class WebhookSecret extends WebhookSecretSchema.class {
  /** Lets it sign until `at` at most. Returns until when it does. */
  endBy(at: Date): Date {
    if (this.validUntil === null || this.validUntil > at) this.validUntil = at;
    return this.validUntil;
  }
}
WebhookSecretSchema.setClass(WebhookSecret);
