import { CustomObjectsApi } from '@kubernetes/client-node';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { createLog } from '#runtime/log.ts';
import { createNamespace } from '#test/api-server.ts';
import { setupDatabase } from '#test/setup.ts';
import { testNamespace } from '#test/worker.ts';
import { startOperator } from '../../apps/operator/app.ts';
import { readConfig } from '../../apps/operator/config.ts';
import type { Condition, ResourceKind } from '../../apps/operator/kube/custom-resource.ts';
import { kinds } from '../../apps/operator/kube/resources.ts';
import { installOperator } from './installed.ts';
import { regionIn } from './region.ts';
import { shareApiServer } from './share-api-server.ts';

const server = shareApiServer();

const secretKeys = `1:${Buffer.alloc(32, 7).toString('base64')}`;
const waiting = { timeout: 60_000, interval: 100 };

/** Runs an operator as the chart's ServiceAccount, with the chart's Role. */
async function setup(webhooks: boolean) {
  const namespace = await createNamespace(server());
  const installed = await installOperator(server(), namespace, { webhooks: { enabled: webhooks } });
  const { database, make } = await setupDatabase();
  await server().apply({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'org-api', namespace },
    stringData: { OPERATOR_DATABASE_URL: database.urls.operator, WEBHOOK_SECRET_KEYS: secretKeys },
  });
  const config = readConfig({
    REGION: 'us',
    OPERATOR_NAMESPACE: namespace,
    OPERATOR_IDENTITY: 'test',
    OPERATOR_WEBHOOKS: String(webhooks),
    KUBECONFIG: installed.kubeconfig,
    HOST: '127.0.0.1',
    METRICS_PORT: '0',
  });
  const operator = await startOperator(config, createLog({ level: 'silent', name: 'operator', region: 'us' }));
  onTestFinished(() => operator.stop());
  const organizationId = await make.organization();
  await server().apply(
    regionIn(namespace, {
      temporal: { address: inject('temporalAddress'), namespace: testNamespace(), tls: false },
      allowedOrganizations: [organizationId],
      webhooks: { secretKeysRef: { name: 'org-api' } },
    }),
  );
  const api = server().kubeConfig.makeApiClient(CustomObjectsApi);
  const at = ({ group, version, plural }: ResourceKind, name: string) => ({ group, version, plural, namespace, name });
  return {
    organizationId,
    installed,
    apply: (kind: ResourceKind, name: string, spec: object) =>
      server().apply({
        apiVersion: `${kind.group}/${kind.version}`,
        kind: kind.kind,
        metadata: { name, namespace },
        spec,
      }),
    read: async (kind: ResourceKind, name: string) =>
      (await api.getNamespacedCustomObject(at(kind, name))) as { status?: { conditions?: Condition[] } },
    remove: (kind: ResourceKind, name: string) => api.deleteNamespacedCustomObject(at(kind, name)),
  };
}

/**
 * An Event needs an action, and applying an object that does not exist also needs the verb
 * `create`.
 */
const optional = ['create events', 'create secrets'];
const without = (requests: string[]): string[] => requests.filter((one) => !optional.includes(one));

describe("the chart's Role", () => {
  it('lets the operator lead and write the status of a Region, and allows no request that it does not make', async () => {
    const { installed, read } = await setup(false);

    await vi.waitFor(
      async () => expect(await read(kinds.Region, 'region')).toMatchObject({ status: { deliveries: { waiting: 0 } } }),
      waiting,
    );
    await vi.waitFor(() => expect(installed.listUsed()).toContain('update leases'), waiting);

    expect(without(installed.listUsed())).toEqual(without(installed.allowed));
  });

  it('lets it carry out webhooks when the values say so, and allows no other request', async () => {
    const { organizationId, installed, apply, read, remove } = await setup(true);
    await apply(kinds.WebhookSubscription, 'orders', {
      organizationId,
      url: 'https://hooks.example.com/',
      eventTypes: ['client.started'],
      secret: { generate: { secretName: 'orders' } },
      reclaimPolicy: 'delete',
    });
    await vi.waitFor(
      async () =>
        expect((await read(kinds.WebhookSubscription, 'orders')).status?.conditions).toContainEqual(
          expect.objectContaining({ type: 'Ready', status: 'True' }),
        ),
      waiting,
    );
    await remove(kinds.WebhookSubscription, 'orders');
    await expect.poll(() => read(kinds.WebhookSubscription, 'orders').catch(() => 'gone'), waiting).toBe('gone');
    await vi.waitFor(() => expect(installed.listUsed()).toContain('update leases'), waiting);

    expect(without(installed.listUsed())).toEqual(without(installed.allowed));
  });
});
