import type { Client } from '@temporalio/client';
import { describe, expect, it, vi } from 'vitest';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { startTestWorker, testNamespace } from '#test/worker.ts';
import { deliverQueue } from '../../workflows/deliver-event/types.ts';

/**
 * Each organization has 20 concurrency slots at the one host, so 60 deliveries are queued at
 * Temporal and the rest wait in the table.
 */
const organizations = 3;
const webhooks = 7;
const grants = 10;
const late = 5;
const patient = { timeout: 90_000, interval: 50 };

/**
 * Temporal silently accepts unknown settings and keys, and a task that a worker takes at once
 * bypasses the queue. So this test checks behavior. There is one slot to work in; posts of three
 * organizations are queued for it, then five others. A worker holds 21 of them. In order of
 * arrival, 60 would precede the five, as was measured without the keys and without the server's
 * setting.
 */
describe('five events that arrive while two hundred of three organizations are queued', () => {
  it('take turns with them when they belong to a fourth organization', { timeout: 180_000 }, async () => {
    const order = await queueThenMore({ isOther: true });
    expect(order.lastIndexOf('/late')).toBeLessThan(52);
  });

  it('go first when the two hundred are redeliveries and the five are first attempts', {
    timeout: 180_000,
  }, async () => {
    const order = await queueThenMore({ isOther: false });
    expect(order.lastIndexOf('/late')).toBeLessThan(52);
  });
});

/**
 * Returns the paths of the posts from the moment at which the late ones came. The queued ones are
 * of round 2 when the late ones belong to the same organization.
 */
async function queueThenMore({ isOther }: { isOther: boolean }): Promise<string[]> {
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  receiver.answer = (response) => void setTimeout(() => response.writeHead(200).end(), 80);
  const busy = await Promise.all(Array.from({ length: organizations }, () => make.member()));
  const other = isOther ? await make.member() : (busy[0] as (typeof busy)[0]);
  const queued = organizations * webhooks * grants;
  for (const professional of busy) {
    for (let count = 0; count < webhooks; count += 1)
      await make.webhook({ orgId: professional.orgId, url: `${receiver.url}/queued` });
    for (let count = 0; count < grants; count += 1) await make.grant({ professional });
  }
  if (!isOther) await owner.pool.query('update delivery set round = 2');
  await make.webhook({ orgId: other.orgId, url: `${receiver.url}/late`, eventTypes: ['client.ended'] });
  await startTestWorker(database, { DELIVERY_SLOTS: '1' });
  const temporal = await openTestTemporal();
  await vi.waitFor(async () => {
    expect(await countQueued(temporal)).toBeGreaterThan(30);
  }, patient);

  const before = receiver.received.length;
  await owner.pool.query(`update webhook set event_types = '{client.started}' where url like '%/late'`);
  await owner.pool.query(`update webhook set event_types = '{client.ended}' where url like '%/queued'`);
  for (let count = 0; count < late; count += 1) await make.grant({ professional: other });

  await vi.waitFor(() => expect(receiver.received).toHaveLength(queued + late), patient);
  const order = receiver.received.slice(before).map(({ path }) => path);
  expect(order.length).toBeGreaterThan(80); // there was a queue
  expect(order.filter((path) => path === '/late')).toHaveLength(late);
  return order;
}

/**
 * First attempts that Temporal holds because no worker has a free slot: each is part of its
 * workflow's first task.
 */
async function countQueued({ workflowService }: Client): Promise<number> {
  const { stats } = await workflowService.describeTaskQueue({
    namespace: testNamespace(),
    taskQueue: { name: deliverQueue },
    taskQueueType: 1,
    reportStats: true,
  });
  return Number(stats?.approximateBacklogCount ?? 0);
}
