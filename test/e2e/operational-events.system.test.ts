/** Operational events from a worker process to receivers: suspended by its own attempts, and what time shows. */
import { expect, it, vi } from 'vitest';
import { type EventType, eventEnvelope } from '#domain/contract/events.ts';
import { readLedger } from '#domain/webhooks/ledger.ts';
import { startChildWorker } from '#test/child-worker.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { workerEnvironment } from '#test/worker.ts';

const operational = ['webhook.failing', 'webhook.suspended', 'key.expiring'] as const;

it('a webhook gets an event about another that is suspended, one that fails and a key that expires, and none about itself', {
  timeout: 240_000,
}, async () => {
  const { database, owner, make } = await setupDatabase();
  const member = await make.member({ signedIn: true });
  const { orgId } = member;
  const hook = async (status: number, eventTypes: readonly EventType[]) => {
    const receiver = await startReceiver();
    receiver.respond = (response) => response.writeHead(status).end();
    return { receiver, ...(await make.webhook({ orgId, url: receiver.url, eventTypes })) };
  };
  const listens = await hook(200, [...operational]);
  const gone = await hook(410, ['client.started', ...operational]);
  const fails = await hook(500, ['client.started', ...operational]);
  await make.apiKey({ creator: member, expiresAt: new Date(Date.now() + 13 * 86_400_000) });
  await owner.pool.query(`update api_key set created_at = now() - interval '1 year'`);
  await startChildWorker(workerEnvironment(database));
  const told = () => listens.receiver.received.map(({ body }) => JSON.parse(body.toString()));
  const recordAgain = () =>
    owner.pool.query(`update maintenance_step set due_at = clock_timestamp(), set_at = clock_timestamp()
      where name in ('record_notices', 'suspend_webhooks')`);
  const until = (count: number) =>
    vi.waitFor(
      async () => {
        await recordAgain();
        expect(told()).toHaveLength(count);
      },
      { timeout: 60_000, interval: 500 },
    );
  await until(1);
  await make.grant({ professional: member });
  await until(2);
  await vi.waitFor(
    async () => {
      const { rowCount } = await owner.pool.query(
        `update receiver set failing_since = failing_since - interval '2 hours' where webhook_id = $1
         and failing_since > now() - interval '1 hour'`,
        [fails.id],
      );
      expect(rowCount).toBe(1);
    },
    { timeout: 60_000 },
  );
  await until(3);
  for (const _ of [1, 2, 3]) await until(3);

  const events = told();
  expect(events.map(({ type }) => type)).toEqual(['key.expiring', 'webhook.suspended', 'webhook.failing']);
  for (const event of events) expect(eventEnvelope(event.type).strict().parse(event)).toEqual(event);
  expect(events[1].data).toMatchObject({ webhookId: gone.id, reason: 'gone' });
  expect(events[2].data.webhookId).toBe(fails.id);
  const { rows } = await owner.pool.query(
    `select d.webhook_id as id, e.type from delivery d join event e on e.id = d.event_id
     where e.type = any ($1) and e.body::json -> 'data' ->> 'webhookId' = d.webhook_id::text`,
    [operational],
  );
  expect(rows).toEqual([]);
  const { rows: mails } = await owner.pool.query(`select kind from mail where kind = any ($1) order by kind`, [
    operational,
  ]);
  expect(mails.map(({ kind }) => kind)).toEqual([...operational].sort());
  expect(await readLedger(owner)).toMatchObject({ unexplained: 0, difference: 0 });
});
