import { describe, expect, it, onTestFinished } from 'vitest';
import { deleteWebhook, pauseWebhook, resumeWebhook } from '#delivery/requests.ts';
import { redeliverOneSql } from '#delivery/sql/requests.ts';
import { listLedgerFaults, readLedger, rollUpLedger } from '#domain/webhooks/ledger.ts';
import { readLedgerSql } from '#domain/webhooks/ledger-statements.ts';
import { getWebhook } from '#domain/webhooks/list.ts';
import { type Attempt, Engine, lostRepeats, type Run, scheduleAttempts } from '#test/delivery-engine.ts';
import { openAs, setupWebhooks } from '#test/webhook-rows.ts';
import { type RegionState, readRegionStateSql } from '../../../apps/operator/region/state.ts';

/**
 * An organization with 10 events for 2 webhooks: 20 deliveries. `settled` settles the ten of the
 * first webhook: 3 delivered at once, 2 delivered after a failure, 2 exhausted by a failure, 1
 * exhausted by a lost worker, 2 still waiting. The second webhook is deleted, so its ten are
 * cancelled.
 */
async function setupLedger({ settled = true } = {}) {
  const world = await setupWebhooks();
  const { pool, database } = world;
  const orgId = await world.make.organization();
  const [webhookId, otherId] = [await world.rows.webhook({ orgId }), await world.rows.webhook({ orgId })];
  await world.rows.grants(orgId, 10);
  const worker = await openAs(database.urls.worker, 3);
  const eventIds = (await world.rows.deliveries(webhookId)).map(({ event_id }) => event_id);

  const engine = new Engine(database, world.owner);
  onTestFinished(() => engine.worker.end());

  /** Makes an attempt, due now: the last one of the schedule when it is to exhaust it. */
  async function attempt(eventId: string | undefined, ends: 'delivered' | 'exhausted' | 'waiting' | 'lost') {
    const before = {
      exhausted: scheduleAttempts - 1,
      lost: scheduleAttempts + lostRepeats - 1,
      waiting: 0,
      delivered: 0,
    };
    const { rows } = await pool.query<Run>(
      `update delivery set state = 'running', run = run + 1, due_at = clock_timestamp(), failures = $3
       where webhook_id = $1 and event_id = $2 and state in ('queued', 'running')
       returning organization_id as "organizationId", webhook_id as "webhookId", event_id as "eventId", run`,
      [webhookId, eventId, before[ends]],
    );
    const admitted = await engine.admit(rows[0] as Run);
    if (ends !== 'lost') await engine.record(admitted, { outcome: ends === 'delivered' ? 'delivered' : 'failed' });
    else {
      await pool.query(`update slot set until = now() - interval '1 second' where event_id = $1`, [eventId]);
      await engine.repair();
    }
    return admitted;
  }

  let lost: Attempt | null = null;
  if (settled) {
    for (const eventId of eventIds.slice(0, 3)) await attempt(eventId, 'delivered');
    for (const eventId of eventIds.slice(3, 5)) {
      await attempt(eventId, 'waiting');
      await attempt(eventId, 'delivered');
    }
    for (const eventId of eventIds.slice(5, 7)) await attempt(eventId, 'exhausted');
    lost = await attempt(eventIds[7], 'lost');
    await deleteWebhook(world.owner, { organizationId: orgId, webhookId: otherId, by: 'orgctl' });
  }
  return {
    ...world,
    orgId,
    webhookId,
    otherId,
    eventIds,
    worker,
    engine,
    lost,
    attempt,
    read: () => readLedger(worker),
    faults: () => listLedgerFaults(worker),
    /** Rolls up everything that may be rolled up now. */
    rollUp: () => rollUpLedger(worker, { settledForSeconds: 0 }),
  };
}

const whole = {
  required: 20,
  delivered: 5,
  waiting: 2,
  held: 0,
  exhausted: 3,
  cancelled: 10,
  difference: 0,
  missing: 0,
  surplus: 0,
  overdue: 0,
  stuck: 0,
  unexplained: 0,
};

