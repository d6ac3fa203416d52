/** Deliveries settled long ago are deleted in bounded batches, and the ledger stays balanced. */
import { describe, expect, it } from 'vitest';
import { listLedgerFaults, readLedger, rollUpLedger } from '#domain/webhooks/ledger.ts';
import { purgeBatchSize } from '#domain/webhooks/limits.ts';
import { purgeDeliveriesSql } from '#domain/webhooks/retention.ts';
import { setupDatabase } from '#test/setup.ts';
import { insertSettled, openAs, openPool } from '#test/webhook-rows.ts';

const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);
const attempts = { delivered: [{ status: 204 }], exhausted: [{ status: 500 }, { status: 500, endsSchedule: true }] };

/**
 * A webhook, and a purge with the worker's login. Before it purges, it rolls up everything that may
 * be rolled up.
 */
async function setupRetention() {
  const { database, owner, make } = await setupDatabase();
  const { pool } = owner;
  const worker = await openAs(database.urls.worker, 2);
  const webhook = await make.webhook();
  const rollUp = async () => {
    let moved: { deliveries: number; events: number };
    do moved = await rollUpLedger(worker, { settledForSeconds: 0 });
    while (moved.deliveries + moved.events > 0);
  };
  return {
    database,
    pool,
    worker,
    make,
    webhook,
    rollUp,
    /** A settled delivery whose event and settlement are the given numbers of days old. */
    settled: (state: 'delivered' | 'exhausted', days: number) =>
      make.delivery({ webhook, state, createdAt: daysAgo(days), settledAt: daysAgo(days), attempts: attempts[state] }),
    read: () => readLedger(worker),
    async purge(atMost = 100, days = 90): Promise<{ deliveries: number; events: number }> {
      const { rows } = await worker.pool.query(purgeDeliveriesSql, [days, atMost]);
      return rows[0];
    },
    async left() {
      const { rows } = await pool.query<Record<'events' | 'deliveries' | 'attempts', number>>(
        `select (select count(*) from event)::int as events, (select count(*) from delivery)::int as deliveries,
           (select count(*) from delivery_attempt)::int as attempts`,
      );
      return rows[0];
    },
    async ids(): Promise<string[]> {
      const { rows } = await pool.query<{ event_id: string }>('select event_id from delivery order by event_id');
      return rows.map(({ event_id }) => event_id);
    },
  };
}

