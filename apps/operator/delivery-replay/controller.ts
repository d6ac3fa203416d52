import type { CustomObjectsApi } from '@kubernetes/client-node';
import { findManagedWebhook } from '#domain/webhooks/managed.ts';
import {
  cancelRedelivery,
  countRedelivery,
  findRedeliveryOfObject,
  requestRedelivery,
} from '#domain/webhooks/redeliveries.ts';
import { type Controller, type Note, ReconcileFailed } from '../controller/contract.ts';
import { customObjects } from '../kube/objects.ts';
import type { GetRegion, RegionAccess } from '../region-access.ts';
import { type DeliveryReplay, kinds, type WebhookSubscription } from '../resources.ts';
import { type ObservedReplay, planReplay, type ReplayAction, replayFinalizer, reportReplay } from './plan.ts';

/** How often the progress of a replay is read from the database. It takes no request. */
const resyncMs = 10_000;

/** Makes the controller of DeliveryReplays. */
export function createReplayController(options: {
  api: CustomObjectsApi;
  getRegion: GetRegion;
  /** Returns a WebhookSubscription of the namespace from memory. */
  findSubscription: (name: string) => WebhookSubscription | undefined;
}): Controller<DeliveryReplay, ObservedReplay, ReplayAction> {
  const { getRegion, findSubscription } = options;
  const objects = customObjects(options.api, kinds.DeliveryReplay);

  /** The webhook of the subscription, on whose behalf the replay acts, and the selection. */
  async function requestOf({ metadata, spec }: DeliveryReplay, { em }: RegionAccess) {
    const { subscription: name, from, to, onlyFailed } = spec;
    const subscription = findSubscription(name);
    if (subscription === undefined)
      throw new ReconcileFailed('SubscriptionNotFound', `There is no WebhookSubscription ${name} in this namespace.`);
    const { uid } = subscription.metadata;
    const webhook = await findManagedWebhook(em, uid);
    if (webhook === null)
      throw new ReconcileFailed('SubscriptionNotReady', `WebhookSubscription ${name} has no webhook yet.`);
    const by = { objectUid: uid, objectName: `DeliveryReplay ${metadata.namespace}/${metadata.name}` };
    return { organizationId: webhook.organizationId, webhookId: webhook.id, by, selection: { from, to, onlyFailed } };
  }

  return {
    kind: kinds.DeliveryReplay,
    resyncMs,
    async observe(resource) {
      const { metadata, spec, status } = resource;
      const isLive = metadata.deletionTimestamp === undefined;
      const nothing = { now: new Date(), redelivery: null, counted: null };
      if (isLive && status?.finishedAt !== undefined) return nothing;
      const region = await getRegion();
      if (!spec.dryRun) return { ...nothing, redelivery: await findRedeliveryOfObject(region.em, metadata.uid) };
      if (!isLive) return nothing;
      return { ...nothing, counted: await countRedelivery(region.em, await requestOf(resource, region)) };
    },
    plan: planReplay,
    async execute({ kind }, resource) {
      const { uid } = resource.metadata;
      switch (kind) {
        case 'addFinalizer':
        case 'removeFinalizer':
          return objects.changeFinalizer(resource, kind, replayFinalizer);
        case 'deleteReplay':
          return objects.delete(resource);
        case 'requestRedelivery': {
          const region = await getRegion();
          const request = await requestOf(resource, region);
          return requestRedelivery(region.em, { ...request, perSecond: resource.spec.rate, objectUid: uid });
        }
        case 'cancelRedelivery': {
          const { em } = await getRegion();
          const redelivery = await findRedeliveryOfObject(em, uid);
          if (redelivery === null) return;
          const { organizationId, id } = redelivery;
          return cancelRedelivery(em, { organizationId, redeliveryId: id, by: 'operator' });
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
