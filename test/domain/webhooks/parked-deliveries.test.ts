/**
 * Suspending and resuming write one row, and deliveries of a suspended webhook do not slow down
 * other webhooks.
 */
import { describe, expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '#domain/db/connect.ts';
import { claimDeliveriesSql, listOverdueSql, listUnclaimedSql } from '#domain/db/statements/claim-deliveries.ts';
import { restartDeliveriesSql, suspendFailingWebhooksSql } from '#domain/db/statements/park-webhooks.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { claimValues } from '#test/claim.ts';
import { type Plan, planOf, rowsRead } from './plans.ts';
import { setupWebhooks } from './subscriptions.ts';

const deliveries = 50_000;
const nil = '00000000-0000-0000-0000-000000000000';

/**
 * A webhook with many open deliveries, half of them started and all of them late, beside a webhook
 * with one new delivery.
 */
async function setupMany() {
  const t = await setupWebhooks();
  const many = await t.make.webhook({ orgId: t.organizationId });
  await t.rows(insertManySql, [t.organizationId, many.id, deliveries, true]);
  await t.rows('analyze event, delivery, webhook');
  const other = await t.make.webhook({ orgId: t.organizationId });
  const explain = (text: string, values: unknown[]) => planOf(t.owner.pool, text, values);
  return { ...t, many, other, explain };
}

/** `$1` organization, `$2` webhook, `$3` number, `$4` whether every second one is started. */
const insertManySql = `
  with made as (select new_id() as id, n from generate_series(1, $3::integer) n), e as (
    insert into event (organization_id, id, type, created_at, body, delivery_count)
    select $1::uuid, id, 'seat.given', now() - interval '1 hour', '{}', 1 from made
  )
  insert into delivery (organization_id, webhook_id, event_id, state, next_attempt_at, created_at, started)
  select $1, $2::uuid, id, 'waiting', now() - interval '1 hour',
    now() - make_interval(hours => 1 + (n + 1) % 2), n % 2 = 0 and $4 from made`;

/** Returns the number of rows that a plan wrote, by table. */
function rowsWritten(plan: Plan): Record<string, number> {
  const own = plan['Node Type'] === 'ModifyTable' ? { [plan['Relation Name'] ?? '']: writtenBy(plan) } : {};
  return Object.assign(own, ...(plan.Plans ?? []).map(rowsWritten));
}

const writtenBy = ({ Plans = [] }: Plan): number =>
  Plans.reduce((sum, part) => sum + (part['Parent Relationship'] === 'Outer' ? part['Actual Rows'] : 0), 0);

describe('a webhook with 50,000 open deliveries', () => {
  it('is paused, suspended and resumed without an update of their rows', async () => {
    const t = await setupMany();
    const versions = async () =>
      (await t.rows(`select md5(string_agg(ctid::text || xmin::text, ',' order by event_id)) as all from delivery`))[0];
    const before = await versions();
    expect(await t.pause(t.many.id)).toEqual({ deliveries: 10_000 }); // counts stop here
    expect(await t.show(t.many.id)).toMatchObject({ state: 'parked', deliveries: { waiting: 0, parked: deliveries } });
    await t.resume(t.many.id);
    expect(await t.show(t.many.id)).toMatchObject({ state: 'active', deliveries: { waiting: deliveries, parked: 0 } });
    await t.rows(
      `update webhook set failing_since = now() - interval '9 days', failing_seconds = 700000, has_failed_twice = true,
         last_failed_at = now() where id = $1`,
      [t.many.id],
    );
    expect(rowsWritten(await t.explain(suspendFailingWebhooksSql, [100, 100]))).toMatchObject({ webhook: 1 });
    expect(await t.show(t.many.id)).toMatchObject({ parkedReason: 'failing', deliveries: { parked: deliveries } });
    expect(await versions()).toEqual(before);
  });

  it('is skipped while it is parked: claiming and repairing read a few rows', async () => {
    const t = await setupMany();
    await t.pause(t.many.id);
    const everything = [nil, nil, 100, true];
    expect(await t.rows(listUnclaimedSql, everything)).toMatchObject([{ webhookId: t.many.id, isActive: false }]);
    await t.make.delivery({ webhook: t.other });
    await t.make.delivery({ webhook: t.other, started: true, nextAttemptAt: new Date(Date.now() - 600_000) });

    const claim = await t.explain(claimDeliveriesSql, await claimValues(t.owner.pool));
    expect(rowsRead(claim)).toBeLessThan(200);
    const polled = await t.explain(listUnclaimedSql, everything);
    expect(rowsRead(polled)).toBeLessThan(20);
    const overdue = await t.explain(listOverdueSql, [60, 200, nil, nil, '-infinity', nil]);
    expect(rowsRead(overdue)).toBeLessThan(50);
    expect(await t.rows(listOverdueSql, [60, 200, nil, nil, '-infinity', nil])).toHaveLength(1);
  });

  it('updates after its resume only the deliveries that are about to be claimed', async () => {
    const t = await setupMany();
    await t.pause(t.many.id);
    await t.resume(t.many.id);
    const first = await t.explain(restartDeliveriesSql, [100]);
    expect(rowsWritten(first)).toMatchObject({ delivery: 100 });
    expect(rowsRead(first)).toBeLessThan(2_000);
    expect(rowsWritten(await t.explain(restartDeliveriesSql, [100]))).toMatchObject({ delivery: 0 });
    expect(rowsRead(await t.explain(claimDeliveriesSql, await claimValues(t.owner.pool)))).toBeLessThan(1_000);
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
      `update delivery set state = 'cancelled', settled_at = now(), next_attempt_at = null
       where event_id not in (select event_id from delivery order by event_id desc limit $1)`,
      [stillWaiting],
    );
    await t.rows('vacuum (analyze) delivery');

    const { pool: relay, close } = await openDatabase({
      server: parsePostgresUrl(t.database.urls.worker),
      applicationName: 'test',
      poolMax: 1, // prepared statements belong to their connection
    });
    onTestFinished(close);
    await relay.query(`set plan_cache_mode = 'force_generic_plan'`);
    if (settledBefore < 10_000) await relay.query('set enable_seqscan = off'); // as for a large table
    await relay.query(`prepare claim (integer, integer, integer, uuid[], uuid[]) as ${claimDeliveriesSql}`);
    await relay.query(`prepare list (uuid, uuid, integer, boolean) as ${listUnclaimedSql}`);
    const organizations = webhooks.map(() => t.organizationId).join();
    const runClaim = `execute claim (10, 10, 15, '{${organizations}}', '{${webhooks.map(({ id }) => id).join()}}')`;
    const runList = `execute list ('${nil}', '${nil}', 512, false)`;
    await relay.query(runClaim);
    await relay.query(runList);
    for (const id of queued) await t.rows(insertManySql, [t.organizationId, id, 5_000, false]);

    const explain = async (text: string) => planOf(relay, text, []);
    expect(rowsRead(await explain(runList))).toBeLessThan(50);
    const claim = await explain(runClaim);
    expect(rowsRead(claim)).toBeLessThan(500);
    expect(rowsWritten(claim).delivery).toBeGreaterThan(5);
  });
});
