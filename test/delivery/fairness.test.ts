import type { ServerResponse } from 'node:http';
import { expect, it, vi } from 'vitest';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { startTestWorker } from '#test/worker.ts';
import { deliverQueue } from '#workflows/deliver-event/types.ts';
import type { SendTestInput } from '#workflows/send-test/types.ts';

const organizations = 3;
const webhooks = 3;
const grants = 7;
const late = 5;
const patient = { timeout: 60_000, interval: 20 };

// Six attempts at a time, and the relay claims no more: what waits does so in the table, where
// organizations take turns. In order of arrival, 63 would precede the five.
it('five events take turns with sixty that three other organizations have queued before', {
  timeout: 90_000,
}, async () => {
  const { database, make } = await setupDatabase();
  const receiver = await startReceiver();
  receiver.respond = (response) => void setTimeout(() => response.writeHead(200).end(), 150);
  const busy = await Promise.all(Array.from({ length: organizations }, () => make.member()));
  const other = await make.member();
  for (const professional of busy) {
    for (let count = 0; count < webhooks; count += 1)
      await make.webhook({ orgId: professional.orgId, url: `${receiver.url}/queued` });
    for (let count = 0; count < grants; count += 1) await make.grant({ professional });
  }
  await make.webhook({ orgId: other.orgId, url: `${receiver.url}/late` });
  await startTestWorker(database, { DELIVERY_SLOTS: '6' });
  await vi.waitFor(() => expect(receiver.received.length).toBeGreaterThan(5), patient);

  const before = receiver.received.length;
  for (let count = 0; count < late; count += 1) await make.grant({ professional: other });

  const all = organizations * webhooks * grants + late;
  await vi.waitFor(() => expect(receiver.received).toHaveLength(all), patient);
  const order = receiver.received.slice(before).map(({ path }) => path);
  expect(order.filter((path) => path === '/late')).toHaveLength(late);
  expect(order.length).toBeGreaterThan(40); // there was a queue
  expect(order.lastIndexOf('/late')).toBeLessThan(35);
});

// With 200 slots, 20 webhooks whose members check signatures ten times a minute would take all.
it('a first attempt waits for no test event or signature check, however many receivers of them hang', {
  timeout: 90_000,
}, async () => {
  const { database, make } = await setupDatabase();
  const receiver = await startReceiver();
  const held: ServerResponse[] = [];
  receiver.respond = (response, { path }) => void (path === '/prompt' ? response.end() : held.push(response));
  const [hanging, other] = [await make.member(), await make.member()];
  const webhook = await make.webhook({ orgId: hanging.orgId, url: `${receiver.url}/hanging` });
  await make.webhook({ orgId: other.orgId, url: `${receiver.url}/prompt` });
  const slots = 3;
  await startTestWorker(database, { DELIVERY_SLOTS: `${slots}` });
  const { workflow } = await openTestTemporal();
  let ended = 0;
  const checks = Array.from({ length: 2 * slots }, async (_, nth) => {
    const input: SendTestInput = { organizationId: hanging.orgId, webhookId: webhook.id, eventType: 'seat.given' };
    const args = [nth % 2 === 0 ? input : { ...input, checkSignatures: true }];
    await workflow.execute('sendTest', { taskQueue: deliverQueue, workflowId: `test/${webhook.id}/${nth}`, args });
    ended += 1;
  });
  await vi.waitFor(() => expect(receiver.received).toHaveLength(slots), patient);

  await make.grant({ professional: other });

  await vi.waitFor(() => expect(receiver.received.filter(({ path }) => path === '/prompt')).toHaveLength(1), patient);
  expect(ended).toBe(0);
  receiver.respond = (response) => void response.writeHead(500).end();
  for (const response of held) response.writeHead(500).end();
  await Promise.all(checks);
});
