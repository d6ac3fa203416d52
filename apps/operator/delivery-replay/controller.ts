import type { CustomObjectsApi } from '@kubernetes/client-node';
import { findManagedWebhook } from '#domain/webhooks/managed.ts';
import {
  cancelRedelivery,
  countRedelivery,
  findRedeliveryOfObject,
  requestRedelivery,
} from '#domain/webhooks/redeliveries.ts';
import { type Controller, type Note, ReconcileFailed } from '../controller/contract.ts';
import { deleteResource, setFinalizers } from '../kube/objects.ts';
import { explainRefusals, type GetRegion, type RegionAccess } from '../region-access.ts';
import { type DeliveryReplay, kinds, type WebhookSubscription } from '../resources.ts';
import { type ObservedReplay, planReplay, type ReplayAction, replayFinalizer, reportReplay } from './plan.ts';

interface ReplayDependencies {
  api: CustomObjectsApi;
  getRegion: GetRegion;
  /** Returns a WebhookSubscription of the namespace from memory. */
  findSubscription: (name: string) => WebhookSubscription | undefined;
  now?: () => Date;
}

/** How often the progress of a replay is read from the database. It takes no request. */
const resyncMs = 10_000;

/** Makes the controller of DeliveryReplays. */
export function createReplayController(
  dependencies: ReplayDependencies,
): Controller<DeliveryReplay, ObservedReplay, ReplayAction> {
  const { api, getRegion, now = () => new Date() } = dependencies;
  return {
    kind: kinds.DeliveryReplay,
    resyncMs,
    async observe(resource) {
      const { metadata, spec, status } = resource;
      const isLive = metadata.deletionTimestamp === undefined;
      if (isLive && status?.finishedAt !== undefined) return { now: now(), redelivery: null, counted: null };
      const region = await getRegion();
      if (!spec.dryRun)
        return { now: now(), redelivery: await findRedeliveryOfObject(region.em, metadata.uid), counted: null };
      const counted = isLive ? await explainRefusals(count(resource, region, dependencies)) : null;
      return { now: now(), redelivery: null, counted };
    },
    plan: planReplay,
    async execute({ kind }, resource) {
      const { finalizers = [], uid } = resource.metadata;
      switch (kind) {
        case 'addFinalizer':
          return setFinalizers(api, kinds.DeliveryReplay, resource, [...finalizers, replayFinalizer]);
        case 'removeFinalizer': {
          const others = finalizers.filter((name) => name !== replayFinalizer);
          return setFinalizers(api, kinds.DeliveryReplay, resource, others);
        }
        case 'deleteReplay':
          return deleteResource(api, kinds.DeliveryReplay, resource);
        case 'requestRedelivery': {
          const region = await getRegion();
          const request = await explainRefusals(requestOf(resource, region, dependencies));
          const asked = { ...request, perSecond: resource.spec.rate, objectUid: uid };
          await explainRefusals(requestRedelivery(region.em, asked));
          return;
        }
        case 'cancelRedelivery': {
          const { em } = await getRegion();
          const redelivery = await findRedeliveryOfObject(em, uid);
          if (redelivery === null) return;
          const { organizationId, id } = redelivery;
          await explainRefusals(cancelRedelivery(em, { organizationId, redeliveryId: id, by: 'operator' }));
        }
      }
    },
    describe: ({ kind }) => notes[kind],
    report: reportReplay,
  };
}

const notes: Record<ReplayAction['kind'], Note | null> = {
  addFinalizer: null,
  requestRedelivery: { reason: 'RedeliveryRequested', message: 'The redelivery is requested.' },
  cancelRedelivery: { reason: 'RedeliveryCancelled', message: 'The redelivery is cancelled.' },
  removeFinalizer: null,
  deleteReplay: null,
};

async function count(resource: DeliveryReplay, region: RegionAccess, dependencies: ReplayDependencies) {
  return countRedelivery(region.em, await requestOf(resource, region, dependencies));
}

/** The webhook of the subscription, on whose behalf the replay acts, and the selection. */
async function requestOf({ metadata, spec }: DeliveryReplay, { em }: RegionAccess, deps: ReplayDependencies) {
  const { subscription: name, from, to, onlyFailed } = spec;
  const subscription = deps.findSubscription(name);
  if (subscription === undefined)
    throw new ReconcileFailed('SubscriptionNotFound', `There is no WebhookSubscription ${name} in this namespace.`);
  const { uid } = subscription.metadata;
  const webhook = await findManagedWebhook(em, uid);
  if (webhook === null)
    throw new ReconcileFailed('SubscriptionNotReady', `WebhookSubscription ${name} has no webhook yet.`);
  const by = { objectUid: uid, objectName: `DeliveryReplay ${metadata.namespace}/${metadata.name}` };
  return { organizationId: webhook.organizationId, webhookId: webhook.id, by, selection: { from, to, onlyFailed } };
}
