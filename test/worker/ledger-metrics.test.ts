import { Registry } from 'prom-client';
import { expect, it, onTestFinished } from 'vitest';
import { setupDatabase } from '#test/setup.ts';
import { ledgerMetrics } from '../../apps/worker/ledger-metrics.ts';
import { openPool } from '../domain/webhooks/webhook-rows.ts';

it('the metrics show the ledger with the worker’s own login, and keep the last values while the database is down', async () => {
  const { database, owner, make } = await setupDatabase();
  const professional = await make.member();
  const pool = openPool(database.urls.worker, 1);
  const registry = new Registry();
  const errors: unknown[] = [];
  const metrics = ledgerMetrics(pool, registry, { everyMs: 50, onError: (cause) => errors.push(cause) });
  onTestFinished(() => metrics.stop());
  const figure = async (name: string) =>
    new RegExp(`^org_api_ledger_${name} (\\S+)$`, 'm').exec(await registry.metrics())?.[1];
  await metrics.start();
  expect(await figure('difference')).toBe('0');

  await owner.pool.query(
    `insert into webhook (organization_id, url, event_types, slot)
      values ($1, 'https://receiver.example/', '{client.started}', 1)`,
    [professional.orgId],
  );
  await make.grant({ professional });
  await expect.poll(() => figure('waiting'), { timeout: 10_000 }).toBe('1');
  await owner.pool.query('delete from delivery');
  await expect.poll(() => figure('difference'), { timeout: 10_000 }).toBe('1');

  await owner.pool.query('alter table delivery rename to elsewhere');
  await expect.poll(() => errors.length, { timeout: 10_000 }).toBeGreaterThan(0);
  expect(await figure('difference')).toBe('1');
  await metrics.stop();
  await metrics.stop();
});