describe('the ledger', () => {
  it('is all zero in a new installation', async () => {
    const { owner } = await setupWebhooks();
    const zeros = Object.fromEntries(Object.keys(whole).map((figure) => [figure, 0]));
    expect(await readLedger(owner)).toEqual(zeros);
    expect(await rollUpLedger(owner)).toEqual({ deliveries: 0, events: 0 });
  });

  it('balances for every outcome of a delivery, before and after it is rolled up', async () => {
    const { read, faults, rollUp, pool } = await setupLedger();
    expect(await read()).toEqual(whole);

    expect(await rollUp()).toEqual({ deliveries: 18, events: 10 });
    expect(await read()).toEqual(whole);
    expect(await rollUp()).toEqual({ deliveries: 0, events: 0 });
    expect(await faults()).toEqual([]);
    const { rows } = await pool.query('select count(*)::int as days from ledger_day');
    expect(rows).toEqual([{ days: 1 }]);
  });

  it('counts held deliveries as open, and reports which deliveries of active webhooks are late', async () => {
    const { read, orgId, webhookId, pool, owner } = await setupLedger();
    const request = { organizationId: orgId, webhookId, by: 'orgctl' as const };
    await pool.query(`update delivery set due_at = now() - interval '61 seconds' where due_at is not null`);
    expect(await read()).toMatchObject({ waiting: 2, overdue: 2, difference: 0 });

    await pauseWebhook(owner, request);
    expect(await read()).toEqual({ ...whole, waiting: 0, held: 2 });
    await resumeWebhook(owner, request);
    expect(await read()).toMatchObject({ waiting: 2, held: 0, overdue: 2, difference: 0 });
  });

  it.each([false, true])('follows a redelivery and its end (rolled up before: %s)', async (rolledUp) => {
    const { read, rollUp, attempt, orgId, webhookId, eventIds, worker, faults } = await setupLedger();
    if (rolledUp) await rollUp();
    const [delivered, exhausted] = [eventIds[0], eventIds[5]];

    await worker.pool.query(redeliverOneSql, [orgId, webhookId, delivered]);
    await worker.pool.query(redeliverOneSql, [orgId, webhookId, exhausted]);
    expect(await read()).toEqual({ ...whole, delivered: 4, exhausted: 2, waiting: 4 });
    await rollUp();
    expect(await read()).toEqual({ ...whole, delivered: 4, exhausted: 2, waiting: 4 });

    await attempt(delivered, 'exhausted');
    await attempt(exhausted, 'delivered');
    expect(await read()).toEqual(whole);
    await rollUp();
    expect(await read()).toEqual(whole);
    expect(await faults()).toEqual([]);
  });

  it('follows a late 2xx for a delivery that was exhausted and rolled up', async () => {
    const { read, rollUp, engine, lost } = await setupLedger();
    await rollUp();
    await engine.record(lost as Attempt, { outcome: 'delivered' });
    const after = { ...whole, delivered: 6, exhausted: 2 };
    expect(await read()).toEqual(after);
    await rollUp();
    expect(await read()).toEqual(after);
  });

  it('balances when retention deletes old deliveries, rolled up or not', async () => {
    const { read, rollUp, pool, eventIds } = await setupLedger();
    const [first, second] = eventIds;
    const forget = async (eventId: string | undefined) => {
      for (const table of ['delivery_attempt', 'delivery'])
        await pool.query(`delete from ${table} where event_id = $1`, [eventId]);
      await pool.query('delete from event where id = $1', [eventId]);
    };
    await forget(first);
    expect(await read()).toMatchObject({ required: 18, difference: 0 });
    await rollUp();
    await forget(second);
    expect(await read()).toMatchObject({ required: 16, delivered: 3, cancelled: 8, difference: 0 });
    await rollUp();
    expect(await read()).toMatchObject({ required: 16, difference: 0 });
  });

  it('balances at every moment while three processes settle, redeliver and roll up deliveries', async () => {
    const { read, rollUp, attempt, worker, orgId, webhookId, eventIds } = await setupLedger({ settled: false });
    let working = true;
    const rolling = Array.from({ length: 3 }, async () => {
      while (working) await rollUp();
    });
    const differences = new Set<number>();
    const reading = (async () => {
      while (working) differences.add((await read()).difference);
    })();
    for (let turn = 0; turn < 4; turn += 1) {
      for (const [index, eventId] of eventIds.entries()) {
        await attempt(eventId, index % 2 === turn % 2 ? 'delivered' : 'exhausted');
        if (index % 3 !== 0 || turn < 3) await worker.pool.query(redeliverOneSql, [orgId, webhookId, eventId]);
      }
    }
    working = false;
    await Promise.all([...rolling, reading]);

    expect([...differences]).toEqual([0]);
    expect(await read()).toMatchObject({ required: 20, waiting: 16, difference: 0 });
  });
});

