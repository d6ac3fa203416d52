import type { CustomObjectsApi } from '@kubernetes/client-node';
import { deleteWebhook, pauseWebhook, resumeWebhook } from '#delivery/requests.ts';
import type { ClusterObject } from '#domain/access/authority.ts';
import { changeWebhook } from '#domain/webhooks/change.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import type { HeaderChange } from '#domain/webhooks/headers.ts';
import { detachWebhook, findManagedWebhook, getSealedValues, type ManagedWebhook } from '#domain/webhooks/managed.ts';
import { rotateSecret } from '#domain/webhooks/rotate.ts';
import type { CustomHeader } from '#domain/webhooks/seal.ts';
import { type Controller, type Note, ReconcileError, readSeconds } from '../kube/custom-resource.ts';
import { customObjects } from '../kube/objects.ts';
import { kinds, type WebhookSubscription } from '../kube/resources.ts';
import type { GetRegion } from '../region/access.ts';
import {
  type HeadersState,
  type ObservedSubscription,
  planSubscription,
  type SecretState,
  type SubscriptionAction,
  subscriptionFinalizer,
} from './plan.ts';
import { reportSubscription } from './report.ts';
import type { Secrets } from './secrets.ts';

/** After how long a subscription is compared with its webhook again. It takes no request. */
const resyncMs = 300_000;

export function createSubscriptionController(options: {
  api: CustomObjectsApi;
  secrets: Secrets;
  getRegion: GetRegion;
}): Controller<WebhookSubscription, ObservedSubscription, SubscriptionAction> {
  const { secrets } = options;
  async function getRegion() {
    const region = await options.getRegion();
    if (region === null) throw new ReconcileError('NoRegion', 'There is no Region in this namespace.');
    return region;
  }
  /** A deletion needs no keys. Without a Region no database is known, and it does not wait for one. */
  async function observeDeletion({ metadata }: WebhookSubscription): Promise<ObservedSubscription> {
    const region = await options.getRegion();
    const webhook = region && (await findManagedWebhook(region.database, metadata.uid));
    return { now: new Date(), isAllowed: true, webhook, secret: 'missing', headers: 'current' };
  }
  const objects = customObjects(options.api, kinds.WebhookSubscription);
  return {
    kind: kinds.WebhookSubscription,
    resyncMs,
    async observe(resource) {
      if (resource.metadata.deletionTimestamp !== undefined) return observeDeletion(resource);
      const { database, readWebhookSettings, allowedOrganizations } = await getRegion();
      const { sealingKeys } = await readWebhookSettings();
      const { organizationId } = resource.spec;
      const webhook = await findManagedWebhook(database, resource.metadata.uid);
      const request = webhook && { organizationId, webhookId: webhook.id, by: getClusterObject(resource) };
      const sealed = request && (await getSealedValues(database, request, sealingKeys));
      return {
        now: new Date(),
        isAllowed: allowedOrganizations.includes('*') || allowedOrganizations.includes(organizationId),
        webhook,
        secret: compareSecret(resource, sealed?.secret, secrets),
        headers: compareHeaders(secrets.findHeaders(resource), sealed?.headers ?? []),
      };
    },
    plan: planSubscription,
    async execute(action, resource) {
      const { organizationId, url, eventTypes, ordered, postsPerSecond = null, secret } = resource.spec;
      if (action.kind === 'addFinalizer' || action.kind === 'removeFinalizer')
        return objects.changeFinalizer(resource, action.kind, subscriptionFinalizer);
      const { database, readWebhookSettings } = await getRegion();
      const by = getClusterObject(resource);
      if (action.kind === 'createWebhook') {
        const fields = { organizationId, by, url, eventTypes, ordered, postsPerSecond, description: '' };
        const input = { ...fields, headers: getHeaders(resource, secrets), ...referenced(resource, secrets) };
        return createWebhook(database, input, await readWebhookSettings());
      }
      const webhook = await findManagedWebhook(database, resource.metadata.uid);
      if (webhook === null) return; // deleted meanwhile; the next pass sees it
      const request = { organizationId, webhookId: webhook.id, by };
      switch (action.kind) {
        case 'changeWebhook': {
          const { kind: _, setsHeaders, ...change } = action;
          const { allow, sealingKeys } = await readWebhookSettings();
          const headers = setsHeaders
            ? { headers: { changes: listChanges(webhook, resource, secrets), sealingKeys } }
            : {};
          return changeWebhook(database, { ...request, ...change, ...headers }, allow);
        }
        case 'rotateSecret': {
          const overlapSeconds = readSeconds(secret.rotation.overlap);
          const { sealingKeys } = await readWebhookSettings();
          return rotateSecret(database, { ...request, overlapSeconds, ...referenced(resource, secrets) }, sealingKeys);
        }
        case 'publishSecret': {
          if (secret.generate === undefined) return;
          const { sealingKeys } = await readWebhookSettings();
          const newest = await getSealedValues(database, request, sealingKeys);
          return secrets.publish(resource, secret.generate.secretName, newest.secret);
        }
        case 'pauseWebhook':
          return pauseWebhook(database, request);
        case 'resumeWebhook':
          return resumeWebhook(database, request);
        case 'deleteWebhook':
          return deleteWebhook(database, request);
        case 'detachWebhook':
          return detachWebhook(database, request);
      }
    },
    describe: ({ kind }) => notes[kind],
    report: reportSubscription,
  };
}

