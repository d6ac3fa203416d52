import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, it } from 'vitest';
import {
  type AdmittedRow,
  admitAttemptSql,
  closeAbandonedAttemptsSql,
  type LostRow,
  recordLostSql,
  recordOutcomeSql,
} from '#domain/db/statements/attempts.ts';
import { beginRoundSql } from '#test/begin-round.ts';
import { recordOutcome as recordOutcomeOn } from '#test/record-outcome.ts';
import { openPool, setupWebhooks } from './webhook-rows.ts';

type Follows = 'delivered' | 'exhausted' | 'waiting';

/**
 * An organization with `events` events and its webhook, and the statements of an attempt over the
 * worker's login.
 */
async function setupAttempts(events: number, ramp: number | null = null) {
  const world = await setupWebhooks();
  const orgId = await world.make.organization();
  const webhookId = await world.rows.webhook({ orgId, ramp });
  await world.rows.grants(orgId, events);
  const worker = openPool(world.database.urls.worker, 20);
  const eventIds = (await world.rows.deliveries(webhookId)).map(({ event_id }) => event_id);
  const [eventId = ''] = eventIds;

  return {
    ...world,
    orgId,
    webhookId,
    eventIds,
    eventId,
    worker,
    /** Null when the delivery is not open to the round; `number` is null when no slot was free. */
    async admit(event = eventId, round = 1, isLast = false): Promise<AdmittedRow | null> {
      const { rows } = await worker.query<AdmittedRow>(admitAttemptSql, [
        orgId,
        webhookId,
        event,
        round,
        isLast,
        false,
        randomUUID(),
      ]);
      return rows[0] ?? null;
    },
    async recordOutcome(number: number, follows: Follows, options: { event?: string; isInternalError?: boolean } = {}) {
      const { event = eventId, isInternalError = false } = options;
      const rows = await recordOutcomeOn(worker, [
        orgId,
        webhookId,
        event,
        number,
        follows === 'delivered' ? 204 : 503,
        'status',
        'A sentence.',
        '{}',
        null,
        0,
        Buffer.alloc(0),
        follows,
        follows === 'waiting' ? 5_000 : null,
        !isInternalError && follows !== 'delivered',
        null,
      ]);
      return rows[0]?.recorded;
    },
    async recordLost(round: number, follows: 'exhausted' | 'waiting') {
      const wait = follows === 'waiting' ? 5_000 : null;
      const { rows } = await worker.query<LostRow>(recordLostSql, [orgId, webhookId, eventId, round, follows, wait, 0]);
      return rows[0];
    },
    beginRound: (round: number) => worker.query(beginRoundSql, [orgId, webhookId, eventId, round]),
    async underWay() {
      const found = await world.pool.query('select count(*)::int as count from concurrency_slot');
      return (found.rows[0] as { count: number }).count;
    },
    async delivery() {
      return (await world.rows.deliveries(webhookId))[0];
    },
    async webhook() {
      const found = await world.pool.query(
        'select failing_since is not null as failing, failing_since::text, ramp from webhook where id = $1',
        [webhookId],
      );
      return found.rows[0] as { failing: boolean; failing_since: string | null; ramp: number | null };
    },
  };
}

/** Returns whether a unique index refused the second of two admissions, which then retries. */
const collided = (error: unknown) => error instanceof pg.DatabaseError && error.code === '23505';

