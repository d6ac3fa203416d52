import { CoreV1Api, CustomObjectsApi, KubernetesObjectApi } from '@kubernetes/client-node';
import type { ResourceKind } from './controller/contract.ts';
import { type CommonRunnerOptions, createRunner } from './controller/runner.ts';
import { createReplayController } from './delivery-replay/controller.ts';
import type { createApis } from './kube/client.ts';
import type { GetRegion } from './region-access.ts';
import { kinds, type WebhookSubscription } from './resources.ts';
import { createSubscriptionController } from './webhook-subscription/controller.ts';
import { createSecrets } from './webhook-subscription/secrets.ts';

/**
 * Makes the runners of WebhookSubscription and DeliveryReplay with the watch of Secrets that they
 * share. A Secret that changes wakes the subscriptions that name it.
 */
export function createWebhookRunners(options: {
  apis: ReturnType<typeof createApis>;
  getRegion: GetRegion;
  /** The options of a kind's runner. */
  optionsOf: (kind: ResourceKind) => CommonRunnerOptions;
}) {
  const { apis, getRegion, optionsOf } = options;
  const common = optionsOf(kinds.WebhookSubscription);
  const { kubeConfig, namespace } = common;
  const api = apis(CustomObjectsApi);
  const secrets = createSecrets({
    kubeConfig,
    core: apis(CoreV1Api),
    objects: apis(KubernetesObjectApi),
    namespace,
    onChange: wakeSubscriptions,
    onListed: common.onListed,
    onError: common.onWatchError,
  });
  const subscriptions = createRunner({
    ...common,
    api,
    controller: createSubscriptionController({ api, secrets, getRegion }),
  });
  const replays = createRunner({
    ...optionsOf(kinds.DeliveryReplay),
    api,
    controller: createReplayController({
      api,
      getRegion,
      findSubscription: (name) => subscriptions.get(name) as WebhookSubscription | undefined,
    }),
  });
  const runners = [subscriptions, replays];

  function wakeSubscriptions(secretName: string): void {
    for (const { metadata, spec } of subscriptions.list() as WebhookSubscription[])
      if ([spec.secret.generate?.secretName, spec.secret.secretRef?.name].includes(secretName))
        subscriptions.touch(metadata.name);
  }

  return {
    /** Resolves after the first lists. Secrets come first: a subscription is compared with them. */
    async start(): Promise<void> {
      await secrets.start();
      await Promise.all(runners.map((runner) => runner.start()));
    },
    async lead(signal: AbortSignal): Promise<void> {
      await Promise.all(runners.map((runner) => runner.lead(signal)));
    },
    async stop(): Promise<void> {
      await Promise.all([secrets.stop(), ...runners.map((runner) => runner.stop())]);
    },
  };
}
