/** A region with its servers and operators as processes, for tests. */
import { CustomObjectsApi, EventsV1Api } from '@kubernetes/client-node';
import { inject } from 'vitest';
import { type ApiServer, createNamespace } from '#test/api-server.ts';
import { type SpawnedApp, spawnApp } from '#test/child-app.ts';
import { setupDatabase } from '#test/setup.ts';
import { makeNamespace } from '#test/temporal.ts';
import { kinds, type Region } from '../../apps/operator/kube/resources.ts';
import { installOperator } from './installed.ts';
import { regionIn } from './region.ts';

export const waiting = { timeout: 120_000, interval: 100 };

/**
 * Sets up a region: PostgreSQL with a webhook, and a namespace of Temporal. Its operators are
 * processes, and have the Role of the chart with these values.
 */
export async function arrangeRegion(server: ApiServer, values: object = {}) {
  const namespace = await createNamespace(server);
  const { database, owner, make } = await setupDatabase();
  await make.webhook();
  const temporalNamespace = await makeNamespace('org-api-region');
  await server.apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'org-api', namespace },
    stringData: { OPERATOR_DATABASE_URL: database.urls.operator },
  });
  const installed = await installOperator(server, namespace, values);
  const custom = server.kubeConfig.makeApiClient(CustomObjectsApi);
  const operators = new Map<string, SpawnedApp>();
  const { group, version, plural } = kinds.Region;
  const t = {
    namespace,
    database,
    owner,
    installed,
    startOperator(identity: string) {
      const environment = {
        REGION: 'us',
        OPERATOR_NAMESPACE: namespace,
        OPERATOR_IDENTITY: identity,
        KUBECONFIG: installed.kubeconfig,
        HOST: '127.0.0.1',
        METRICS_PORT: '0',
      };
      const operator = spawnApp('operator', environment);
      operators.set(identity, operator);
      return operator;
    },
    kill: (identity: string) => operators.get(identity)?.process.kill('SIGKILL'),
    /** Applies the Region, with more fields of the spec. */
    release: (more: object = {}) =>
      server.apply(
        regionIn(namespace, {
          temporal: { address: inject('temporalAddress'), namespace: temporalNamespace, tls: false },
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
  };
  return t;
}
