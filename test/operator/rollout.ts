/** A region whose workers the operator rolls out, for tests. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CustomObjectsApi, EventsV1Api } from '@kubernetes/client-node';
import { Connection } from '@temporalio/client';
import { inject, onTestFinished } from 'vitest';
import { countDeliveries } from '#test/count-deliveries.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { makeNamespace } from '#test/temporal.ts';
import { workerEnvironment } from '#test/worker.ts';
import { workflowBundle } from '../../apps/dev/prebuilt.ts';
import { kinds, type Region } from '../../apps/operator/resources.ts';
import { spawnWorker } from '../worker/child-worker.ts';
import { type ApiServer, createNamespace, regionIn } from './api-server.ts';
import { installOperator } from './installed.ts';

export const waiting = { timeout: 120_000, interval: 100 };
const deployment = 'org-api-rollout';

/**
 * Sets up a region whose workers the operator rolls out: PostgreSQL, Temporal, a receiver and a
 * Region. Its operators are processes, and have the Role of the chart with these values.
 */
export async function arrangeRollout(server: ApiServer, values: object = {}) {
  const namespace = await createNamespace(server);
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const temporalNamespace = await makeNamespace('org-api-rollout');
  await server.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'org-api', namespace },
    stringData: { OPERATOR_DATABASE_URL: database.urls.operator },
  });
  const installed = await installOperator(server, namespace, values);
  const connection = await Connection.connect({ address: inject('temporalAddress') });
  onTestFinished(() => connection.close());
  const custom = server.kubeConfig.makeApiClient(CustomObjectsApi);
  const operators = new Map<string, ReturnType<typeof spawnWorker>>();
  const { group, version, plural } = kinds.Region;
  const t = {
    namespace,
    database,
    receiver,
    owner,
    installed,
    startOperator(identity: string) {
      const environment = {
        REGION: 'us',
        OPERATOR_NAMESPACE: namespace,
        OPERATOR_IDENTITY: identity,
        KUBECONFIG: installed.kubeconfig,
        WORKFLOW_BUNDLE: workflowBundle,
        HOST: '127.0.0.1',
        METRICS_PORT: '0',
      };
      const operator = spawnWorker(environment, undefined, 'operator');
      operators.set(identity, operator);
      return operator;
    },
    kill: (identity: string) => operators.get(identity)?.process.kill('SIGKILL'),
    startBuild: (buildId: string, settings: Record<string, string> = {}) =>
      spawnWorker(
        workerEnvironment(database, {
          TEMPORAL_NAMESPACE: temporalNamespace,
          DELIVERY_SCHEDULE: Array(40).fill('2s').join(','),
          WORKER_DEPLOYMENT: deployment,
          WORKER_BUILD_ID: buildId,
          WORKER_ROLLOUT: 'operator',
          ...settings,
        }),
      ),
    /** Declares a build as the release's, with more fields of the spec. */
    release: (buildId: string, more: object = {}) =>
      server.apply(
        regionIn(namespace, {
          release: { version: '0.1.0', buildId },
          temporal: { address: inject('temporalAddress'), namespace: temporalNamespace, deployment, tls: false },
          workers: { rollout: { mode: 'Operator', step: '6s' } },
          ...more,
        }),
      ),
    read: async () =>
      (await custom.getNamespacedCustomObject({ group, version, plural, namespace, name: 'region' })) as Region,
    conditions: async () =>
      ((await t.read()).status?.conditions ?? []).map(({ type, status, reason }) => `${type} ${status} ${reason}`),
    async events(): Promise<(string | undefined)[]> {
      const api = server.kubeConfig.makeApiClient(EventsV1Api);
      return (await api.listNamespacedEvent({ namespace })).items.map(({ reason }) => reason);
    },
    async routing(): Promise<string> {
      const { workerDeploymentInfo } = await connection.workflowService.describeWorkerDeployment({
        namespace: temporalNamespace,
        deploymentName: deployment,
      });
      const routing = workerDeploymentInfo?.routingConfig;
      const ramping = routing?.rampingDeploymentVersion?.buildId;
      const share = ramping ? `, ${ramping} ${Math.round(routing?.rampingVersionPercentage ?? 0)} %` : '';
      return `${routing?.currentDeploymentVersion?.buildId ?? ''}${share}`;
    },
    /** Every observed routing, in order. */
    watchRouting(): string[] {
      const seen: string[] = [];
      let isWatching = true;
      const watch = async () => {
        for (; isWatching; await sleep(50)) {
          // A call that Temporal leaves open must not hide a step, which takes 6 s.
          const now = await connection.withDeadline(Date.now() + 2_000, t.routing).catch(() => seen.at(-1));
          if (now !== undefined && now !== seen.at(-1)) seen.push(now);
        }
      };
      const watched = watch();
      onTestFinished(() => {
        isWatching = false;
        return watched;
      });
      return seen;
    },
    async makeEvents(count: number): Promise<void> {
      for (let event = 0; event < count; event += 1) await make.grant({ professional });
    },
    count: (condition: string) => countDeliveries(owner.pool, condition),
  };
  return t;
}
