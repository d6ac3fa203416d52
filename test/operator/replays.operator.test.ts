/** DeliveryReplays against a real API server, PostgreSQL, Temporal, worker and receiver. */
import { CustomObjectsApi } from '@kubernetes/client-node';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type DeliveryReplay, group, kinds } from '../../apps/operator/resources.ts';
import { startReceiver } from '../support/receiver.ts';
import { startTestWorker } from '../support/worker.ts';
import { type ApiServer, startApiServer } from './api-server.ts';
import { setupDeclared, waiting } from './declared.ts';

let server: ApiServer;
beforeAll(async () => {
  server = await startApiServer();
});
afterAll(() => server?.stop());

const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);

async function setup() {
  const t = await setupDeclared(server);
  const { version, plural } = kinds.DeliveryReplay;
  const custom = server.kubeConfig.makeApiClient(CustomObjectsApi);
  const of = { group, version, plural, namespace: t.namespace, name: 'outage' };
  const read = async () => (await custom.getNamespacedCustomObject(of)) as DeliveryReplay;
  return {
    ...t,
    read,
    replay: (spec: Record<string, unknown> = {}) =>
      server.apply({
        apiVersion: `${group}/${version}`,
        kind: 'DeliveryReplay',
        metadata: { name: of.name, namespace: t.namespace },
        spec: {
          subscription: 'orders',
          from: hoursAgo(9).toISOString(),
          to: hoursAgo(1).toISOString(),
          rate: 100,
          ...spec,
        },
      }),
    /** Declares the webhook of a receiver, and creates deliveries that it did not accept. */
    async declareFailed(count: number) {
      const receiver = await startReceiver();
      await t.declare('orders', { url: receiver.url });
      await t.waitUntilReady();
      const [webhook] = await t.rows<{ id: string }>('select id from webhook');
      const made = { orgId: t.orgId, id: webhook?.id ?? '', secret: '' };
      for (let index = 0; index < count; index += 1)
        await t.make.delivery({
          webhook: made,
          state: 'exhausted',
          createdAt: hoursAgo(8),
          settledAt: hoursAgo(5),
          attempts: [{ status: 500, isLast: true }],
        });
      return receiver;
    },
    conditionsOf: async () =>
      (await read()).status?.conditions?.map(({ type, status, reason }) => `${type} ${status} ${reason}`),
    isGone: () =>
      custom.getNamespacedCustomObject(of).then(
        () => false,
        () => true,
      ),
  };
}

describe('a DeliveryReplay', () => {
  it('is refused without a range, and never changes', async () => {
    const t = await setup();
    await expect(t.replay({ to: hoursAgo(9).toISOString(), from: hoursAgo(1).toISOString() })).rejects.toThrow(
      /from must be before to/,
    );
    const spec = { from: hoursAgo(9).toISOString(), to: hoursAgo(1).toISOString() };
    await t.replay(spec);
    await expect(t.replay({ ...spec, rate: 5 })).rejects.toThrow(/cannot change/);
  });

  it('sends what failed once, although the operator is killed, and its counts equal the receiver’s', {
    timeout: 120_000,
  }, async () => {
    const t = await setup();
    const first = await t.start();
    const receiver = await t.declareFailed(30);
    await first.stop();
    await t.replay();
    await t.runAndKill({ afterAction: 'requestRedelivery' }, async () => false);
    await startTestWorker(t.database);
    await vi.waitFor(() => expect(receiver.received).toHaveLength(30), waiting);
    await t.start();
    await vi.waitFor(async () => expect(await t.conditionsOf()).toContain('Complete True Redelivered'), waiting);
    expect((await t.read()).status).toMatchObject({ matched: 30, redelivered: 30, failed: 0 });
    expect(receiver.received).toHaveLength(30);
    expect(await t.rows('select from redelivery')).toHaveLength(1);
  });

  it('only counts in a dry run, and is deleted when its TTL has expired', async () => {
    const t = await setup();
    await t.start();
    await t.declareFailed(3);
    await t.replay({ dryRun: true, ttlSecondsAfterFinished: 15 });
    await vi.waitFor(async () => expect(await t.conditionsOf()).toContain('Complete True DryRun'), waiting);
    expect((await t.read()).status).toMatchObject({ matched: 3, redelivered: 0 });
    expect(await t.rows('select from redelivery')).toEqual([]);
    await vi.waitFor(async () => expect(await t.isGone()).toBe(true), waiting);
  });

  it('cancels what has not been sent when it is deleted', async () => {
    const t = await setup();
    await t.start();
    await t.declareFailed(3);
    await t.replay();
    await vi.waitFor(async () => expect(await t.rows('select from redelivery')).toHaveLength(1), waiting);
    const { version, plural } = kinds.DeliveryReplay;
    const custom = server.kubeConfig.makeApiClient(CustomObjectsApi);
    await custom.deleteNamespacedCustomObject({ group, version, plural, namespace: t.namespace, name: 'outage' });
    await vi.waitFor(async () => expect(await t.isGone()).toBe(true), waiting);
    expect(await t.rows('select state from redelivery')).toEqual([{ state: 'cancelled' }]);
  });

  it('ends when it names events of more than 30 days ago', async () => {
    const t = await setup();
    await t.start();
    await t.declareFailed(1);
    await t.replay({ from: hoursAgo(31 * 24).toISOString() });
    await vi.waitFor(async () => expect(await t.conditionsOf()).toContain('Failed True EventTooOld'), waiting);
  });
});