describe('purging deliveries', () => {
  it('deletes what was settled before the retention with its attempts and events, and leaves newer, open and held deliveries and the ledger', async () => {
    const t = await setupRetention();
    await t.settled('delivered', 91);
    await t.settled('exhausted', 200);
    const kept = [
      await t.settled('delivered', 89),
      await t.make.delivery({ webhook: t.webhook, createdAt: daysAgo(400) }),
      await t.make.delivery({ webhook: t.webhook, createdAt: daysAgo(400), dueAt: daysAgo(-1) }),
      // Its event is old, and it was exhausted recently.
      await t.make.delivery({
        webhook: t.webhook,
        state: 'exhausted',
        createdAt: daysAgo(120),
        settledAt: daysAgo(10),
        attempts: attempts.exhausted,
      }),
    ];
    await t.rollUp();
    const before = await t.read();
    expect(before).toMatchObject({ required: 6, delivered: 2, exhausted: 2, waiting: 2, held: 0, difference: 0 });

    expect(await t.purge()).toEqual({ deliveries: 2, events: 2 });

    expect(await t.ids()).toEqual(kept.sort());
    expect(await t.left()).toEqual({ events: 4, deliveries: 4, attempts: 3 });
    expect(await t.read()).toEqual(before);
    await t.rollUp();
    expect(await t.read()).toEqual(before);
    expect(await listLedgerFaults(t.worker, { everything: true })).toEqual([]);

    expect(await t.purge()).toEqual({ deliveries: 0, events: 0 });
    expect(await t.left()).toEqual({ events: 4, deliveries: 4, attempts: 3 });
    expect(await t.read()).toEqual(before);
  });

  it('works in bounded parts, oldest first, each of which leaves the ledger correct with one row a day at most', async () => {
    const t = await setupRetention();
    for (let day = 100; day < 125; day += 1) await t.settled(day % 2 === 0 ? 'delivered' : 'exhausted', day);
    await t.rollUp();
    const before = await t.read();
    const days = async () => (await t.pool.query('select from ledger_day')).rowCount;
    const newest = (await t.ids()).at(-1);

    expect(await t.purge(10)).toEqual({ deliveries: 10, events: 10 });
    expect(await t.read()).toEqual(before);
    expect(await t.ids()).toContain(newest);
    expect(await t.purge(10)).toEqual({ deliveries: 10, events: 10 });
    expect(await t.purge(10)).toEqual({ deliveries: 5, events: 5 });
    expect(await t.purge(10)).toEqual({ deliveries: 0, events: 0 });
    expect(await t.left()).toEqual({ events: 0, deliveries: 0, attempts: 0 });
    expect(await t.read()).toEqual(before);
    expect(await days()).toBe(25);
  });

  it('keeps an event until its last delivery is settled, and counts the deleted deliveries', async () => {
    const t = await setupRetention();
    const eventId = await t.settled('delivered', 100);
    const other = await t.make.webhook({ orgId: t.webhook.orgId });
    await t.pool.query(
      `insert into delivery (organization_id, webhook_id, event_id, state, due_at, created_at)
        values ($1, $2, $3, 'queued', $4, $4)`,
      [t.webhook.orgId, other.id, eventId, daysAgo(100)],
    );
    await t.pool.query('update event set delivery_count = 2');
    await t.rollUp();
    const before = await t.read();
    expect(before).toMatchObject({ required: 2, delivered: 1, waiting: 1, difference: 0, missing: 0, surplus: 0 });

    expect(await t.purge()).toEqual({ deliveries: 1, events: 0 });

    expect(await t.left()).toEqual({ events: 1, deliveries: 1, attempts: 0 });
    expect(await t.read()).toEqual(before);
    expect(await listLedgerFaults(t.worker, { everything: true })).toEqual([]);
    await t.rollUp();
    expect(await t.purge()).toEqual({ deliveries: 0, events: 0 });
    expect(await t.read()).toEqual(before);
  });

  it('deletes events without a subscription, and deliveries whose webhook was deleted', async () => {
    const t = await setupRetention();
    const { orgId } = t.webhook;
    for (const days of [100, 80])
      await t.pool.query(
        `insert into event (organization_id, id, type, created_at, body, delivery_count)
          values ($1, gen_random_uuid(), 'seat.given', $2, '{}', 0)`,
        [orgId, daysAgo(days)],
      );
    await t.make.delivery({ webhook: t.webhook, state: 'cancelled', createdAt: daysAgo(95), settledAt: daysAgo(95) });
    await t.pool.query(`insert into audit_entry (organization_id, action, detail) values ($1, 'webhook.delete', $2)`, [
      orgId,
      { webhookId: t.webhook.id },
    ]);
    await t.rollUp();
    const before = await t.read();
    expect(before).toMatchObject({ required: 1, cancelled: 1, difference: 0 });

    expect(await t.purge()).toEqual({ deliveries: 1, events: 2 });
    expect(await t.left()).toEqual({ events: 1, deliveries: 0, attempts: 0 });
    expect(await t.read()).toEqual(before);
  });

  it('leaves deliveries that the ledger has not verified', async () => {
    const t = await setupRetention();
    const unproven = await t.settled('delivered', 100);
    await t.pool.query('delete from delivery_attempt');
    const tooMany = await t.settled('delivered', 100);
    await t.pool.query('update event set delivery_count = 3 where id = $1', [tooMany]);
    const gone = await t.settled('delivered', 100);
    await t.rollUp();
    await t.pool.query('delete from delivery_attempt where event_id = $1', [gone]);
    await t.pool.query('delete from delivery where event_id = $1', [gone]);
    const before = await t.read();
    expect(before).toMatchObject({ difference: 4, missing: 4 });

    expect(await t.purge()).toEqual({ deliveries: 0, events: 0 });
    expect(await t.ids()).toEqual([unproven, tooMany].sort());
    expect(await t.read()).toEqual(before);
  });

  it('keeps the ledger correct at every moment while others roll up and read deliveries', async () => {
    const t = await setupRetention();
    for (let day = 0; day < 40; day += 1) await t.settled('delivered', 100 + (day % 4));
    const expected = { required: 40, delivered: 40, difference: 0, missing: 0, surplus: 0 };
    let working = true;
    const reader = await openAs(t.database.urls.worker, 2);
    const others = [
      (async () => {
        while (working) await rollUpLedger(reader, { settledForSeconds: 0, atMost: 3 });
      })(),
      (async () => {
        while (working) expect(await readLedger(reader)).toMatchObject(expected);
      })(),
    ];
    let events = 0;
    while (events < 40) events += (await t.purge(7)).events;
    working = false;
    await Promise.all(others);
    expect(await t.read()).toMatchObject(expected);
    expect(await t.left()).toEqual({ events: 0, deliveries: 0, attempts: 0 });
  });

  it('deletes 5,000 deliveries in one statement, each row once', async () => {
    const t = await setupRetention();
    const { pool, webhook } = t;
    await insertSettled(pool, webhook, purgeBatchSize + 1);
    await t.rollUp();
    const before = await t.read();
    const client = await pool.connect();
    const written = async () => {
      const { rows } = await client.query<{ rows: number }>(
        `select sum(n_tup_ins + n_tup_upd + n_tup_del)::int as rows from pg_stat_xact_user_tables
         where relname in ('event', 'delivery', 'delivery_attempt', 'ledger_day', 'ledger_count')`,
      );
      return rows[0]?.rows ?? 0;
    };
    await client.query('begin');
    const writtenBefore = await written();
    await client.query('select * from purge_deliveries($1, $2)', [90, purgeBatchSize]);
    const writes = (await written()) - writtenBefore;
    await client.query('commit');
    client.release();

    // An attempt, a delivery and an event each, and a few sums.
    expect(writes).toBeGreaterThanOrEqual(3 * purgeBatchSize);
    expect(writes).toBeLessThan(3 * purgeBatchSize + 50);
    expect(await t.left()).toEqual({ events: 1, deliveries: 1, attempts: 1 });
    expect(await t.read()).toEqual(before);
    expect(before.unexplained).toBe(0);
  });

  it('is rejected for less than 31 days and for the console’s login, and the worker’s login cannot delete directly', async () => {
    const t = await setupRetention();
    const numbers = ['30', '0', '-1', '-2147483648', '2147483647', 'null'];
    for (const days of [...numbers, `interval '-1200 months 36090 days'`, `'infinity'`])
      await expect(t.worker.pool.query(`select purge_deliveries(${days}, 10)`), days).rejects.toMatchObject({
        code: expect.toBeOneOf(['22023', '22003', '22008', '22P02', '42883']),
      });
    await expect(t.purge(100, 30)).rejects.toMatchObject({ code: '22023' });
    const console = openPool(t.database.urls.console, 1);
    await expect(console.query(purgeDeliveriesSql, [90, 10])).rejects.toMatchObject({ code: '42501' });
    await expect(t.worker.pool.query('delete from delivery')).rejects.toMatchObject({ code: '42501' });
  });

  it('deletes no delivery that was created within the retention, also when the worker backdates its settlement', async () => {
    const t = await setupRetention();
    await t.settled('delivered', 89);
    await t.rollUp();
    await t.worker.pool.query(`update delivery set settled_at = settled_at - interval '10 years'`);
    await t.rollUp();
    expect(await t.purge()).toEqual({ deliveries: 0, events: 0 });
    expect(await t.left()).toEqual({ events: 1, deliveries: 1, attempts: 1 });
  });
});
