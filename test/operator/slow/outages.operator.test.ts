/** An API server that is unreachable for a minute, and definitions that are deleted. */
import { setTimeout as wait } from 'node:timers/promises';
import { ApiextensionsV1Api } from '@kubernetes/client-node';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startApiServer } from '#test/api-server.ts';
import { group, kinds } from '../../../apps/operator/kube/resources.ts';
import { setupDeclared } from '../declared.ts';

const outageMs = 60_000;
const waiting = { timeout: 180_000, interval: 500 };

/** Sets up a namespace on an API server of its own: one that a failed test leaves cannot be used again. */
async function setup() {
  const server = await startApiServer();
  onTestFinished(() => server.stop());
  return setupDeclared(server);
}

it('an API server that is unavailable for a minute delays a change, and nothing is done twice', {
  timeout: 420_000,
}, async () => {
  const t = await setup();
  await t.declare();
  const { server } = t;
  const { requests } = await t.start();
  await vi.waitFor(async () => expect(await t.conditions()).toContain('Delivering True Active'), waiting);

  const before = requests.length;
  server.freeze();
  await wait(outageMs);
  const tried = requests.length - before;
  server.thaw();
  await t.declare('orders', { suspend: true });

  await vi.waitFor(async () => expect(await t.conditions()).toContain('Delivering False Paused'), waiting);
  expect(await t.actions()).toEqual(['webhook.create', 'webhook.pause']);
  // Each watch and list waits longer after each failure, so an outage causes no storm of requests.
  expect(tried).toBeLessThan(60);
  process.stdout.write(`${tried} requests while the API server was unavailable for ${outageMs / 1_000} s\n`);
});

it('a deleted definition detaches its webhooks, and objects of a new one are followed again', {
  timeout: 420_000,
}, async () => {
  const t = await setup();
  await t.declare();
  await t.start();
  await vi.waitFor(async () => expect(await t.conditions()).toContain('Ready True Applied'), waiting);

  const definitions = t.server.kubeConfig.makeApiClient(ApiextensionsV1Api);
  const name = `${kinds.WebhookSubscription.plural}.${group}`;
  await definitions.deleteCustomResourceDefinition({ name });
  await vi.waitFor(async () => {
    const { items } = await definitions.listCustomResourceDefinition();
    expect(items.map(({ metadata }) => metadata?.name)).not.toContain(name);
  }, waiting);
  expect(await t.actions()).toEqual(['webhook.create', 'webhook.detach']);
  expect(await t.rows('select from webhook where managed_by is null')).toHaveLength(1);

  await t.server.applyDefinitions();
  await t.declare('orders-2', { url: 'https://hooks.example.com/another' }); // the detached webhook keeps its URL
  await vi.waitFor(async () => expect(await t.conditions('orders-2')).toContain('Ready True Applied'), waiting);
  expect(await t.rows('select from webhook')).toHaveLength(2);
});