describe('a late delivery', () => {
  /**
   * Ten attempts in progress at a receiver that hangs, and thirty late deliveries of the same
   * webhook.
   */
  async function setupHanging() {
    const world = await setupWebhooks();
    const { pool, database } = world;
    const worker = await openAs(database.urls.worker, 1);
    const orgId = await world.make.organization();
    const webhookId = await world.rows.webhook({ orgId });
    await world.rows.grants(orgId, 40);
    const events = (await world.rows.deliveries(webhookId)).map(({ event_id }) => event_id);
    const engine = new Engine(database, world.owner);
    onTestFinished(() => engine.worker.end());
    const admit = async (from: number, to: number) => {
      for (const eventId of events.slice(from, to)) {
        await pool.query(`update delivery set state = 'running', run = 1 where event_id = $1`, [eventId]);
        await engine.admit({ organizationId: orgId, webhookId, eventId, run: 1 });
      }
    };
    const late = () => pool.query(`update delivery set due_at = now() - interval '2 minutes'`);
    await admit(0, 10);
    await late();
    return {
      ...world,
      worker,
      engine,
      orgId,
      webhookId,
      admit,
      late,
      figures: async () => {
        const { overdue, stuck, difference } = await readLedger(worker);
        return { overdue, stuck, difference };
      },
      /** Moves everything that happened to attempts into the past. */
      shift: (interval: string) =>
        pool.query(
          'update delivery_attempt set started_at = started_at - $1::interval, finished_at = ' +
            'finished_at - $1::interval',
          [interval],
        ),
      /** Fails the attempts in progress, as those of a hanging receiver fail after ten seconds. */
      fail: async () => {
        await pool.query(
          `update delivery_attempt set finished_at = now(), cause = 'timeout' where finished_at is null`,
        );
        await pool.query('delete from slot');
        await pool.query('update receiver set failing_since = coalesce(failing_since, now()), concurrency = 1');
      },
    };
  }

  it('is overdue and not stuck while a hanging receiver holds its webhook’s ten slots, at every moment', async () => {
    const t = await setupHanging();
    expect(await t.figures()).toEqual({ overdue: 30, stuck: 0, difference: 0 }); // not those being attempted
    await t.fail(); // all slots are free for a moment, until the retries use them again
    expect(await t.figures()).toEqual({ overdue: 40, stuck: 0, difference: 0 });
    await t.shift('55 seconds');
    expect(await t.figures()).toEqual({ overdue: 40, stuck: 0, difference: 0 });
  });

  it('is not stuck behind a receiver that is slow and accepts, or behind the single slot of a resumed webhook', async () => {
    const t = await setupHanging();
    await t.pool.query(`update delivery_attempt set finished_at = now(), status = 204, cause = 'accepted'`);
    await t.pool.query('delete from slot');
    expect(await t.figures()).toMatchObject({ overdue: 40, stuck: 0 });
    await t.shift('2 minutes');
    await t.admit(10, 11);
    await t.late();
    expect(await t.figures()).toMatchObject({ overdue: 39, stuck: 39 });
    await t.pool.query('update receiver set concurrency = 1');
    expect(await t.figures()).toMatchObject({ overdue: 39, stuck: 0 });
  });

  it('is not stuck while retries of a failing webhook take turns with those of others', async () => {
    const t = await setupHanging();
    await t.fail();
    await t.shift('4 minutes');
    expect(await t.figures()).toMatchObject({ overdue: 40, stuck: 0 });
  });

  it('is stuck when the worker is dead: its attempts hold their slots, and no process starts another', async () => {
    const t = await setupHanging();
    await t.shift('6 minutes');
    expect(await t.figures()).toEqual({ overdue: 30, stuck: 30, difference: 0 });
    await t.fail(); // the webhook fails too; its last attempt was six minutes ago
    await t.shift('6 minutes');
    expect(await t.figures()).toEqual({ overdue: 40, stuck: 40, difference: 0 });
  });

  it('is not overdue while it waits for its webhook’s bound of posts a second, and is when that is not in use', async () => {
    const t = await setupHanging();
    await t.fail();
    const bound = (rate: number | null, fullIn: string) =>
      t.pool.query(
        `with w as (update webhook set posts_per_second = $1) update receiver set posts_full_at = now() + $2::interval`,
        [rate, fullIn],
      );
    const overdue = async () => (await t.figures()).overdue;
    await bound(1, '11 seconds'); // longer than the statement takes, and not so long that a clock was set back
    expect(await overdue()).toBe(0);
    for (const [rate, fullIn] of [
      [null, '11 seconds'],
      [1, '-1 second'],
      [1, '1 hour'],
    ] as const) {
      await bound(rate, fullIn);
      expect([rate, fullIn, await overdue()]).toEqual([rate, fullIn, 40]);
    }
  });

  it('is overdue and stuck also when the clock was set back since it was queued, whatever its receiver did before', async () => {
    const t = await setupHanging();
    const hook = { organizationId: t.orgId, webhookId: t.webhookId };
    await t.pool.query(`update receiver set retry_after_until = now() + interval '1 minute'`);
    await t.engine.pass([hook], -3_600);
    await t.shift('-1 hour');
    expect(await t.figures()).toEqual({ overdue: 30, stuck: 30, difference: 0 });
    const { rows } = await t.pool.query<{ state: RegionState; now: number }>(
      `select s.state, extract(epoch from now())::float8 as now from (${readRegionStateSql}) s`,
    );
    const [region] = rows;
    expect(region?.state.overdue).toBe(30);
    expect(Date.parse(region?.state.oldestDueAt ?? '') / 1_000).toBeLessThanOrEqual(region?.now ?? 0);
    const request = { ...hook, by: 'orgctl' as const };
    expect(await getWebhook(t.owner, request)).toMatchObject({ retryAfterUntil: null });
  });

  it('is stuck for one webhook and not for another whose receiver hangs', async () => {
    const t = await setupHanging();
    const other = await t.make.organization();
    await t.rows.webhook({ orgId: other });
    await t.rows.grants(other, 3);
    await t.pool.query(`update delivery set due_at = now() - interval '61 seconds' where organization_id = $1`, [
      other,
    ]);
    expect(await t.figures()).toEqual({ overdue: 33, stuck: 3, difference: 0 });
  });

  it('counts at most 1,000 of a webhook, so that its backlog does not hide what is stuck at another', async () => {
    const t = await setupHanging();
    const other = await t.make.organization();
    await t.rows.webhook({ orgId: other });
    await t.rows.grants(other, 3);
    await t.pool.query(`select record_event($1, 'client.started', '{}') from generate_series(1, 1100)`, [t.orgId]);
    await t.late();
    expect(await t.figures()).toMatchObject({ overdue: 1_003, stuck: 3 });
    const { rows } = await t.pool.query<{ state: RegionState }>(readRegionStateSql);
    expect(rows[0]?.state).toMatchObject({ overdue: 1_003, waiting: 1_143 });
  });

  it('is found by reading only the latest attempts of late webhooks, and no event or delivery that is rolled up', async () => {
    const t = await setupHanging();
    const owner = await t.connect(t.database.ownerUrl);
    await owner.query('set enable_seqscan = off'); // otherwise PostgreSQL reads so few rows sequentially
    const { rows } = await owner.query<{ 'QUERY PLAN': string }>(`explain ${readLedgerSql}`);
    const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
    for (const index of ['delivery_attempt_lately', 'event_not_rolled_up', 'delivery_not_rolled_up', 'delivery_open'])
      expect(plan).toContain(index);
    expect(plan).not.toMatch(/Seq Scan on (delivery|event) /);
  });
});

