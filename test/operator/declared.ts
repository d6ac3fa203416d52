/** A namespace with an organization, and what a test does with its subscriptions and replays. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { CoreV1Api, CustomObjectsApi } from '@kubernetes/client-node';
import { expect, onTestFinished, vi } from 'vitest';

import { statusOf } from '../../apps/operator/kube/client.ts';
import { group, kinds, type WebhookSubscription } from '../../apps/operator/resources.ts';
import { setupDatabase } from '../support/setup.ts';
import { type ApiServer, createNamespace } from './api-server.ts';
import { startControllers } from './controllers.ts';

export const waiting = { timeout: 60_000, interval: 100 };

export async function setupDeclared(server: ApiServer) {
  const namespace = await createNamespace(server);
  const { database, owner, make } = await setupDatabase();
  const orgId = await make.organization();
  const { version, plural } = kinds.WebhookSubscription;
  const custom = server.kubeConfig.makeApiClient(CustomObjectsApi);
  const core = server.kubeConfig.makeApiClient(CoreV1Api);
  const of = (name: string) => ({ group, version, plural, namespace, name });
  const options = { kubeConfig: server.kubeConfig, namespace, databaseUrl: database.urls.operator };
  const t = {
    namespace,
    database,
    owner,
    make,
    orgId,
    core,
    rows: async <Row>(text: string, values: unknown[] = []) => (await owner.pool.query(text, values)).rows as Row[],
    declare: (name = 'orders', spec: Record<string, unknown> = {}) =>
      server.apply({
        apiVersion: `${group}/${version}`,
        kind: 'WebhookSubscription',
        metadata: { name, namespace },
        spec: {
          organizationId: orgId,
          url: 'https://hooks.example.com/in',
          eventTypes: ['client.started'],
          secret: { generate: { secretName: name } },
          ...spec,
        },
      }),
    read: async (name = 'orders') => (await custom.getNamespacedCustomObject(of(name))) as WebhookSubscription,
    remove: (name = 'orders') => custom.deleteNamespacedCustomObject(of(name)),
    async exists(name = 'orders') {
      return custom.getNamespacedCustomObject(of(name)).then(
        () => true,
        (cause: unknown) => {
          if (statusOf(cause) === 404) return false;
          throw cause;
        },
      );
    },
    conditions: async (name = 'orders') =>
      (await t.read(name)).status?.conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`),
    readSecret: (name = 'orders') => core.readNamespacedSecret({ namespace, name }),
    async start(allowedOrganizations: readonly string[] = ['*']) {
      const controllers = await startControllers({ ...options, allowedOrganizations });
      onTestFinished(() => controllers.stop());
      return controllers;
    },
    /** Runs the controllers in a process that dies after an action. */
    async startAndKill(killAfter: string): Promise<void> {
      const cluster = server.kubeConfig.getCurrentCluster();
      const token = server.kubeConfig.getCurrentUser()?.token;
      const { namespace: _, kubeConfig: __, ...rest } = options;
      const child: ChildProcess = spawn(process.execPath, [path.join(import.meta.dirname, 'controllers-child.ts')], {
        env: {
          ...process.env,
          CHILD: JSON.stringify({
            ...rest,
            server: cluster?.server,
            token,
            killAfter,
            namespace,
            allowedOrganizations: ['*'],
          }),
        },
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      onTestFinished(() => void child.kill('SIGKILL'));
      const [, signal] = await once(child, 'exit');
      expect(signal).toBe('SIGKILL');
    },
    actions: async () =>
      (await t.rows<{ action: string }>('select action from activity order by at, id')).map(({ action }) => action),
    waitUntilReady: (name = 'orders') =>
      vi.waitFor(async () => expect(await t.conditions(name)).toContain('Ready True Applied'), waiting),
  };
  return t;
}
