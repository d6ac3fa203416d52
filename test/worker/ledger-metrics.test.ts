import { Registry } from 'prom-client';
import { expect, it, onTestFinished } from 'vitest';
import { setupDatabase } from '#test/setup.ts';
import { openAs } from '#test/webhook-rows.ts';
import { ledgerMetrics } from '../../apps/worker/ledger-metrics.ts';

it('one worker reads the ledger, all show its reading, and the next one waits a hundred times as long', async () => {
  const { database, owner } = await setupDatabase();
  const blocking = await owner.pool.connect();
  await blocking.query('begin; lock table receiver in access exclusive mode');
  const databases = [await openAs(database.urls.worker, 1), await openAs(database.urls.worker, 1)];
  const workers = databases.map((worker) => {
    const registry = new Registry();
    const metrics = ledgerMetrics(worker, registry, { everyMs: 50, onError: () => {} });
    onTestFinished(() => metrics.stop());
    void metrics.start();
    return registry;
  });
  const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  await expect.poll(async () => (await owner.pool.query(waiting)).rowCount, { timeout: 10_000 }).toBe(1);
  const began = performance.now();
  await expect.poll(async () => performance.now() - began, { timeout: 10_000 }).toBeGreaterThan(200);
  expect((await owner.pool.query(waiting)).rowCount).toBe(1); // the other worker does not read
  await blocking.query('commit');
  blocking.release();
  for (const registry of workers)
    await expect.poll(() => registry.metrics(), { timeout: 10_000 }).toMatch(/^org_api_ledger_read_\w+ [1-9]/m);
  const { rows } = await owner.pool.query(
    `select extract(epoch from due_at - read_at)::float8 as pause from maintenance_step where name = 'read_ledger'`,
  );
  expect(rows[0].pause).toBeGreaterThan(100 * 0.2);
});

it('everything that is settled is rolled up before a reading, however much it is', async () => {
  const { database, owner } = await setupDatabase();
  await owner.pool.query(`
    with organization as (
      insert into organization (name, slug, kind, status) values ('Harbor', 'harbor', 'law_firm', 'active') returning id
    )
    insert into event (organization_id, id, type, created_at, body, delivery_count)
    select o.id, new_id(), 'seat.given', now() - interval '1 hour', '{}', 0 from organization o,
      generate_series(1, 20001)`);
  const metrics = ledgerMetrics(await openAs(database.urls.worker, 1), new Registry(), {
    onError: (cause) => expect.fail(String(cause)),
  });
  onTestFinished(() => metrics.stop());
  await metrics.start();
  expect(await owner.pool.query('select from event where not rolled_up')).toMatchObject({ rowCount: 0 });
});

it('a roll-up that fails is repeated soon, however long it took', async () => {
  const { database, owner } = await setupDatabase();
  const blocking = await owner.pool.connect();
  await blocking.query('begin; lock table ledger_day in access exclusive mode');
  const registry = new Registry();
  const metrics = ledgerMetrics(await openAs(database.urls.worker, 1), registry, { everyMs: 50, onError: () => {} });
  onTestFinished(() => metrics.stop());
  void metrics.start();
  const waiting = `from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  const waited = async () =>
    (await owner.pool.query(`select ${waiting} and query_start < now() - interval '0.5 s'`)).rowCount;
  await expect.poll(waited, { timeout: 10_000 }).toBe(1);
  await owner.pool.query(`select pg_terminate_backend(pid) ${waiting}`);
  await blocking.query('commit');
  blocking.release();
  await expect.poll(() => registry.metrics(), { timeout: 10_000 }).toMatch(/^org_api_ledger_read_\w+ [1-9]/m);
});

it('the metrics show the ledger with the worker’s own login, and keep the last values while the database is down', async () => {
  const { database, owner, make } = await setupDatabase();
  const professional = await make.member();
  const worker = await openAs(database.urls.worker, 1);
  const registry = new Registry();
  const errors: unknown[] = [];
  const metrics = ledgerMetrics(worker, registry, { everyMs: 50, onError: (cause) => errors.push(cause) });
  onTestFinished(() => metrics.stop());
  const figure = async (name: string) =>
    new RegExp(`^org_api_ledger_${name} (\\S+)$`, 'm').exec(await registry.metrics())?.[1];
  const readAgain = () => owner.pool.query('update maintenance_step set due_at = now()');
  await metrics.start();
  expect(await figure('difference')).toBe('0');

  await owner.pool.query(
    `insert into webhook (organization_id, url, event_types, number)
      values ($1, 'https://receiver.example/', '{client.started}', 1)`,
    [professional.orgId],
  );
  await make.grant({ professional });
  await readAgain();
  await expect.poll(() => figure('waiting'), { timeout: 10_000 }).toBe('1');
  await owner.pool.query('delete from delivery');
  await readAgain();
  await expect.poll(() => figure('difference'), { timeout: 10_000 }).toBe('1');

  await owner.pool.query('alter table delivery rename to elsewhere');
  await readAgain();
  await expect.poll(() => errors.length, { timeout: 10_000 }).toBeGreaterThan(0);
  expect(await figure('difference')).toBe('1');
  await metrics.stop();
  await metrics.stop();
});
