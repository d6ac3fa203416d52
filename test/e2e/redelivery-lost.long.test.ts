import { expect, it, onTestFinished, vi } from 'vitest';
import { openDatabase } from '#domain/db/connect.ts';
import { readLedger } from '#domain/webhooks/ledger.ts';
import { findRedelivery, requestRedelivery } from '#domain/webhooks/redeliveries.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { insertExhausted } from '#test/exhausted-deliveries.ts';
import { startAppProcess } from '../chaos/app-processes.ts';
import { insertOrganization, insertWebhook } from '../chaos/changes.ts';
import { type ReceivingWebhook, startReceivers } from '../chaos/receivers.ts';
import { startServers } from '../chaos/servers.ts';
import { sealingKeys, workerEnvironment } from '../chaos/worker-settings.ts';

const count = 300;

it('a redelivery completes although its worker is killed, and then the whole Temporal store is lost, half-way', async () => {
  const servers = await startServers(() => {});
  onTestFinished(() => servers.stop());
  const owner = await openDatabase({ server: parsePostgresUrl(servers.ownerUrl), applicationName: 'test', poolMax: 4 });
  onTestFinished(() => owner.close());
  const { webhookId, organizationId, receivers } = await arrange(owner.pool);
  // Temporal is away at the time of the request, so the row is the only record of it.
  await servers.kill('temporal');
  const request = { organizationId, webhookId, by: 'operator' as const };
  const selection = { failedSince: new Date(Date.now() - 3_600_000).toISOString() };
  const { id: redeliveryId } = await requestRedelivery(owner.orm.em, { ...request, selection });
  await servers.restart('temporal');
  const environment = workerEnvironment(servers, { RECONCILE_AFTER: '2s' });
  const worker = await startAppProcess({ name: 'worker', label: 'worker', folder: servers.folder, environment });
  onTestFinished(() => worker.stop());
  const find = () => findRedelivery(owner.orm.em, { organizationId, redeliveryId, by: 'operator' });
  const sent = (atLeast: number) =>
    vi.waitFor(
      async () => {
        const found = await find();
        expect(found?.queued).toBeGreaterThanOrEqual(atLeast);
        expect(found?.state).toBe('running');
      },
      { timeout: 60_000, interval: 50 },
    );

  await sent(20);
  await worker.kill();
  await sent(80);
  await servers.kill('temporal');
  servers.deleteTemporalStore();
  await servers.restart('temporal');

  await vi.waitFor(async () => expect(await find()).toMatchObject({ state: 'done', queued: count, seen: count }), {
    timeout: 90_000,
    interval: 100,
  });
  await vi.waitFor(
    async () => expect(await readLedger(owner.pool)).toMatchObject({ delivered: count, difference: 0, overdue: 0 }),
    { timeout: 90_000, interval: 250 },
  );
  const { rows } = await owner.pool.query<{ id: string; posts: number }>(
    `select e.id, count(*) filter (where a.number > 1)::int as posts from event e
      join delivery_attempt a on a.event_id = e.id group by 1 order by 1`,
  );
  for (const { id, posts } of rows) {
    const received = receivers.posts.filter(({ eventId }) => eventId === id);
    expect(new Set(received.map(({ bodySha256 }) => bodySha256)).size).toBe(1);
    expect(received.length).toBeLessThanOrEqual(posts); // each is a recorded attempt
    expect(received.flatMap(({ failedChecks }) => failedChecks)).toEqual([]);
  }
  const { rows: lines } = await owner.pool.query("select detail from activity where action = 'webhook.redelivered'");
  expect(lines).toMatchObject([{ detail: { redeliveryId, state: 'done', queued: count } }]);
}, 300_000);

async function arrange(pool: Parameters<typeof insertOrganization>[0]) {
  const { id: organizationId } = await insertOrganization(pool, 9);
  const webhooks = new Map<string, ReceivingWebhook>();
  const receivers = await startReceivers(webhooks);
  onTestFinished(() => receivers.stop());
  const webhookId = crypto.randomUUID();
  const fields = { organizationId, webhookId, slot: 1, url: receivers.urlOf(webhookId), keys: sealingKeys };
  const { secret } = await insertWebhook(pool, fields);
  webhooks.set(webhookId, { secret, plan: () => ({ kind: 'answer', status: 200 }) });
  await insertExhausted(pool, { organizationId, webhookId, count });
  return { organizationId, webhookId, receivers };
}