describe('admitting an attempt', () => {
  it('never has more than ten attempts of a webhook or one of a delivery in progress, with 50 parallel admissions', async () => {
    const { admit, eventIds, pool } = await setupAttempts(25);

    const tried = await Promise.all(
      [...eventIds, ...eventIds].map(async (eventId) => {
        for (;;) {
          const admitted = await admit(eventId).catch((error: unknown) => {
            if (!collided(error)) throw error;
            return undefined; // retries as the activity does; a second admission of one delivery always collides
          });
          const { rows } = await pool.query(`select from delivery_attempt where event_id = $1`, [eventId]);
          if (admitted !== undefined || rows.length > 0) return admitted ?? null;
        }
      }),
    );

    expect(tried.filter((admitted) => typeof admitted?.number === 'number')).toHaveLength(10);
    const { rows } = await pool.query(
      `select count(*)::int as open, count(distinct slot)::int as slots, count(distinct event_id)::int as deliveries
       from delivery_attempt join concurrency_slot using (organization_id, webhook_id, event_id, number)
         where finished_at is null`,
    );
    expect(rows).toEqual([{ open: 10, slots: 10, deliveries: 10 }]);
  });

  it.each([
    { what: '50 of an organization', hosts: 8, change: '', bound: 50 },
    { what: '20 of an organization at one host', hosts: 1, change: '', bound: 20 },
    { what: '5 of an organization whose receivers are slow', hosts: 8, change: ', slow_since = now()', bound: 5 },
  ])('never has more than $what in progress, with 80 parallel admissions', async ({ hosts, change, bound }) => {
    const { orgId, pool, rows, worker, underWay } = await setupAttempts(0);
    for (let nth = 1; nth <= 7; nth += 1) await rows.webhook({ orgId });
    await rows.grants(orgId, 10);
    await pool.query(
      `update webhook w set url = 'https://receiver-' || (n.nth % $1) || '.example/hooks' ${change}
       from (select id, row_number() over () as nth from webhook) n where n.id = w.id`,
      [hosts],
    );
    const { rows: deliveries } = await pool.query('select webhook_id, event_id from delivery');
    expect(deliveries).toHaveLength(80);

    const tried = await Promise.all(
      deliveries.map(async ({ webhook_id, event_id }) => {
        for (;;) {
          const values = [orgId, webhook_id, event_id, 1, false, false, randomUUID()];
          const admitted = await worker.query<AdmittedRow>(admitAttemptSql, values).catch((error: unknown) => {
            if (!collided(error)) throw error;
            return undefined;
          });
          if (admitted !== undefined) return admitted.rows[0];
        }
      }),
    );

    expect(await underWay()).toBe(bound);
    expect(tried.filter((admitted) => admitted?.number === 1)).toHaveLength(bound);
    expect(tried.filter((admitted) => admitted?.queue !== null)).toHaveLength(80 - bound);
  });

  it('writes the row before anything is sent, counts the attempt, and returns the request', async () => {
    const { admit, delivery, pool } = await setupAttempts(1);

    const admitted = await admit();

    expect(admitted).toMatchObject({ number: 1, url: 'https://receiver.example/hooks', type: 'client.started' });
    expect(admitted?.secrets).toHaveLength(1);
    expect(await delivery()).toMatchObject({ state: 'waiting', attempts: 1, claimed: false });
    expect((await delivery())?.due_in_seconds).toBeGreaterThan(50);
    const { rows } = await pool.query('select number, round, is_last, finished_at, cause from delivery_attempt');
    expect(rows).toEqual([{ number: 1, round: 1, is_last: false, finished_at: null, cause: null }]);
  });

  it('refuses an older round, a parked or deleted webhook, and a settled delivery', async () => {
    const { admit, beginRound, pool, recordOutcome } = await setupAttempts(1);
    await beginRound(1);
    expect(await admit('', 1).catch(() => null)).toBeNull();
    expect(await admit(undefined, 1)).toBeNull();

    await pool.query(`update webhook set state = 'parked', parked_reason = 'paused'`);
    expect(await admit(undefined, 2)).toBeNull();
    await pool.query(`update webhook set state = 'deleted', parked_reason = null, slot = null`);
    expect(await admit(undefined, 2)).toBeNull();
    await pool.query(`update webhook set state = 'active', slot = 1`);

    expect(await admit(undefined, 2)).toMatchObject({ number: 1 });
    await recordOutcome(1, 'delivered');
    expect(await admit(undefined, 2)).toBeNull();
  });

  it('keeps to the ramp of a resumed webhook', async () => {
    const { admit, eventIds } = await setupAttempts(3, 2);
    const numbers = [];
    for (const eventId of eventIds) numbers.push((await admit(eventId))?.number);
    expect(numbers).toEqual([1, 1, null]);
  });

  it('leaves a failing webhook one slot, and ten again after its next 2xx', async () => {
    const { admit, eventIds, recordOutcome, underWay } = await setupAttempts(14);
    const failing = eventIds.slice(0, 10);
    const [first = '', ...others] = eventIds.slice(10);
    for (const event of failing) await admit(event);
    expect(await underWay()).toBe(10);
    for (const event of failing) await recordOutcome(1, 'waiting', { event });

    for (const event of [first, ...others]) await admit(event);
    expect(await underWay()).toBe(1);
    await recordOutcome(1, 'delivered', { event: first });
    for (const event of failing) await admit(event);
    expect(await underWay()).toBe(10);
  });

  it('reports to a delivery without a slot which attempts hold the slots, for how long, and how many wait before it', async () => {
    const { admit, eventIds, pool } = await setupAttempts(5, 2);
    await pool.query(
      `update delivery d set started = true, next_attempt_at = now() - make_interval(secs => 60 - n)
      from unnest($1::uuid[]) with ordinality as e (id, n) where d.event_id = e.id`,
      [eventIds],
    );
    const [first = '', second = '', third = '', fourth = '', fifth = ''] = eventIds;
    expect(await admit(first)).toMatchObject({ number: 1, queue: null });
    await admit(second);
    await pool.query(`update concurrency_slot set started_at = now() - interval '4 seconds' where event_id = $1`, [
      first,
    ]);

    const queues = [];
    for (const event of [third, fourth, fifth]) queues.push((await admit(event))?.queue);
    expect(queues).toMatchObject([0, 1, 2].map((ahead) => ({ slots: 2, ahead })));
    expect(queues[0]?.underWayMs).toBeGreaterThanOrEqual(4_000);
    expect(queues[0]?.underWayMs).toBeLessThan(10_000);
  });

  it('signs with both secrets during a rotation, newest first, and not with an expired one', async () => {
    const { admit, pool, orgId, webhookId } = await setupAttempts(1);
    await pool.query(
      `update webhook_secret set valid_until = now() + interval '1 hour', sealed = 'old';
       insert into webhook_secret (organization_id, webhook_id, sealed) values ('${orgId}', '${webhookId}', 'new');
       insert into webhook_secret (organization_id, webhook_id, sealed, valid_until)
         values ('${orgId}', '${webhookId}', 'over', now())`,
    );
    const sealed = (await admit())?.secrets?.map((secret) => Buffer.from(secret.sealed, 'base64').toString());
    expect(sealed).toEqual(['new', 'old']);
  });
});

