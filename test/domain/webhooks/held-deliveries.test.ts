/**
 * Suspending and resuming write one row, and deliveries of a suspended webhook do not slow down
 * other webhooks.
 */
import { describe, expect, it, onTestFinished } from 'vitest';
import { claimDeliveriesSql, listQueuedSql } from '#delivery/sql/claim.ts';
import { repairDeliveriesSql } from '#delivery/sql/repair.ts';
import { requeueHeldSql } from '#delivery/sql/requests.ts';
import { suspendWebhooksSql } from '#delivery/sql/suspend.ts';
import { openDatabase } from '#domain/open-database.ts';
import { deliveriesPerStatement } from '#domain/webhooks/limits.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { countTouched } from './plans.ts';
import { setupWebhooks } from './subscriptions.ts';

const deliveries = 50_000;
const nil = '00000000-0000-0000-0000-000000000000';
const everything = [nil, nil, 100];

/** `$1` organization, `$2` webhook, `$3` number, `$4` whether every second one sleeps. */
const insertManySql = `
  with made as (select new_id() as id, n from generate_series(1, $3::integer) n), e as (
    insert into event (organization_id, id, type, created_at, body, delivery_count)
    select $1::uuid, id, 'seat.given', now() - interval '1 hour', '{}', 1 from made
  )
  insert into delivery (organization_id, webhook_id, event_id, state, due_at, created_at)
  select $1, $2::uuid, id, case when n % 2 = 0 and $4 then 'running' else 'queued' end,
    now() + case when n % 2 = 0 and $4 then interval '1 hour' else interval '-1 hour' end,
    now() - make_interval(hours => 1 + (n + 1) % 2) from made`;

/** A webhook with many open deliveries, of which half sleep, beside a webhook without one. */
async function setupMany() {
  const t = await setupWebhooks();
  const many = await t.make.webhook({ orgId: t.organizationId });
  await t.rows(insertManySql, [t.organizationId, many.id, deliveries, true]);
  await t.rows('analyze');
  const other = await t.make.webhook({ orgId: t.organizationId });
  const touched = (text: string, values: unknown[]) => countTouched(t.owner.pool, text, values);
  /** The same with a limit that has the proportion to this table that the real one has to one of millions. */
  const few = (text: string, values: unknown[]) => {
    const changed = text.replaceAll(`limit ${deliveriesPerStatement}`, 'limit 20');
    return countTouched(t.owner.pool, changed, values, { seqScans: true });
  };
  const claim = [[t.organizationId, t.organizationId], [many.id, other.id], 200, 200, 10];
  return { ...t, many, other, touched, few, claim };
}

describe('a webhook with 50,000 open deliveries', () => {
  it('is paused, suspended and resumed without an update of their rows', async () => {
    const t = await setupMany();
    const versions = async () =>
      (await t.rows(`select md5(string_agg(ctid::text || xmin::text, ',' order by event_id)) as all from delivery`))[0];
    const before = await versions();
    expect(await t.pause(t.many.id)).toEqual({ state: 'paused', deliveries: 10_000 }); // counts stop here
    expect(await t.show(t.many.id)).toMatchObject({ state: 'paused', deliveries: { waiting: 0, held: deliveries } });
    await t.resume(t.many.id);
    expect(await t.show(t.many.id)).toMatchObject({ state: 'active', deliveries: { waiting: deliveries, held: 0 } });
    await t.rows(
      `update receiver set failing_since = now() - interval '9 days', exhausted_in_row = 2 where webhook_id = $1`,
      [t.many.id],
    );
    expect((await t.touched(suspendWebhooksSql, [100])).written).toMatchObject({ webhook: 1 });
    expect(await t.show(t.many.id)).toMatchObject({ suspendedReason: 'failures', deliveries: { held: deliveries } });
    expect(await versions()).toEqual(before);
  });

  it('is skipped while it is paused: polling, claiming and repairing read a few rows', async () => {
    const t = await setupMany();
    await t.pause(t.many.id);
    expect(await t.rows(listQueuedSql, everything)).toMatchObject([{ webhookId: t.many.id, state: 'paused' }]);
    await t.make.delivery({ webhook: t.other });
    await t.make.delivery({ webhook: t.other, state: 'running', dueAt: new Date(Date.now() - 600_000) });

    expect((await t.touched(listQueuedSql, everything)).read).toBeLessThan(20);
    const claimed = await t.touched(claimDeliveriesSql, t.claim);
    expect(claimed.written).toMatchObject({ delivery: 1, slot: 1 });
    expect(claimed.read).toBeLessThan(200);
    const repaired = await t.few(repairDeliveriesSql, [16, 60, [5_000]]);
    expect(repaired.written).toMatchObject({ delivery: 1 });
    expect(repaired.read).toBeLessThan(50);
  });

  it('is requeued in bounded steps while it is paused, and its claim after the resume reads a few rows', async () => {
    const t = await setupMany();
    await t.pause(t.many.id);
    const requeued = await t.few(requeueHeldSql, []);
    expect(requeued.written).toMatchObject({ delivery: 20 });
    expect(requeued.read).toBeLessThan(400);
    await t.resume(t.many.id);
    expect((await t.touched(claimDeliveriesSql, t.claim)).read).toBeLessThan(1_000);
  });
});

describe('a claim that was planned while hardly anything was waiting', () => {
  it.each([
    ['in a small table', 500, 0],
    ['after many others were settled, which leaves empty pages in the indexes', 100_000, 2],
  ])('reads a few rows once thousands are queued, %s', async (_, settledBefore, stillWaiting) => {
    const t = await setupWebhooks();
    await t.rows('alter table delivery set (autovacuum_enabled = false)'); // an analyze would create a new plan
    const webhooks = await Promise.all([1, 2, 3].map(() => t.make.webhook({ orgId: t.organizationId })));
    const [settled, ...queued] = webhooks.map(({ id }) => id);
    await t.rows(insertManySql, [t.organizationId, settled, settledBefore, false]);
    await t.rows(
      `update delivery set state = 'cancelled', settled_at = now(), due_at = null
       where event_id not in (select event_id from delivery order by event_id desc limit $1)`,
      [stillWaiting],
    );
    await t.rows('vacuum (analyze) delivery');

    const { pool: relay, close } = await openDatabase({
      server: parsePostgresUrl(t.database.urls.worker),
      applicationName: 'test',
      poolMax: 1, // plans belong to their connection
    });
    onTestFinished(close);
    await relay.query(`set plan_cache_mode = 'force_generic_plan'`);
    if (settledBefore < 10_000) await relay.query('set enable_seqscan = off'); // as for a large table
    await relay.query(`prepare list (uuid, uuid, integer) as ${listQueuedSql}`);
    const runList = `execute list ('${nil}', '${nil}', 512)`;
    const claim = [webhooks.map(() => t.organizationId), webhooks.map(({ id }) => id), 10, 10, 10];
    await relay.query(claimDeliveriesSql, claim);
    await relay.query(runList);
    for (const id of queued) await t.rows(insertManySql, [t.organizationId, id, 5_000, false]);

    expect((await countTouched(relay, runList, [])).read).toBeLessThan(50);
    const claimed = await countTouched(relay, claimDeliveriesSql, claim);
    expect(claimed.read).toBeLessThan(500);
    expect(claimed.written.delivery).toBeGreaterThan(5);
  });
});
