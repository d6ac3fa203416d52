/** A region with an operator in this process, for tests. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { CustomObjectsApi } from '@kubernetes/client-node';
import { Connection } from '@temporalio/client';
import pg from 'pg';
import { inject, onTestFinished } from 'vitest';
import { createLog } from '#runtime/log.ts';
import { type ApiServer, createNamespace } from '#test/api-server.ts';
import { setupDatabase } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { testNamespace } from '#test/worker.ts';
import { startOperator } from '../../apps/operator/app.ts';
import { readConfig } from '../../apps/operator/config.ts';
import { group, kinds, type Region, type WebhookSubscription } from '../../apps/operator/kube/resources.ts';
import { regionIn } from './region.ts';

/** The value of a Region that names the sealing keys. */
export const webhooks = { secretKeysRef: { name: 'org-api' } };

export const waiting = { timeout: 60_000, interval: 100 };

/**
 * A region's servers, its Secret, and an operator; its clock and its connection to the API server
 * can be replaced.
 */
export async function setupRegion(
  server: ApiServer,
  { kubeConfig = server.kubeConfig, now = () => performance.now() } = {},
) {
  const namespace = await createNamespace(server);
  const { database, make } = await setupDatabase();
  const folder = temporaryFolder();
  const kubeconfig = path.join(folder, 'kubeconfig.json');
  writeFileSync(kubeconfig, kubeConfig.exportConfig());
  const applySecret = (values: Record<string, string> = {}) =>
    server.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'org-api', namespace },
      stringData: {
        OPERATOR_DATABASE_URL: database.urls.operator,
        WEBHOOK_SECRET_KEYS: `1:${Buffer.alloc(32, 7).toString('base64')}`,
        ...values,
      },
    });
  const applyRegion = (temporal: object = {}, more: object = {}) =>
    server.apply(
      regionIn(namespace, {
        temporal: { address: inject('temporalAddress'), namespace: testNamespace(), tls: false, ...temporal },
        ...more,
      }),
    );
  const config = readConfig({
    REGION: 'us',
    OPERATOR_NAMESPACE: namespace,
    OPERATOR_IDENTITY: 'test',
    KUBECONFIG: kubeconfig,
    HOST: '127.0.0.1',
    METRICS_PORT: '0',
    OPERATOR_WEBHOOKS: 'true',
  });
  const operator = await startOperator(config, createLog({ level: 'silent', name: 'operator', region: 'us' }), now);
  onTestFinished(() => operator.stop());
  const temporal = await Connection.connect({ address: inject('temporalAddress') });
  onTestFinished(() => temporal.close());
  const api = server.kubeConfig.makeApiClient(CustomObjectsApi);
  const { version, plural } = kinds.Region;
  async function readStatus() {
    const request = { group, version, plural, namespace, name: 'region' };
    return ((await api.getNamespacedCustomObject(request)) as Region).status;
  }
  return {
    readMetrics: async () => (await fetch(new URL('/metrics', operator.metricsUrl))).text(),
    fetchStatus: async (page: string) => (await fetch(new URL(page, operator.metricsUrl))).status,
    temporal,
    database,
    /** Opens a connection with the login of the database's owner. */
    async openOwner() {
      const owner = new pg.Client({ connectionString: database.ownerUrl });
      await owner.connect();
      onTestFinished(() => owner.end());
      return owner;
    },
    namespace,
    make,
    async readReadiness() {
      const { plural: subscriptions } = kinds.WebhookSubscription;
      const request = { group, version, plural: subscriptions, namespace, name: 'orders' };
      const { status } = (await api.getNamespacedCustomObject(request)) as WebhookSubscription;
      return status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
    },
    /** Declares the WebhookSubscription `orders` for an organization. */
    declare: (organizationId: string, more: object = {}) =>
      server.apply({
        apiVersion: `${group}/${kinds.WebhookSubscription.version}`,
        kind: 'WebhookSubscription',
        metadata: { name: 'orders', namespace },
        spec: {
          organizationId,
          url: 'https://hooks.example.com/',
          eventTypes: ['client.started'],
          secret: { generate: { secretName: 'orders' } },
          ...more,
        },
      }),
    removeRegion: () => api.deleteNamespacedCustomObject({ group, version, plural, namespace, name: 'region' }),
    removeSubscription: () => {
      const { plural: subscriptions } = kinds.WebhookSubscription;
      return api.deleteNamespacedCustomObject({ group, version, plural: subscriptions, namespace, name: 'orders' });
    },
    applySecret,
    applyRegion,
    readStatus,
    /** Returns the status and reason of a condition of the Region; undefined when it has none. */
    async readCondition(type: string) {
      const found = (await readStatus())?.conditions?.find((one) => one.type === type);
      return found && `${found.status} ${found.reason}`;
    },
  };
}
