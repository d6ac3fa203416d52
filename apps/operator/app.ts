import { CoordinationV1Api, CoreV1Api, CustomObjectsApi, EventsV1Api } from '@kubernetes/client-node';
import { once } from '#runtime/flow/once.ts';
import { startServer } from '#runtime/http-server.ts';
import { describeError, type Logger } from '#runtime/log.ts';
import { serveMetrics } from '#runtime/metrics-page.ts';
import { reportSettings } from '#runtime/settings/watch.ts';
import type { OperatorConfig } from './config.ts';
import { type CommonRunnerOptions, Runner } from './controller/runner.ts';
import { createApis } from './kube/client.ts';
import type { ResourceKind } from './kube/custom-resource.ts';
import { createEvents } from './kube/events.ts';
import { readKubeConfig } from './kube/kube-config.ts';
import { Election, leaseName } from './kube/lease.ts';
import { kinds, type Region } from './kube/resources.ts';
import { createMetrics } from './metrics.ts';
import { createRegionAccess } from './region/access.ts';
import { Connections, settingNames } from './region/connections.ts';
import { createRegionController } from './region/controller.ts';
import { createSubscriptionRunner } from './webhook-subscription/runner.ts';

/** Each request to the API server; a watch lasts longer and has its own bound. */
const requestDeadlineMs = 10_000;
/** Half of what a leader has without a renewal: a request that is lost leaves time for another. */
const leaseDeadlineMs = 5_000;
/** Objects are listed every five minutes, so this is two lists and their retries that failed. */
const listedWithinMs = 900_000;

/**
 * Starts the operator: its metrics and health, a cache of the objects, and the election. Resolves
 * when it listens, also while the API server is unavailable: it is live then, and not ready. `stop` may be
 * called twice. `now` returns milliseconds, by which it decides how old the last list and Secrets are.
 */
export async function startOperator(
  config: OperatorConfig,
  log: Logger,
  now: () => number = () => performance.now(),
): Promise<{ metricsUrl: string; stop(): Promise<void> }> {
  const { namespace, identity, concurrency } = config;
  const metrics = createMetrics();
  const kubeConfig = readKubeConfig(config);
  const apisWithin = (deadlineMs: number) =>
    createApis({
      kubeConfig,
      deadlineMs,
      onRequest: ({ method, resource }) => metrics.requests.inc({ method, resource }),
    });
  const apis = apisWithin(requestDeadlineMs);
  const onError = (message: string) => (cause: unknown) => log.error({ error: describeError(cause) }, message);
  const recordEvent = createEvents({
    api: apis(EventsV1Api),
    identity,
    onError: onError('an Event could not be recorded'),
  });
  const connections = new Connections({
    api: apis(CoreV1Api),
    namespace,
    now,
    report: reportSettings({ names: settingNames, registry: metrics.registry, log }),
  });
  let listedAt = now();
  const runnerOptions = ({ kind }: ResourceKind): CommonRunnerOptions => ({
    kubeConfig,
    namespace,
    recordEvent,
    concurrency,
    onListed: () => {
      listedAt = now();
      metrics.listedAt.setToCurrentTime({ kind });
    },
    onWatchError: onError(`the objects of kind ${kind} could not be listed or watched; tried again`),
    onError: (name, cause, retryInMs) => {
      metrics.failures.inc({ kind });
      log.error({ kind, name, retryInMs, error: describeError(cause) }, 'a pass failed; it is repeated');
    },
    onAction: (action) => {
      metrics.actions.inc({ kind, action });
      log.info({ kind, action }, 'an action was carried out');
    },
    onStatus: () => log.debug({ kind }, 'a status was written'),
    onPass: () => metrics.passes.inc({ kind }),
  });
  for (const kind of config.webhooks ? Object.keys(kinds) : ['Region']) metrics.failures.inc({ kind }, 0);
  const findRegion = () => regions.get('region') as Region | undefined;
  const regions: Runner = new Runner({
    ...runnerOptions(kinds.Region),
    api: apis(CustomObjectsApi),
    // Their database, their allowed organizations and their deletion depend on it.
    onChange: () => webhooks[0]?.touchAll(),
    controller: createRegionController(connections, {
      region: config.region,
      onReport(conditions) {
        metrics.regionCondition.reset(); // a condition can be gone, and all of them with the Region
        for (const { type, status: current } of conditions)
          for (const status of ['True', 'False', 'Unknown'])
            metrics.regionCondition.set({ type, status }, status === current ? 1 : 0);
      },
    }),
  });
  const getRegion = createRegionAccess(connections, findRegion, config.region);
  const webhooks = config.webhooks
    ? [createSubscriptionRunner({ apis, getRegion, common: runnerOptions(kinds.WebhookSubscription) })]
    : [];
  const runners = [regions, ...webhooks];
  const election = new Election({
    api: apisWithin(leaseDeadlineMs)(CoordinationV1Api),
    namespace,
    name: leaseName,
    identity,
    onError: onError('the Lease could not be read or renewed; tried again'),
    lead: async (signal) => {
      metrics.isLeader.set(1);
      log.info({ identity }, 'this replica leads');
      await Promise.all(runners.map((runner) => runner.lead(signal)));
      metrics.isLeader.set(0);
      metrics.regionCondition.reset();
      await connections.drop();
      log.info({ identity }, 'this replica does not lead any more');
    },
  });
  let unreadiness: string | null = 'the API server has not listed the objects yet';
  const findLivenessFailure = () =>
    now() - listedAt > listedWithinMs ? 'the API server has listed nothing for 15 minutes' : null;
  const server = await startServer({
    handler: serveMetrics(metrics.registry, () => unreadiness, findLivenessFailure),
    host: config.host,
    port: config.metricsPort,
  });
  metrics.isLeader.set(0);
  // In the background, so that a process whose API server is unavailable can be stopped.
  const started = Promise.all(runners.map((runner) => runner.start())).then(() => {
    unreadiness = null;
    election.start();
    log.info({ metricsUrl: server.url, namespace }, 'the operator is running');
  });

  async function close(): Promise<void> {
    unreadiness = 'draining';
    await Promise.all(runners.map((runner) => runner.stop()));
    await started;
    await election.stop();
    await connections.close();
    await server.stop();
  }
  return { metricsUrl: server.url, stop: once(close) };
}
