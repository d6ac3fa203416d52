import type { Metadata } from '../../apps/operator/kube/custom-resource.ts';
import {
  group,
  kinds,
  type WebhookSubscription,
  type WebhookSubscriptionSpec,
  type WebhookSubscriptionStatus,
} from '../../apps/operator/kube/resources.ts';
import { subscriptionFinalizer } from '../../apps/operator/webhook-subscription/plan.ts';

export interface SubscriptionParts {
  metadata?: Partial<Metadata>;
  spec?: Partial<WebhookSubscriptionSpec>;
  status?: WebhookSubscriptionStatus;
}

/** A WebhookSubscription as the API server returns it, with its defaults. */
export function subscription({ metadata, spec, status }: SubscriptionParts = {}): WebhookSubscription {
  return {
    apiVersion: `${group}/${kinds.WebhookSubscription.version}`,
    kind: 'WebhookSubscription',
    metadata: {
      name: 'orders',
      namespace: 'us',
      uid: '00000000-0000-4000-8000-000000000001',
      generation: 1,
      resourceVersion: '1',
      creationTimestamp: '2026-03-01T00:00:00Z',
      finalizers: [subscriptionFinalizer],
      ...metadata,
    },
    spec: {
      organizationId: '00000000-0000-7000-8000-000000000001',
      url: 'https://hooks.example.com/',
      eventTypes: ['client.started', 'seat.given'],
      ordered: true,
      secret: { generate: { secretName: 'orders' }, rotation: { overlap: '24h' } },
      suspend: false,
      reclaimPolicy: 'retain',
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}