describe('recording the outcome of an attempt', () => {
  it('settles the delivery at a 2xx, and keeps the schedule’s wait after a failure', async () => {
    const { admit, recordOutcome, delivery } = await setupAttempts(1);
    await admit();
    expect(await recordOutcome(1, 'waiting')).toBe(true);
    expect(await delivery()).toMatchObject({ state: 'waiting', settled_at: null });
    expect((await delivery())?.due_in_seconds).toBeLessThanOrEqual(5);

    await admit();
    expect(await recordOutcome(2, 'delivered')).toBe(true);
    expect(await delivery()).toMatchObject({ state: 'delivered', attempts: 2, due_in_seconds: null });
    expect((await delivery())?.settled_at).not.toBeNull();
  });

  it('settles the delivery at the 2xx of an older round, and ignores a failure of one', async () => {
    const { admit, recordOutcome, delivery, beginRound, eventIds } = await setupAttempts(2);
    const [, other = ''] = eventIds;
    await admit();
    await beginRound(1);
    expect(await recordOutcome(1, 'exhausted')).toBe(true);
    expect(await delivery()).toMatchObject({ state: 'waiting', round: 2 });

    await admit(other);
    await beginRound(1);
    expect(await recordOutcome(1, 'delivered', { event: other })).toBe(true);
    expect((await delivery())?.state).toBe('waiting'); // the first attempt's, not changed by the 2xx of the other
  });

  it.each([
    ['due in another epoch', 'epoch = 0'],
    ['exhausted', `state = 'exhausted', next_attempt_at = null, settled_at = now()`],
    ['waiting', 'round = 2'],
  ])('settles the delivery at a 2xx that arrives when it is %s meanwhile', async (_state, change) => {
    const { admit, recordOutcome, recordLost, delivery, pool } = await setupAttempts(1);
    await admit();
    await recordLost(1, 'waiting'); // its result arrives after the attempt was recorded as lost
    await pool.query(`update delivery set ${change}`);

    expect(await recordOutcome(1, 'delivered')).toBe(true);

    expect(await delivery()).toMatchObject({ state: 'delivered', due_in_seconds: null });
  });

  it('leaves a cancelled delivery cancelled', async () => {
    const { admit, recordOutcome, delivery, pool } = await setupAttempts(1);
    await admit();
    await pool.query(`update delivery set state = 'cancelled', next_attempt_at = null, settled_at = now()`);

    await recordOutcome(1, 'delivered');

    expect(await delivery()).toMatchObject({ state: 'cancelled' });
  });

  it('does not let a late failure overwrite an attempt that was recorded as lost', async () => {
    const { admit, recordOutcome, recordLost, pool } = await setupAttempts(1);
    await admit();
    expect(await recordLost(1, 'waiting')).toMatchObject({ closed: true, open: true });

    expect(await recordOutcome(1, 'exhausted')).toBe(false);

    const { rows } = await pool.query('select a.cause, d.state from delivery_attempt a, delivery d');
    expect(rows).toEqual([{ cause: 'lost', state: 'waiting' }]);
  });

  it('keeps since when a webhook fails: from its first failure to its next 2xx, without internal errors', async () => {
    const { admit, recordOutcome, webhook } = await setupAttempts(1);
    await admit();
    await recordOutcome(1, 'waiting', { isInternalError: true });
    expect(await webhook()).toMatchObject({ failing: false });

    await admit();
    await recordOutcome(2, 'waiting');
    const { failing_since: first } = await webhook();
    expect(first).not.toBeNull();
    await admit();
    await recordOutcome(3, 'waiting');
    expect(await webhook()).toMatchObject({ failing_since: first });

    await admit();
    await recordOutcome(4, 'delivered');
    expect(await webhook()).toMatchObject({ failing: false });
  });

  it('doubles the ramp at each 2xx up to ten slots, and not at a failure', async () => {
    const { admit, recordOutcome, webhook, eventIds } = await setupAttempts(5, 1);
    const ramps = [];
    for (const event of eventIds) {
      await admit(event);
      await recordOutcome(1, 'waiting', { event });
      await admit(event);
      await recordOutcome(2, 'delivered', { event });
      ramps.push((await webhook()).ramp);
    }
    expect(ramps).toEqual([2, 4, 8, null, null]);
  });
});

