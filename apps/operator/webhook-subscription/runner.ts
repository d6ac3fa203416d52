import { CoreV1Api, CustomObjectsApi, KubernetesObjectApi } from '@kubernetes/client-node';
import { type CommonRunnerOptions, Runner } from '../controller/runner.ts';
import type { createApis } from '../kube/client.ts';
import type { WebhookSubscription } from '../kube/resources.ts';
import type { GetRegion } from '../region/access.ts';
import { createSubscriptionController } from './controller.ts';
import { Secrets } from './secrets.ts';

const listSecretNames = ({ secret, headersSecretRef }: WebhookSubscription['spec']) => [
  secret.generate?.secretName,
  secret.secretRef?.name,
  headersSecretRef?.name,
];

/**
 * Makes the runner of WebhookSubscription with its watch of Secrets. A Secret that changes wakes the
 * subscriptions that name it.
 */
export function createSubscriptionRunner(options: {
  apis: ReturnType<typeof createApis>;
  getRegion: GetRegion;
  common: CommonRunnerOptions;
}) {
  const { apis, getRegion, common } = options;
  const { kubeConfig, namespace } = common;
  const api = apis(CustomObjectsApi);
  const secrets = new Secrets({
    kubeConfig,
    core: apis(CoreV1Api),
    objects: apis(KubernetesObjectApi),
    namespace,
    onChange: wakeSubscriptions,
    onListed: common.onListed,
    onError: common.onWatchError,
  });
  const subscriptions = new Runner({
    ...common,
    api,
    controller: createSubscriptionController({ api, secrets, getRegion }),
  });
  function wakeSubscriptions(secretName: string): void {
    for (const { metadata, spec } of subscriptions.list() as WebhookSubscription[])
      if (listSecretNames(spec).includes(secretName)) subscriptions.touch(metadata.name);
  }

  return {
    /** Resolves after the first lists. Secrets come first: a subscription is compared with them. */
    async start(): Promise<void> {
      await secrets.start();
      await subscriptions.start();
    },
    /** Has every subscription worked on soon, because the Region changed. */
    touchAll(): void {
      for (const { metadata } of subscriptions.list()) subscriptions.touch(metadata.name);
    },
    lead: (signal: AbortSignal): Promise<void> => subscriptions.lead(signal),
    async stop(): Promise<void> {
      await Promise.all([secrets.stop(), subscriptions.stop()]);
    },
  };
}