const notes: Record<SubscriptionAction['kind'], Note | null> = {
  addFinalizer: null,
  createWebhook: { reason: 'WebhookCreated', message: 'The webhook is created.' },
  changeWebhook: { reason: 'WebhookChanged', message: 'The webhook has the fields that are declared.' },
  rotateSecret: { reason: 'SecretRotated', message: 'The webhook has a new signing secret.' },
  publishSecret: { reason: 'SecretPublished', message: 'The newest signing secret is published.' },
  pauseWebhook: { reason: 'WebhookPaused', message: 'The webhook is paused.' },
  resumeWebhook: { reason: 'WebhookResumed', message: 'The webhook is resumed.' },
  deleteWebhook: { reason: 'WebhookDeleted', message: 'The webhook is deleted.' },
  detachWebhook: { reason: 'WebhookDetached', message: 'The webhook belongs to its organization’s members now.' },
  removeFinalizer: null,
};

/** The object as the audit log and the console name it. */
const getClusterObject = ({ metadata: { uid, namespace, name } }: WebhookSubscription): ClusterObject => ({
  objectUid: uid,
  objectName: `WebhookSubscription ${namespace}/${name}`,
});

/** Compares the Secret with the newest signing secret; undefined: there is no webhook yet. */
function compareSecret(resource: WebhookSubscription, newest: string | undefined, secrets: Secrets): SecretState {
  const { metadata, spec } = resource;
  const { generate } = spec.secret;
  if (generate === undefined) {
    const value = secrets.findReferenced(resource);
    if (value === null) return 'missing';
    return value.trim() === newest ? 'current' : 'stale';
  }
  const published = secrets.findPublished(generate.secretName);
  if (published === null) return 'missing';
  if (published.ownerUid !== metadata.uid) return 'foreign';
  const isOwnedRight = published.hasOwnerReference === (spec.reclaimPolicy === 'delete');
  const isLabelledRight = published.labelledFor === metadata.name;
  return published.value === newest && isOwnedRight && isLabelledRight ? 'current' : 'stale';
}

/** Compares declared custom headers with those of the webhook. */
function compareHeaders(declared: ReturnType<Secrets['findHeaders']>, stored: readonly CustomHeader[]): HeadersState {
  if (typeof declared === 'string') return declared;
  const list = (headers: readonly CustomHeader[]) =>
    JSON.stringify(headers.map(({ name, value }) => [name, value]).toSorted());
  return list(declared) === list(stored) ? 'current' : 'stale';
}

/** Sets all headers that are declared, and removes the others. */
function listChanges({ headerNames }: ManagedWebhook, resource: WebhookSubscription, secrets: Secrets): HeaderChange[] {
  const declared = getHeaders(resource, secrets);
  const names = new Set(declared.map(({ name }) => name.toLowerCase()));
  const others = headerNames.filter((name) => !names.has(name.toLowerCase()));
  return [...declared, ...others.map((name) => ({ name, value: null }))];
}

/** Returns the custom headers that are declared. */
function getHeaders(resource: WebhookSubscription, secrets: Secrets): CustomHeader[] {
  const headers = secrets.findHeaders(resource);
  if (typeof headers === 'string')
    throw new ReconcileError('HeadersNotFound', 'The Secret of the headers has changed.');
  return headers;
}

/** Returns the secret of a reference; nothing when the secret is generated. */
function referenced(resource: WebhookSubscription, secrets: Secrets): { secret?: string } {
  const { secretRef } = resource.spec.secret;
  if (secretRef === undefined) return {};
  const value = secrets.findReferenced(resource);
  if (value === null) throw new ReconcileError('SecretNotFound', `Secret ${secretRef.name} has gone.`);
  return { secret: value.trim() };
}
