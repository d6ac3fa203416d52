import type { CustomObjectsApi } from '@kubernetes/client-node';
import type { ClusterObject } from '#domain/access/authority.ts';
import { changeWebhook } from '#domain/webhooks/change.ts';
import { createWebhook } from '#domain/webhooks/create.ts';
import { findManagedWebhook, getNewestSecret, releaseWebhook } from '#domain/webhooks/managed.ts';
import { deleteWebhook, pauseWebhook, resumeWebhook } from '#domain/webhooks/park.ts';
import { rotateSecret } from '#domain/webhooks/rotate.ts';
import type { Controller, Note } from '../controller/contract.ts';
import { ReconcileFailed } from '../controller/contract.ts';
import { readSeconds } from '../duration.ts';
import { setFinalizers } from '../kube/objects.ts';
import { explainRefusals, type GetRegion, isAllowed, type RegionAccess } from '../region-access.ts';
import { kinds, type WebhookSubscription } from '../resources.ts';
import {
  type ObservedSubscription,
  planSubscription,
  type SecretState,
  type SubscriptionAction,
  subscriptionFinalizer,
} from './plan.ts';
import { reportSubscription } from './report.ts';
import type { Secrets } from './secrets.ts';

interface SubscriptionDependencies {
  api: CustomObjectsApi;
  secrets: Pick<Secrets, 'find' | 'publish'>;
  getRegion: GetRegion;
  now?: () => Date;
}

/** After how long a subscription is compared with its webhook again. It takes no request. */
const resyncMs = 300_000;

/** Makes the controller of WebhookSubscriptions. */
export function createSubscriptionController(
  dependencies: SubscriptionDependencies,
): Controller<WebhookSubscription, ObservedSubscription, SubscriptionAction> {
  const { getRegion, now = () => new Date() } = dependencies;
  return {
    kind: kinds.WebhookSubscription,
    resyncMs,
    async observe(resource) {
      const region = await getRegion();
      const webhook = await findManagedWebhook(region.em, resource.metadata.uid);
      const newest = webhook === null ? null : await readNewest(region, resource, webhook.id);
      return {
        now: now(),
        isAllowed: isAllowed(region, resource.spec.organizationId),
        webhook,
        secret: compareSecret(resource, newest, dependencies.secrets),
      };
    },
    plan: planSubscription,
    execute: async (action, resource) => explainRefusals(execute(action, resource, dependencies)),
    describe: ({ kind }) => notes[kind],
    report: reportSubscription,
  };
}

const notes: Record<SubscriptionAction['kind'], Note | null> = {
  addFinalizer: null,
  createWebhook: { reason: 'WebhookCreated', message: 'The webhook is created.' },
  changeWebhook: { reason: 'WebhookChanged', message: 'The webhook has the URL and events that are declared.' },
  rotateSecret: { reason: 'SecretRotated', message: 'The webhook has a new signing secret.' },
  publishSecret: { reason: 'SecretPublished', message: 'The newest signing secret is published.' },
  pauseWebhook: { reason: 'WebhookPaused', message: 'The webhook is paused.' },
  resumeWebhook: { reason: 'WebhookResumed', message: 'The webhook is resumed.' },
  deleteWebhook: { reason: 'WebhookDeleted', message: 'The webhook is deleted.' },
  releaseWebhook: { reason: 'WebhookReleased', message: 'The webhook belongs to its organization’s members now.' },
  removeFinalizer: null,
};

/** The object as the activity log and the console name it. */
const objectOf = ({ metadata: { uid, namespace, name } }: WebhookSubscription): ClusterObject => ({
  objectUid: uid,
  objectName: `WebhookSubscription ${namespace}/${name}`,
});

async function readNewest(region: RegionAccess, resource: WebhookSubscription, webhookId: string): Promise<string> {
  const { organizationId } = resource.spec;
  const request = { organizationId, webhookId, by: objectOf(resource) };
  return (await explainRefusals(getNewestSecret(region.em, request, region.sealingKeys))).secret;
}

/** Compares the Secret with the newest signing secret; null: there is no webhook yet. */
function compareSecret(
  { metadata, spec: { secret, reclaimPolicy } }: WebhookSubscription,
  newest: string | null,
  secrets: Pick<Secrets, 'find'>,
): SecretState {
  const { generate, secretRef } = secret;
  if (generate === undefined) {
    const value = secrets.find(secretRef?.name ?? '', secretRef?.key)?.value ?? null;
    if (value === null) return 'missing';
    return value.trim() === newest ? 'current' : 'stale';
  }
  const published = secrets.find(generate.secretName);
  if (published === null) return 'missing';
  if (published.ownerUid !== metadata.uid) return 'foreign';
  const isOwnedRight = published.hasOwnerReference === (reclaimPolicy === 'delete');
  return published.value === newest && isOwnedRight ? 'current' : 'stale';
}

async function execute(
  action: SubscriptionAction,
  resource: WebhookSubscription,
  { api, secrets, getRegion }: SubscriptionDependencies,
): Promise<void> {
  const { finalizers = [], uid } = resource.metadata;
  const { organizationId, url, eventTypes, secret } = resource.spec;
  if (action.kind === 'addFinalizer')
    return setFinalizers(api, kinds.WebhookSubscription, resource, [...finalizers, subscriptionFinalizer]);
  if (action.kind === 'removeFinalizer') {
    const others = finalizers.filter((name) => name !== subscriptionFinalizer);
    return setFinalizers(api, kinds.WebhookSubscription, resource, others);
  }
  const region = await getRegion();
  const { em, allow, sealingKeys } = region;
  const by = objectOf(resource);
  if (action.kind === 'createWebhook') {
    const input = { organizationId, by, url, eventTypes, description: '', ...referenced(resource, secrets) };
    await createWebhook(em, input, { allow, sealingKeys });
    return;
  }
  const webhook = await findManagedWebhook(em, uid);
  if (webhook === null) return; // deleted meanwhile; the next pass sees it
  const request = { organizationId, webhookId: webhook.id, by };
  switch (action.kind) {
    case 'changeWebhook': {
      const { kind: _, ...change } = action;
      return changeWebhook(em, { ...request, ...change }, allow);
    }
    case 'rotateSecret': {
      const overlapSeconds = readSeconds(secret.rotation.overlap);
      await rotateSecret(em, { ...request, overlapSeconds, ...referenced(resource, secrets) }, sealingKeys);
      return;
    }
    case 'publishSecret': {
      if (secret.generate === undefined) return;
      const newest = await getNewestSecret(em, request, sealingKeys);
      return secrets.publish(resource, secret.generate.secretName, newest.secret);
    }
    case 'pauseWebhook':
      await pauseWebhook(em, request);
      return;
    case 'resumeWebhook':
      await resumeWebhook(em, request);
      return;
    case 'deleteWebhook':
      await deleteWebhook(em, request);
      return;
    case 'releaseWebhook':
      return releaseWebhook(em, request);
  }
}

/** Returns the secret of a reference; nothing when the secret is generated. */
function referenced({ spec: { secret } }: WebhookSubscription, secrets: Pick<Secrets, 'find'>): { secret?: string } {
  if (secret.secretRef === undefined) return {};
  const value = secrets.find(secret.secretRef.name, secret.secretRef.key)?.value ?? null;
  if (value === null) throw new ReconcileFailed('SecretNotFound', `Secret ${secret.secretRef.name} has gone.`);
  return { secret: value.trim() };
}
