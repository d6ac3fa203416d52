import { expect, it, vi } from 'vitest';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTestWorker } from '#test/worker.ts';

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
