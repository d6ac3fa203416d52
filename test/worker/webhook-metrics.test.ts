/** What a worker's `/metrics` reports of failing webhooks and of repaired deliveries. */
import { describe, expect, it } from 'vitest';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTestWorker } from '#test/worker.ts';
import { countFailingWebhooksSql } from '../../apps/worker/ledger-metrics.ts';

const timeout = 60_000;
const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);

/** Returns a metric of a worker, with its labels as written; null when it is missing. */
async function read(metricsUrl: string, name: string): Promise<number | null> {
  const page = await (await fetch(`${metricsUrl}/metrics`)).text();
  const line = page.split('\n').find((each) => each.startsWith(`${name} `));
  return line === undefined ? null : Number(line.slice(name.length + 1));
}

describe('a worker’s metrics', () => {
  it('count failing, suspended and paused webhooks, and held deliveries', {
    timeout,
  }, async () => {
    const { database, owner, make } = await setupDatabase();
    const orgId = await make.organization();
    const [worn, failing, paused] = [
      await make.webhook({ orgId }),
      await make.webhook({ orgId }),
      await make.webhook({ orgId }),
    ];
    await make.webhook({ orgId }); // healthy
    for (let event = 0; event < 2; event += 1) {
      const attempts = [{ status: 500, endsSchedule: true }];
      await make.delivery({ webhook: worn, state: 'exhausted', createdAt: hoursAgo(73), attempts });
    }
    await make.delivery({ webhook: worn, state: 'running', dueAt: hoursAgo(-1) });
    await owner.pool.query('update receiver set failing_since = $2, exhausted_in_row = 2 where webhook_id = $1', [
      worn.id,
      hoursAgo(90),
    ]);
    await owner.pool.query('update receiver set failing_since = $2 where webhook_id = $1', [failing.id, hoursAgo(1)]);
    await owner.pool.query(`update webhook set state = 'paused' where id = $1`, [paused.id]);

    const { metricsUrl } = await startTestWorker(database);

    expect(await read(metricsUrl, 'org_api_webhooks{state="failing"}')).toBe(1);
    expect(await read(metricsUrl, 'org_api_webhooks{state="suspended"}')).toBe(1);
    expect(await read(metricsUrl, 'org_api_webhooks{state="paused"}')).toBe(1);
    expect(await read(metricsUrl, 'org_api_webhooks_suspended_total')).toBe(1);
    expect(await read(metricsUrl, 'org_api_ledger_held')).toBe(1);
  });

  it('count deliveries that had lost their workflow and got a new one', { timeout }, async () => {
    const { database, make } = await setupDatabase();
    const receiver = await startReceiver();
    const webhook = await make.webhook({ url: receiver.url });
    await make.delivery({ webhook, state: 'running', dueAt: new Date(Date.now() - 120_000) });

    const { metricsUrl } = await startTestWorker(database, { REQUEUE_AFTER: '1s' });

    await expect.poll(() => receiver.received.length, { timeout: 30_000 }).toBe(1);
    expect(await read(metricsUrl, 'org_api_deliveries_repaired_total{kind="late"}')).toBe(1);
  });
});

it('the metrics are computed without reading a healthy webhook', async () => {
  const { owner, make } = await setupDatabase();
  const orgId = await make.organization();
  await owner.pool.query(
    `insert into organization (id, name, slug, kind, status)
     select gen_random_uuid(), 'Many', 'many-' || n, 'law_firm', 'active' from generate_series(1, 2000) n`,
  );
  await owner.pool.query(
    `insert into webhook (organization_id, url, event_types, number)
     select o.id, 'https://hooks.example.com/', '{client.started}', s from organization o, generate_series(1, 10) s
       where o.id <> $1`,
    [orgId],
  );
  await owner.pool.query('analyze webhook, receiver');
  const { rows } = await owner.pool.query<{ 'QUERY PLAN': string }>(`explain ${countFailingWebhooksSql}`);
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).not.toContain('Seq Scan');
  expect(plan.match(/receiver_failing|webhook_(?:holding|inactive)/g)).toHaveLength(3);
});