describe('an attempt whose worker stopped', () => {
  it('is recorded as lost and frees its concurrency slot, and the schedule continues', async () => {
    const { admit, recordLost, delivery, pool, underWay } = await setupAttempts(1);
    await admit();
    expect(await underWay()).toBe(1);
    expect(await recordLost(1, 'waiting')).toMatchObject({ closed: true, open: true });
    expect(await underWay()).toBe(0);

    expect(await delivery()).toMatchObject({ state: 'waiting' });
    expect(await admit(undefined, 1, true)).toMatchObject({ number: 2 });
    expect(await recordLost(1, 'exhausted')).toMatchObject({ closed: true });
    expect(await delivery()).toMatchObject({ state: 'exhausted', due_in_seconds: null });
    const { rows } = await pool.query(
      'select cause, is_last, finished_at is not null as finished from delivery_attempt',
    );
    expect(rows).toEqual([
      { cause: 'lost', is_last: false, finished: true },
      { cause: 'lost', is_last: true, finished: true },
    ]);
  });

  // Regression: a last attempt whose worker was killed before its admission exhausted the delivery,
  // without an attempt as proof.
  it('that had not begun exhausts nothing: the delivery waits for the reconciler', async () => {
    const { recordLost, delivery } = await setupAttempts(1);
    expect(await recordLost(1, 'exhausted')).toMatchObject({ closed: false, open: true, dueInMs: 0 });
    expect(await delivery()).toMatchObject({ state: 'waiting' });
  });

  it('changes nothing for another round or a settled delivery', async () => {
    const { admit, recordLost, recordOutcome, delivery, beginRound } = await setupAttempts(1);
    await beginRound(1);
    await admit(undefined, 2);
    expect(await recordLost(1, 'exhausted')).toMatchObject({ closed: false, open: false });
    await recordOutcome(1, 'delivered');
    expect(await recordLost(2, 'exhausted')).toMatchObject({ closed: false, open: false });
    expect(await delivery()).toMatchObject({ state: 'delivered' });
  });

  it('is closed by any worker, together with its concurrency slot', async () => {
    const { admit, pool, worker, underWay } = await setupAttempts(2);
    await admit();
    expect((await worker.query(closeAbandonedAttemptsSql, [45])).rowCount).toBe(0);
    await pool.query(`update delivery_attempt set started_at = now() - interval '46 seconds'`);
    expect((await worker.query(closeAbandonedAttemptsSql, [45])).rowCount).toBe(1);
    expect(await underWay()).toBe(0);
  });

  it('gets its own number after the outcome of a missing row was written again', async () => {
    const { admit, pool, worker, beginRound, orgId, webhookId, eventId } = await setupAttempts(1);
    const first = await admit();
    // PostgreSQL forgot the admission, and the delivery got another round before the outcome
    // arrived.
    await pool.query('delete from concurrency_slot');
    await pool.query('delete from delivery_attempt');
    await pool.query('update delivery set attempts = 0');
    await beginRound(1);
    const values = [orgId, webhookId, eventId, 1, 503, 'status', 'A sentence.', '{}', null, 0, Buffer.alloc(0)];
    await worker.query(recordOutcomeSql, [...values, 'waiting', 5_000, true, null, first?.startedAt, 1, false, []]);

    expect(await admit(eventId, 2)).toMatchObject({ number: 2 });
  });
});
