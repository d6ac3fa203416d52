import type { ManagedWebhook } from '#domain/webhooks/managed.ts';
import { readSeconds } from '../kube/custom-resource.ts';
import type { WebhookSubscription } from '../kube/resources.ts';

/** Keeps an object until its webhook is deleted or detached. */
export const subscriptionFinalizer = 'orgapi.dev/webhook';

/**
 * The Secret of a subscription, compared with the webhook's newest secret. `current`: it has that
 * value. `stale`: another value, label or owner reference. `missing`: there is no such Secret, or
 * not the key, or not the label with this subscription’s name. `foreign`: it is not of this object,
 * which would publish into it.
 */
export type SecretState = 'current' | 'stale' | 'missing' | 'foreign';

/**
 * The declared custom headers, compared with the webhook's. `current`: they are the same, or there
 * are none. `stale`: others. `missing`: there is no such Secret, or not the label with this
 * subscription's name. `elsewhere`: its annotation names another server than the URL's.
 */
export type HeadersState = 'current' | 'stale' | 'missing' | 'elsewhere';

export interface ObservedSubscription {
  now: Date;
  /** Whether the Region allows the organization. */
  isAllowed: boolean;
  /** Null: there is none yet, or it is deleted. */
  webhook: ManagedWebhook | null;
  secret: SecretState;
  headers: HeadersState;
}

export type SubscriptionAction =
  | { kind: 'addFinalizer' }
  | { kind: 'createWebhook' }
  | {
      kind: 'changeWebhook';
      url?: string;
      eventTypes?: readonly string[];
      ordered?: boolean;
      postsPerSecond?: number | null;
      /** Whether the custom headers become those that are declared. */
      setsHeaders?: true;
    }
  | { kind: 'rotateSecret' }
  | { kind: 'publishSecret' }
  | { kind: 'pauseWebhook' }
  | { kind: 'resumeWebhook' }
  | { kind: 'deleteWebhook' }
  | { kind: 'detachWebhook' }
  | { kind: 'removeFinalizer' };

/** Returns what is left to do for a subscription, in order. */
export function planSubscription(resource: WebhookSubscription, observed: ObservedSubscription): SubscriptionAction[] {
  const { metadata, spec } = resource;
  const { webhook, secret, headers } = observed;
  if (metadata.deletionTimestamp !== undefined) return planDeletion(resource, observed);
  if (!observed.isAllowed) return [];
  const finalizer: SubscriptionAction[] = metadata.finalizers?.includes(subscriptionFinalizer)
    ? []
    : [{ kind: 'addFinalizer' }];
  const isSecretUsable = spec.secret.generate === undefined ? secret !== 'missing' : secret !== 'foreign';
  const areHeadersUsable = headers === 'current' || headers === 'stale';
  if (webhook === null) return isSecretUsable && areHeadersUsable ? [...finalizer, ...planCreation(resource)] : [];
  const fields = areHeadersUsable ? planFields(resource, webhook, headers) : [];
  const secretActions = isSecretUsable ? planSecret(resource, observed, webhook) : [];
  return [...finalizer, ...fields, ...secretActions, ...planState(resource, webhook)];
}

function planDeletion({ spec }: WebhookSubscription, { webhook }: ObservedSubscription): SubscriptionAction[] {
  if (webhook === null) return [{ kind: 'removeFinalizer' }];
  return [{ kind: spec.reclaimPolicy === 'delete' ? 'deleteWebhook' : 'detachWebhook' }, { kind: 'removeFinalizer' }];
}

function planCreation({ spec }: WebhookSubscription): SubscriptionAction[] {
  const actions: SubscriptionAction[] = [{ kind: 'createWebhook' }];
  // Paused before its secret is published, so that nothing is sent meanwhile.
  if (spec.suspend) actions.push({ kind: 'pauseWebhook' });
  if (spec.secret.generate !== undefined) actions.push({ kind: 'publishSecret' });
  return actions;
}

function planFields(
  { spec }: WebhookSubscription,
  webhook: ManagedWebhook,
  headers: HeadersState,
): SubscriptionAction[] {
  const isUrlSame = spec.url === webhook.url;
  const areTypesSame = spec.eventTypes.toSorted().join() === webhook.eventTypes.toSorted().join();
  const isOrderSame = spec.ordered === webhook.ordered;
  const { postsPerSecond: bound = null } = spec;
  const isBoundSame = bound === webhook.postsPerSecond;
  const areHeadersSame = headers === 'current';
  if (isUrlSame && areTypesSame && isOrderSame && isBoundSame && areHeadersSame) return [];
  const url = isUrlSame ? {} : { url: spec.url };
  const eventTypes = areTypesSame ? {} : { eventTypes: spec.eventTypes };
  const ordered = isOrderSame ? {} : { ordered: spec.ordered };
  const postsPerSecond = isBoundSame ? {} : { postsPerSecond: bound };
  // With a new URL also those that stay: the service takes no value along to another server.
  const isUnset = areHeadersSame && (isUrlSame || spec.headersSecretRef === undefined);
  const setsHeaders = isUnset ? {} : { setsHeaders: true as const };
  return [{ kind: 'changeWebhook', ...url, ...eventTypes, ...ordered, ...postsPerSecond, ...setsHeaders }];
}

function planSecret(
  { spec: { secret } }: WebhookSubscription,
  { now, secret: state }: ObservedSubscription,
  webhook: ManagedWebhook,
): SubscriptionAction[] {
  if (secret.generate === undefined) return state === 'stale' ? [{ kind: 'rotateSecret' }] : [];
  const { every } = secret.rotation;
  const ageSeconds = (now.getTime() - Date.parse(webhook.secretCreatedAt)) / 1_000;
  if (every !== undefined && ageSeconds >= readSeconds(every))
    return [{ kind: 'rotateSecret' }, { kind: 'publishSecret' }];
  return state === 'current' ? [] : [{ kind: 'publishSecret' }];
}

function planState({ spec }: WebhookSubscription, { state }: ManagedWebhook): SubscriptionAction[] {
  if (spec.suspend && state !== 'paused') return [{ kind: 'pauseWebhook' }];
  // A suspension because the receiver failed stays until `suspend` was true and is false again.
  return !spec.suspend && state === 'paused' ? [{ kind: 'resumeWebhook' }] : [];
}
