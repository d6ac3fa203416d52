/** A namespace with an organization, and what a test does with its subscriptions. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { CoreV1Api, CustomObjectsApi } from '@kubernetes/client-node';
import { expect, onTestFinished, vi } from 'vitest';
import { type ApiServer, createNamespace } from '#test/api-server.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { findStatus } from '../../apps/operator/kube/client.ts';
import { group, kinds, type WebhookSubscription } from '../../apps/operator/kube/resources.ts';
import { setupDatabase } from '../support/setup.ts';
import { type ControllersOptions, startControllers } from './controllers.ts';

export const waiting = { timeout: 60_000, interval: 100 };

/** When an operator is killed: after an action, or after it has sent this often to any server. */
export type Kill = { afterAction: string } | { afterWrites: number };

/** Sets up a namespace and an organization, in a new database unless one is given. */
export async function setupDeclared(server: ApiServer, installation?: Awaited<ReturnType<typeof setupDatabase>>) {
  const namespace = await createNamespace(server);
  const { database, owner, make } = installation ?? (await setupDatabase());
  const orgId = await make.organization();
  const { version, plural } = kinds.WebhookSubscription;
  const custom = server.kubeConfig.makeApiClient(CustomObjectsApi);
  const core = server.kubeConfig.makeApiClient(CoreV1Api);
  const of = (name: string) => ({ group, version, plural, namespace, name });
  const options = { kubeConfig: server.operatorConfig, namespace, databaseUrl: database.urls.operator };
  const t = {
    server,
    custom,
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
          if (findStatus(cause) === 404) return false;
          throw cause;
        },
      );
    },
    conditions: async (name = 'orders') =>
      (await t.read(name)).status?.conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`),
    readSecret: (name = 'orders') => core.readNamespacedSecret({ namespace, name }),
    async start(allowedOrganizations: readonly string[] = ['*'], more: Partial<ControllersOptions> = {}) {
      const controllers = await startControllers({ ...options, ...more, allowedOrganizations });
      onTestFinished(() => controllers.stop());
      return controllers;
    },
    /** Runs the controllers until a condition holds, and then once for every remaining object. */
    async runUntil(isReached: () => Promise<boolean>): Promise<void> {
      let passes = 0;
      const onPass = () => {
        passes += 1;
      };
      const controllers = await startControllers({ ...options, allowedOrganizations: ['*'], onPass });
      try {
        await vi.waitFor(async () => expect(await isReached()).toBe(true), waiting);
        if (await t.hasObjects()) await vi.waitFor(() => expect(passes).toBeGreaterThan(0), waiting);
      } finally {
        await controllers.stop();
      }
    },
    /** Runs the controllers in a process that is killed, at the latest when the condition holds. */
    async runAndKill(kill: Kill, isReached: () => Promise<boolean>): Promise<void> {
      const { kubeConfig: _, ...rest } = options;
      const settings = { ...rest, port: server.port, kill, allowedOrganizations: ['*'] };
      const child: ChildProcess = spawn(process.execPath, [path.join(import.meta.dirname, 'controllers-child.ts')], {
        env: { ...childEnvironment, CHILD: JSON.stringify(settings) },
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      onTestFinished(() => void child.kill('SIGKILL'));
      const ended = once(child, 'exit');
      const isEnded = () => child.exitCode !== null || child.signalCode !== null;
      await vi.waitFor(async () => expect(isEnded() || (await isReached())).toBe(true), waiting);
      if ('afterWrites' in kill) child.kill('SIGKILL');
      const [, signal] = await ended;
      expect(signal).toBe('SIGKILL');
    },
    /** Whether the namespace has a subscription. */
    async hasObjects(): Promise<boolean> {
      const { items } = await custom.listNamespacedCustomObject({ group, version, plural, namespace });
      return items.length > 0;
    },
    /** Returns the organization's audit entries. */
    actions: async () => {
      const text = 'select action from audit_entry where organization_id = $1 order by at, id';
      return (await t.rows<{ action: string }>(text, [orgId])).map(({ action }) => action);
    },
    waitUntilReady: (name = 'orders') =>
      vi.waitFor(async () => expect(await t.conditions(name)).toContain('Ready True Applied'), waiting),
  };
  return t;
}
