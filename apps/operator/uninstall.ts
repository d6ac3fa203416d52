import { AppsV1Api, CoordinationV1Api, CustomObjectsApi } from '@kubernetes/client-node';
import { createLog, describeError, type Logger } from '#runtime/log.ts';
import { type OperatorConfig, readConfig } from './config.ts';
import { createApis, nullOn } from './kube/client.ts';
import { readKubeConfig } from './kube/kube-config.ts';
import { Election, leaseName } from './kube/lease.ts';
import { customObjects, mergeOptions } from './kube/objects.ts';
import { kinds, type WebhookSubscription } from './kube/resources.ts';
import { subscriptionFinalizer } from './webhook-subscription/plan.ts';

const requestDeadlineMs = 10_000;

/**
 * `node apps/operator/uninstall.ts DEPLOYMENT`: what the chart's Job runs before Helm removes the
 * operator. Afterwards the deletion of a WebhookSubscription, or of the namespace, waits for
 * nothing. Webhooks stay as they are, and an operator that is installed again follows its objects
 * again. Exit code 1 when it did not succeed.
 */
async function uninstall(config: OperatorConfig, deployment: string, log: Logger): Promise<void> {
  const { namespace } = config;
  const apis = createApis({
    kubeConfig: readKubeConfig(config),
    deadlineMs: requestDeadlineMs,
    onRequest: () => {},
  });
  // The pods would add the finalizers again. Each gives the Lease back when it stops.
  const scale = { name: deployment, namespace, body: { spec: { replicas: 0 } } };
  await nullOn(404, apis(AppsV1Api).patchNamespacedDeploymentScale(scale, mergeOptions));
  const removed = Promise.withResolvers<number>();
  const election = new Election({
    api: apis(CoordinationV1Api),
    namespace,
    name: leaseName,
    identity: config.identity,
    onError: (cause) => log.error({ error: describeError(cause) }, 'the Lease could not be read or taken; tried again'),
    lead: () => removeFinalizers(apis(CustomObjectsApi), namespace).then(removed.resolve, removed.reject),
  });
  election.start();
  try {
    log.info({ objects: await removed.promise }, 'no WebhookSubscription waits for the operator any more');
  } finally {
    await election.stop();
  }
}

/** Takes the finalizer from every WebhookSubscription. Returns their number. */
async function removeFinalizers(api: CustomObjectsApi, namespace: string): Promise<number> {
  const { group, version, plural } = kinds.WebhookSubscription;
  const objects = customObjects(api, kinds.WebhookSubscription);
  for (let count = 0; ; ) {
    const list = await nullOn(404, api.listNamespacedCustomObject({ group, version, plural, namespace }));
    const { items = [] } = (list ?? {}) as { items?: WebhookSubscription[] };
    const kept = items.filter(({ metadata }) => metadata.finalizers?.includes(subscriptionFinalizer));
    if (kept.length === 0) return count;
    for (const one of kept) {
      const change = objects.changeFinalizer(one, 'removeFinalizer', subscriptionFinalizer);
      // Changed or deleted meanwhile: the next list says which.
      await nullOn(404, nullOn(409, change));
    }
    count += kept.length;
  }
}

const [deployment = ''] = process.argv.slice(2);
const config = readConfig();
const log = createLog({ level: config.logLevel, name: 'operator', region: config.region });
await uninstall(config, deployment, log).catch((cause: unknown) => {
  log.fatal({ error: describeError(cause) }, 'the operator could not be ended; Helm keeps it');
  process.exitCode = 1;
});