describe('the ledger of an installation that was changed by hand', () => {
  const tampered: { what: string; sql: string; difference: number; fault: RegExp; ofEvent?: boolean }[] = [
    {
      what: 'a delivery row deleted',
      sql: `delete from delivery where webhook_id = $1 and event_id = $2`,
      difference: 1,
      fault: /counted 2 deliveries .* there are 1/,
      ofEvent: true,
    },
    {
      what: 'the attempt with the 2xx removed',
      sql: `delete from delivery_attempt where webhook_id = $1 and event_id = $2`,
      difference: 1,
      fault: /no attempt was answered with a 2xx/,
    },
    {
      what: 'an attempt’s status changed',
      sql: `update delivery_attempt set status = 500 where webhook_id = $1 and event_id = $2`,
      difference: 1,
      fault: /no attempt was answered with a 2xx/,
    },
    {
      what: 'a delivered one called exhausted',
      sql: `update delivery set state = 'exhausted' where webhook_id = $1 and event_id = $2`,
      difference: 1,
      fault: /last attempt is missing/,
    },
    {
      what: 'a delivered one called cancelled',
      sql: `update delivery set state = 'cancelled' where webhook_id = $1 and event_id = $2`,
      difference: 1,
      fault: /no entry that its webhook was deleted/,
    },
    {
      what: 'an event’s count changed',
      sql: `update event set delivery_count = delivery_count + 3 where $1::uuid is not null and id = $2`,
      difference: 3,
      fault: /counted 5 deliveries .* there are 2/,
      ofEvent: true,
    },
    {
      what: 'a delivery made up',
      sql: `insert into delivery (organization_id, webhook_id, event_id, state, due_at, created_at)
            select d.organization_id, w.id, d.event_id, 'queued', now(), now() from delivery d
            join lateral (insert_nothing) w on true where d.webhook_id = $1 and d.event_id = $2`,
      difference: -1,
      fault: /counted 2 deliveries .* there are 3/,
      ofEvent: true,
    },
  ];

  for (const { what, sql, difference, fault, ofEvent = false } of tampered) {
    it.each([false, true])(`shows ${what} (rolled up before: %s)`, async (rolledUp) => {
      const { read, faults, rollUp, rows, pool, orgId, webhookId, eventIds } = await setupLedger();
      const third = await rows.webhook({ orgId });
      if (rolledUp) await rollUp();
      if (what.includes('row deleted'))
        await pool.query('delete from delivery_attempt where event_id = $1', [eventIds[0]]);
      const statement = sql.replace('join lateral (insert_nothing) w on true', `join webhook w on w.id = '${third}'`);
      await pool.query(statement, [webhookId, eventIds[0]]);

      for (const moment of ['before', 'after']) {
        const [missing, surplus] = [Math.max(difference, 0), Math.max(-difference, 0)];
        expect(await read(), moment).toMatchObject({ difference, missing, surplus });
        // A deleted delivery leaves its number unused, which is a different problem.
        const [found, ...more] = (await faults()).filter(({ kind }) => kind !== 'numbers_differ');
        expect(more).toEqual([]);
        expect(found).toMatchObject({
          organizationId: orgId,
          eventId: eventIds[0],
          webhookId: ofEvent ? null : webhookId,
        });
        expect(found?.explanation).toMatch(fault);
        await rollUp(); // a problem is never rolled up
      }
    });
  }

  it.each([false, true])(
    'shows a deleted and an invented delivery that cancel each other out (rolled up before: %s)',
    async (rolledUp) => {
      const { read, faults, rollUp, rows, pool, orgId, webhookId, eventIds } = await setupLedger();
      const third = await rows.webhook({ orgId });
      if (rolledUp) await rollUp();
      await pool.query('delete from delivery_attempt where event_id = $1', [eventIds[0]]);
      await pool.query('delete from delivery where webhook_id = $1 and event_id = $2', [webhookId, eventIds[0]]);
      await pool.query(
        `insert into delivery (organization_id, webhook_id, event_id, state, due_at, created_at)
       values ($1, $2, $3, 'queued', now(), now())`,
        [orgId, third, eventIds[1]],
      );

      for (const moment of ['before', 'after']) {
        expect(await read(), moment).toMatchObject({ difference: 0, missing: 1, surplus: 1 });
        const ofEvents = (await faults()).filter(({ kind }) => kind !== 'numbers_differ');
        expect(ofEvents, moment).toMatchObject([{ eventId: eventIds[0] }, { eventId: eventIds[1] }]);
        await rollUp();
      }
    },
  );

  it('shows an invented settled delivery without a proof, which is in no sum', async () => {
    const { read, faults, rollUp, rows, pool, orgId, eventIds } = await setupLedger();
    const third = await rows.webhook({ orgId });
    await rollUp();
    await pool.query(
      `insert into delivery (organization_id, webhook_id, event_id, state, settled_at, created_at)
       values ($1, $2, $3, 'delivered', now(), now())`,
      [orgId, third, eventIds[1]],
    );
    expect(await read()).toMatchObject({ difference: 0, missing: 1, surplus: 1 });
    expect(await faults()).toMatchObject([{ kind: 'delivery_count_differs' }, { kind: 'no_proof', webhookId: third }]);
  });

  it.each([
    ['waiting called delivered', `state = 'delivered', due_at = null, settled_at = now()`, 'delivered'],
    ['waiting called exhausted', `state = 'exhausted', due_at = null, settled_at = now()`, 'exhausted'],
    ['waiting called cancelled', `state = 'cancelled', due_at = null, settled_at = now()`, 'cancelled'],
  ])('shows a delivery %s', async (_what, change, state) => {
    const { read, faults, pool, webhookId, eventIds } = await setupLedger();
    await pool.query(`update delivery set ${change} where webhook_id = $1 and event_id = $2`, [webhookId, eventIds[9]]);
    expect(await read()).toMatchObject({ difference: 1, waiting: 1 });
    expect(await faults()).toMatchObject([{ kind: 'no_proof', webhookId, eventId: eventIds[9] }]);
    expect((await faults())[0]?.explanation).toContain(`It is ${state}`);
  });

  it('shows a change of the sums, also one that was made without triggers, by a full scan', async () => {
    const { read, faults, rollUp, pool, worker, eventIds, connect, database } = await setupLedger();
    await rollUp();
    await pool.query('update ledger_day set delivered = delivered - 2');
    expect(await read()).toMatchObject({ difference: 2, missing: 2, surplus: 0 });
    await pool.query('update ledger_day set delivered = delivered + 2');

    const owner = await connect(database.ownerUrl);
    await owner.query(`set session_replication_role = replica`);
    await owner.query(`delete from delivery_attempt where event_id = $1`, [eventIds[0]]);
    expect(await faults()).toEqual([]);
    expect(await listLedgerFaults(worker, { everything: true })).toMatchObject([
      { kind: 'no_proof', eventId: eventIds[0] },
    ]);
  });
});
