import { randomUUID } from 'node:crypto';
import type { PoolClient } from 'pg';
import { expect } from 'vitest';
import {
  type Attempt,
  type Engine,
  type Hook,
  lostRepeats,
  type Run,
  scheduleAttempts,
} from '#test/delivery-engine.ts';

/**
 * What the engine's statements guarantee, by name. Each scenario uses new organizations, so all can
 * share a database; the mutants of `mutants.ts` prove that each guard has one that fails without
 * it.
 */
export const scenarios: Record<string, (engine: Engine) => Promise<void>> = {
  'a claim takes the oldest first, numbers them without a gap, and no more than ten of a webhook': async (engine) => {
    const hook = await engine.webhook({ events: 12 });
    const claims = await engine.claim([hook]);
    expect(claims).toHaveLength(10);
    expect(claims.every(({ isFull, run, isDegraded }) => isFull && run === 1 && !isDegraded)).toBe(true);
    expect(Math.abs((claims[0]?.dueAtMs ?? 0) - Date.now())).toBeLessThan(3_600_000);
    const rows = await engine.deliveries(hook);
    expect(rows.map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, null, null]);
    expect(await engine.claim([hook])).toEqual([]);
    await engine.attempt(claims[0] as Run, { outcome: 'delivered' });
    expect(await engine.claim([hook])).toHaveLength(1);
    expect(await engine.receiver(hook)).toMatchObject({ nextSequence: 12 });
  },

  'a claim leaves a delivery that is not due, and one whose former attempt is still in progress': async (engine) => {
    const hook = await engine.webhook({ events: 2 });
    const [first, second] = await engine.claim([hook]);
    const stale = await engine.admit(first as Run);
    await engine.pass([hook], 26);
    await engine.repair();
    expect(await engine.delivery(hook)).toMatchObject({ state: 'queued', failures: 1 });
    expect(await engine.claim([hook])).toMatchObject([{ eventId: second?.eventId }]); // the first waits its 30 s
    await engine.pass([hook], 40);
    const [again] = await engine.claim([hook]);
    expect(again).toMatchObject({ eventId: first?.eventId, run: 2 });
    await engine.admit(again as Run);
    await engine.record(stale, { outcome: 'delivered' }); // late: the newer attempt still holds its slot
    expect(await engine.redeliver(again as Run)).toBe('queued');
    expect(await engine.redeliver(again as Run)).toBe('attempting');
    expect((await engine.claim([hook])).map(({ eventId }) => eventId)).not.toContain(first?.eventId);
  },

  'organizations take turns, by the slots that each holds': async (engine) => {
    const busy = await engine.webhook({ events: 10 });
    const other = await engine.webhook({ events: 6 });
    const claim = async (healthy: number) =>
      (await engine.claim([busy, other], { healthy })).map(({ webhookId }) => (webhookId === other.webhookId ? 1 : 0));
    await engine.claim([busy], { healthy: 4 });
    expect(await claim(4)).toEqual([1, 1, 1, 1]); // for the organization that holds fewer
    expect((await claim(2)).sort()).toEqual([0, 1]);
  },

  'an event of one organization takes its turn among backlogs of others that are older': async (engine) => {
    const hooks: Hook[] = [];
    for (const events of [20, 20, 20, 1]) hooks.push(await engine.webhook({ events }));
    const last = hooks.at(-1)?.webhookId;
    let claims = 0;
    for (let claimed = ''; claimed !== last; claims += 1) {
      const [run] = await engine.claim(hooks, { healthy: 1 });
      await engine.attempt(run as Run, { outcome: 'delivered' });
      claimed = (run as Run).webhookId;
    }
    expect(claims).toBeLessThan(50); // at random not once in a million times; by age 61
  },

  'one organization never has more than 20 attempts at a host, whichever relays claim at once': async (engine) => {
    const host = randomUUID();
    const first = await engine.webhook({ host });
    const { organizationId } = first;
    const hooks = [
      first,
      await engine.webhook({ organizationId, host }),
      await engine.webhook({ organizationId, host }),
    ];
    await engine.events(organizationId, 12);
    await inTransaction(engine, async (connection) => {
      expect(await engine.claim(hooks.slice(0, 2), { connection })).toHaveLength(20);
      expect(await engine.claim(hooks.slice(2))).toEqual([]); // it neither counts stale slots nor waits
    });
    expect(await engine.claim(hooks.slice(2))).toEqual([]);
  },

  'one organization never has more than 50 attempts of healthy webhooks, and 5 of degraded ones': async (engine) => {
    const hooks = [await engine.webhook()];
    const organizationId = hooks[0]?.organizationId ?? '';
    for (let more = 0; more < 6; more += 1) hooks.push(await engine.webhook({ organizationId }));
    await engine.events(organizationId, 10);
    expect(await engine.claim(hooks)).toHaveLength(50);
    await engine.owner.query('delete from slot where organization_id = $1', [organizationId]);
    await engine.owner.query(`update delivery set state = 'queued' where organization_id = $1`, [organizationId]);
    for (const hook of hooks) await engine.setConcurrency(hook, 4);
    const degraded = await engine.claim(hooks);
    expect(degraded).toHaveLength(5);
    expect(degraded.every((claim) => claim.isDegraded)).toBe(true);
  },

  'a retry gets no slot beyond the webhook’s, and goes back to the queue at its position': async (engine) => {
    const hook = await engine.webhook({ events: 2 });
    await engine.setConcurrency(hook, 1);
    const [first] = await engine.claim([hook]);
    await engine.attempt(first as Run);
    await engine.pass([hook], 59);
    expect(await engine.claim([hook])).toHaveLength(1); // the second event has the only slot
    await engine.pass([hook], 1);
    expect(await engine.ask(first as Run)).toMatchObject({ decision: 'end' });
    expect(await engine.delivery(hook)).toMatchObject({ state: 'queued', failures: 1, attempts: 1, hasAttempt: null });
  },

  'a retry of an organization for which a relay assigns slots asks again, and waits for nothing': async (engine) => {
    const hook = await engine.webhook({ events: 2 });
    const [first] = await engine.claim([hook], { healthy: 1 });
    await engine.attempt(first as Run);
    await engine.pass([hook], 60);
    await inTransaction(engine, async (connection) => {
      await engine.claim([hook], { connection });
      expect(await engine.ask(first as Run)).toMatchObject({ decision: 'lock_busy' });
    });
    expect(await engine.ask(first as Run)).toMatchObject({ decision: 'admitted', number: 2, failures: 1 });
    expect(await engine.repair()).toEqual([]);
  },

  'a bound of posts a second counts reserved slots, then attempts, and nothing that was not sent': async (engine) => {
    const hook = await engine.webhook({ events: 8 });
    await engine.setPostsPerSecond(hook, 1);
    const [first, second] = await engine.claim([hook]);
    expect(await engine.claim([hook])).toEqual([]);
    await engine.returnClaims([second as Run]);
    const [again, ...more] = await engine.claim([hook]);
    expect([again?.eventId, more]).toEqual([second?.eventId, []]);
    for (const run of [first, again]) await engine.attempt(run as Run, { outcome: 'delivered' });
    await engine.pass([hook], -8); // what follows takes less than as long, on any machine
    expect(await engine.claim([hook])).toEqual([]);
    await engine.pass([hook], 9.05);
    expect(await engine.claim([hook])).toHaveLength(1);
  },

  'a bound lets a tenth of its posts and one more go at once, however long nothing was sent': async (engine) => {
    const hook = await engine.webhook({ events: 30 });
    await engine.pass([hook], 3_600);
    for (const [rate, posts] of [
      [1, 2],
      [11, 3],
      [50, 6],
      [100, 10], // as many as are attempted at once; it would be 11
    ] as const) {
      await engine.setPostsPerSecond(hook, rate);
      const claims = await engine.claim([hook]);
      expect([rate, claims.length, claims.every(({ isFull }) => isFull)]).toEqual([rate, posts, true]);
      await engine.returnClaims(claims);
    }
    await engine.setPostsPerSecond(hook, 100);
    for (const run of await engine.claim([hook])) await engine.attempt(run, { outcome: 'delivered' });
    await engine.setPostsPerSecond(hook, 1);
    expect(await engine.claim([hook])).not.toEqual([]); // it does not wait for what another bound left
  },

  'a retry beyond the bound goes back to the queue at its position, and is sent before newer events': async (
    engine,
  ) => {
    const hook = await engine.webhook({ events: 5 });
    await engine.setPostsPerSecond(hook, 1);
    const [first, second] = await engine.claim([hook]);
    await engine.attempt(first as Run);
    await engine.attempt(second as Run, { outcome: 'delivered' });
    await engine.setConcurrency(hook, 10);
    await engine.pass([hook], 75);
    for (const run of await engine.claim([hook])) await engine.attempt(run, { outcome: 'delivered' });
    await engine.pass([hook], -8);
    expect(await engine.ask(first as Run)).toMatchObject({ decision: 'end' });
    expect(await engine.delivery(hook)).toMatchObject({ state: 'queued', failures: 1, attempts: 1, hasAttempt: null });
    expect(await engine.claim([hook])).toEqual([]);
    await engine.pass([hook], 9.05);
    expect((await engine.claim([hook])).map(({ eventId }) => eventId)).toEqual([first?.eventId]);
  },

  'an attempt counts once against a bound, also when the reply of its admission was lost': async (engine) => {
    const hook = await engine.webhook({ events: 4 });
    await engine.setPostsPerSecond(hook, 1);
    const [first, second] = await engine.claim([hook]);
    const id = randomUUID();
    for (const _ of [1, 2]) expect(await engine.ask(first as Run, id)).toMatchObject({ decision: 'admitted' });
    await engine.returnClaims([second as Run]);
    expect(await engine.claim([hook])).toHaveLength(1);
  },

  'a clock that was set back stops no webhook with a bound': async (engine) => {
    const hook = await engine.webhook({ events: 6 });
    await engine.setPostsPerSecond(hook, 1);
    for (const run of await engine.claim([hook])) await engine.attempt(run, { outcome: 'delivered' });
    await engine.pass([hook], -3_600);
    const claims = await engine.claim([hook]);
    expect(claims).toHaveLength(2);
    for (const run of claims) await engine.attempt(run, { outcome: 'delivered' });
    expect(await engine.postsFullInSeconds(hook)).toBeLessThanOrEqual(2);
  },

  'a run whose delivery is not in the database, as after a restore, ends': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [run] = await engine.claim([hook]);
    for (const id of ['organizationId', 'webhookId', 'eventId'])
      expect(await engine.ask({ ...(run as Run), [id]: randomUUID() })).toMatchObject({ decision: 'end' });
  },

  'a webhook is degraded while two of its attempts last longer than 3 s': async (engine) => {
    const hook = await engine.webhook({ events: 4 });
    const claims = await engine.claim([hook], { healthy: 2 });
    for (const claim of claims) await engine.admit(claim);
    await engine.pass([hook], 4);
    expect(await engine.claim([hook], { degraded: 1 })).toMatchObject([{ isDegraded: true }]);
  },

  'only the current run is admitted, and one that was only late still is': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [first] = await engine.claim([hook]);
    await engine.pass([hook], 11);
    expect(await engine.repair()).toMatchObject([{ kind: 'not_started', state: 'queued' }]);
    expect(await engine.ask(first as Run)).toMatchObject({ decision: 'admitted', number: 1 });
    expect(await engine.delivery(hook)).toMatchObject({ state: 'running', hasAttempt: true });

    const other = await engine.webhook({ events: 1 });
    const [old] = await engine.claim([other]);
    await engine.pass([other], 11);
    await engine.repair();
    const [current] = await engine.claim([other]);
    expect(current).toMatchObject({ run: 2 });
    expect(await engine.ask(old as Run)).toMatchObject({ decision: 'end' });
    expect(await engine.ask(current as Run)).toMatchObject({ decision: 'admitted' });
  },

  'a second request for the attempt in progress waits, and the same request gets its admission again': async (
    engine,
  ) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    const attempt = await engine.admit(claim as Run);
    const other = await engine.ask(claim as Run);
    expect(other).toMatchObject({ decision: 'wait' });
    expect('waitMs' in other && other.waitMs).toBeGreaterThan(25_000);
    expect(await engine.ask(claim as Run, attempt.id)).toMatchObject({
      decision: 'admitted',
      startedAt: attempt.startedAt,
    });
    expect(await engine.attempts(hook)).toHaveLength(1);
    await engine.pass([hook], 20);
    expect((await engine.ask(claim as Run)) as { waitMs: number }).toMatchObject({ decision: 'wait' });
    expect(((await engine.ask(claim as Run)) as { waitMs: number }).waitMs).toBeLessThanOrEqual(6_000);
    await engine.pass([hook], 10);
    expect(await engine.ask(claim as Run)).toMatchObject({ decision: 'wait', waitMs: 1_000 });
  },

  'a run that asks before its retry is due waits until then': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    await engine.attempt(claim as Run, { waitMs: 5_000 });
    const early = (await engine.ask(claim as Run)) as { decision: string; waitMs: number };
    expect(early.decision).toBe('wait');
    expect(early.waitMs).toBeGreaterThan(1_000);
    expect(early.waitMs).toBeLessThanOrEqual(5_000);
    await engine.pass([hook], 4.5); // clocks differ by less than a second
    expect(await engine.ask(claim as Run)).toMatchObject({ decision: 'admitted' });
  },

  'no attempt is admitted of a paused webhook or region, a held or a gone receiver, and the delivery is queued': async (
    engine,
  ) => {
    const stops = [
      (hook: Hook) => engine.change(hook, 'paused'),
      () => engine.owner.query(`update delivery_switch set state = 'paused'`),
      (hook: Hook) =>
        engine.owner.query(`update receiver set retry_after_until = now() + interval '9 s' where webhook_id = $1`, [
          hook.webhookId,
        ]),
      (hook: Hook) => engine.owner.query('update receiver set gone_at = now() where webhook_id = $1', [hook.webhookId]),
    ];
    for (const stop of stops) {
      const hook = await engine.webhook({ events: 2 });
      await engine.webhook({ organizationId: hook.organizationId }); // which may be sent everything
      const [first] = await engine.claim([hook], { healthy: 1 });
      try {
        await stop(hook);
        expect(await engine.ask(first as Run)).toMatchObject({ decision: 'end' });
        expect(await engine.claim([hook])).toEqual([]);
      } finally {
        await engine.owner.query(`update delivery_switch set state = 'running'`);
      }
      expect(await engine.delivery(hook)).toMatchObject({
        state: 'queued',
        failures: 0,
        attempts: 0,
        hasAttempt: null,
      });
    }
  },

  'a schedule ends with its last attempt, which its row says before it is made': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    const states = [];
    for (let made = 0; made < scheduleAttempts; made += 1) {
      states.push((await engine.attempt(claim as Run))?.state);
      await engine.pass([hook], 70);
    }
    expect(states).toEqual(['running', 'running', 'exhausted']);
    expect((await engine.attempts(hook)).map(({ endsSchedule }) => endsSchedule)).toEqual([false, false, true]);
    expect(await engine.delivery(hook)).toMatchObject({ failures: 3, attempts: 3, dueInSeconds: null });
    expect(await engine.ask(claim as Run)).toMatchObject({ decision: 'end' });
  },

  'an attempt that kills its worker counts, and at most three follow the schedule’s number': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    let made = 0;
    for (; made < 20; made += 1) {
      const [claim] = await engine.claim([hook]);
      if (claim === undefined) break;
      const { endsSchedule, failures } = await engine.admit(claim);
      expect({ endsSchedule, failures }).toEqual({ endsSchedule: made >= scheduleAttempts - 1, failures: made });
      await engine.pass([hook], 26);
      await engine.repair();
      await engine.pass([hook], 70);
    }
    expect(made).toBe(scheduleAttempts + lostRepeats);
    expect(await engine.delivery(hook)).toMatchObject({ state: 'exhausted', failures: made, attempts: made });
    expect((await engine.attempts(hook)).every(({ cause }) => cause === 'lost')).toBe(true);
    expect(await engine.receiver(hook)).toMatchObject({ exhaustedInRow: 0 }); // it was the worker's fault
  },

  'a lost attempt waits as the schedule says, and its late failure changes nothing': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    const attempt = await engine.admit(claim as Run);
    await engine.pass([hook], 26);
    const lost = { kind: 'lost', number: 1, state: 'queued', startedAtMs: expect.closeTo(attempt.startedAtMs, 0) };
    expect(await engine.repair()).toMatchObject([lost]);
    const { dueInSeconds } = await engine.delivery(hook);
    expect(dueInSeconds).toBeGreaterThan(29);
    expect(dueInSeconds).toBeLessThan(33.1);
    expect(await engine.record(attempt)).toEqual({ state: 'queued' });
    expect(await engine.delivery(hook)).toMatchObject({ failures: 1 });
    expect(await engine.attempts(hook)).toMatchObject([{ cause: 'lost', endsSchedule: false }]);
    const { rows } = await engine.owner.query('select explanation from delivery_attempt where id = $1', [attempt.id]);
    expect(rows[0].explanation).toContain('may have received it');
  },

  'a lost attempt is the proof of a schedule that was shortened meanwhile': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    await engine.admit(claim as Run);
    await engine.owner.query('update delivery set failures = 20 where webhook_id = $1', [hook.webhookId]);
    expect(await engine.attempts(hook)).toMatchObject([{ endsSchedule: false }]);
    await engine.pass([hook], 26);
    expect(await engine.repair()).toMatchObject([{ kind: 'lost', state: 'exhausted' }]);
    expect(await engine.attempts(hook)).toMatchObject([{ cause: 'lost', endsSchedule: true }]);
  },

  'a late run that is admitted while others are looked for keeps its attempt': async (engine) => {
    const hook = await engine.webhook({ events: 2 });
    const [killed, late] = await engine.claim([hook]);
    await engine.attempt(late as Run, { waitMs: 0 });
    await engine.admit(killed as Run);
    await engine.pass([hook], 100);
    let repaired: Promise<unknown> = Promise.resolve();
    await inTransaction(
      engine,
      async (connection) => {
        await connection.query('select from delivery_attempt where event_id = $1 for update', [killed?.eventId]);
        repaired = engine.repair();
        await engine.isWaiting(engine.statements.repairDeliveriesSql, repaired);
        await engine.admit(late as Run);
      },
      engine.owner,
    );
    expect(await repaired).toMatchObject([{ eventId: killed?.eventId, kind: 'lost' }]);
    const states = await engine.deliveries(hook);
    expect(states.find(({ eventId }) => eventId === late?.eventId)).toMatchObject({ state: 'running' });
  },

  'a late 2xx delivers, also what is queued again, exhausted or lost': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    const attempt = await engine.admit(claim as Run);
    for (let lost = 0; lost < scheduleAttempts + lostRepeats; lost += 1) {
      await engine.pass([hook], 26);
      await engine.repair();
      await engine.pass([hook], 70);
      const [next] = await engine.claim([hook]);
      if (next !== undefined) await engine.admit(next);
    }
    expect(await engine.delivery(hook)).toMatchObject({ state: 'exhausted' });
    expect(await engine.record(attempt, { outcome: 'delivered' })).toEqual({ state: 'delivered' });
    expect((await engine.attempts(hook))[0]).toMatchObject({ cause: 'accepted' });
  },

  'an outcome closes its attempt and frees its slot in the statement that settles the delivery': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    await engine.attempt(claim as Run, { outcome: 'delivered' });
    expect(await engine.delivery(hook)).toMatchObject({ state: 'delivered', hasAttempt: null, attempts: 1 });
    expect(await engine.attempts(hook)).toMatchObject([{ cause: 'accepted', number: 1, endsSchedule: false }]);
  },

  'a cancelled delivery stays cancelled, whatever its attempt in progress brings': async (engine) => {
    for (const outcome of ['delivered', 'failed'] as const) {
      const hook = await engine.webhook({ events: 1 });
      const [claim] = await engine.claim([hook]);
      const attempt = await engine.admit(claim as Run);
      expect(await engine.cancel(claim as Run)).toBe(true);
      expect(await engine.cancel(claim as Run)).toBe(false);
      expect(await engine.record(attempt, { outcome })).toEqual({ state: 'cancelled' });
      expect((await engine.attempts(hook))[0]?.cause).toMatch(/^(accepted|answered_server_error)$/);
      expect(await engine.delivery(hook)).toMatchObject({ state: 'cancelled', failures: 0, hasAttempt: null });
      expect(await engine.redeliver(claim as Run)).toBeUndefined();
    }
  },

  'an outcome whose attempt PostgreSQL has lost is inserted with its post, and settles in sequence': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    const attempt = await engine.admit(claim as Run);
    await engine.owner.query('delete from slot where webhook_id = $1', [hook.webhookId]);
    await engine.owner.query('delete from delivery_attempt where webhook_id = $1', [hook.webhookId]);
    await engine.owner.query(`update delivery set state = 'queued', run = 0, sequence = null where webhook_id = $1`, [
      hook.webhookId,
    ]);
    await engine.owner.query('update receiver set next_sequence = 1 where webhook_id = $1', [hook.webhookId]);
    expect(await engine.record(attempt, { outcome: 'delivered' })).toEqual({ state: 'delivered' });
    expect(await engine.delivery(hook)).toMatchObject({ state: 'delivered', attempts: 1, sequence: 1 });
    expect(await engine.receiver(hook)).toMatchObject({ nextSequence: 2 });
  },

  'an outcome whose attempt PostgreSQL has lost gets a number of its own beside a newer attempt': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    const forgotten = await engine.admit(claim as Run);
    await engine.forgetAdmission(hook);
    const newer = await engine.admit(claim as Run);
    for (const attempt of [forgotten, newer, forgotten]) await engine.record(attempt);
    expect(await engine.attempts(hook)).toMatchObject([
      { id: forgotten.id, number: 2 },
      { id: newer.id, number: 1 },
    ]);
    expect(await engine.delivery(hook)).toMatchObject({ state: 'running', attempts: 2, failures: 1 });
  },

  'an outcome whose attempt PostgreSQL has lost waits for the admission of a newer one, and sees its number': async (
    engine,
  ) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    const forgotten = await engine.admit(claim as Run);
    await engine.forgetAdmission(hook);
    let recorded: Promise<unknown> = Promise.resolve();
    await inTransaction(engine, async (connection) => {
      await engine.ask(claim as Run, randomUUID(), connection);
      recorded = engine.record(forgotten);
      await engine.isWaiting(engine.statements.recordOutcomeSql, recorded);
    });
    await recorded;
    expect((await engine.attempts(hook)).map(({ number }) => number).sort()).toEqual([1, 2]);
  },

  'a 2xx whose record is repeated ends no delivery that was sent again meanwhile': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    const attempt = await engine.admit(claim as Run);
    await engine.record(attempt, { outcome: 'delivered' });
    expect(await engine.redeliver(claim as Run)).toBe('queued');
    await engine.record(attempt, { outcome: 'delivered' });
    expect(await engine.delivery(hook)).toMatchObject({ state: 'queued', attempts: 1 });
  },

  'an internal error counts no failure, of the delivery or of its receiver': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    await engine.attempt(claim as Run, { outcome: 'internal_error', waitMs: 15_000 });
    const delivery = await engine.delivery(hook);
    expect(delivery).toMatchObject({ state: 'running', failures: 0, attempts: 1, hasAttempt: null });
    expect(delivery.dueInSeconds).toBeGreaterThan(14);
    expect(await engine.receiver(hook)).toMatchObject({ concurrency: 10, isFailing: false });
  },

  'a run that is a minute late goes back to the queue, and one with a slot or before its time stays': async (
    engine,
  ) => {
    const hook = await engine.webhook({ events: 2 });
    const [late, attempted] = await engine.claim([hook]);
    await engine.attempt(late as Run, { waitMs: 1_000 });
    await engine.pass([hook], 60);
    await engine.admit(attempted as Run).catch(() => {}); // its reservation has passed, not expired yet
    expect((await engine.repair()).filter(({ webhookId }) => webhookId === hook.webhookId)).toEqual([]);
    await engine.owner.query(`update delivery set due_at = due_at - interval '2 s' where webhook_id = $1`, [
      hook.webhookId,
    ]);
    expect((await engine.repair()).filter(({ webhookId }) => webhookId === hook.webhookId)).toMatchObject([
      { kind: 'late', eventId: late?.eventId, state: 'queued' },
    ]);
    expect(await engine.delivery(hook)).toMatchObject({ failures: 1, run: 1 });
  },

  'a claim that was not started is free at once, unless its attempt was admitted': async (engine) => {
    const hook = await engine.webhook({ events: 2 });
    const claims = await engine.claim([hook]);
    await engine.admit(claims[1] as Run);
    await engine.returnClaims(claims);
    expect(await engine.deliveries(hook)).toMatchObject(
      [
        { state: 'queued', hasAttempt: null, sequence: 1 },
        { state: 'running', hasAttempt: true, sequence: 2 },
      ].sort((a, b) => (claims[1]?.eventId === undefined ? 0 : a.sequence - b.sequence)),
    );
    const [again] = await engine.claim([hook]);
    await engine.returnClaims(claims); // an old claim does not end the newer one
    expect(again).toMatchObject({ run: 2 });
    expect(await engine.delivery(hook)).toMatchObject({ state: 'running', run: 2, hasAttempt: false });
  },

  'a redelivery starts the schedule again, and a retry now keeps its position': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    await engine.attempt(claim as Run);
    expect(await engine.redeliver(claim as Run)).toBe('queued');
    expect(await engine.delivery(hook)).toMatchObject({ state: 'queued', failures: 1 });
    const [retry] = await engine.claim([hook]);
    expect(retry).toMatchObject({ run: 2 });
    const attempt = await engine.admit(retry as Run);
    expect(attempt).toMatchObject({ failures: 1, number: 2 });
    expect(await engine.redeliver(claim as Run)).toBe('attempting');
    expect(await engine.delivery(hook)).toMatchObject({ state: 'running', hasAttempt: true });
    await engine.record(attempt, { outcome: 'delivered' });
    expect(await engine.redeliver(claim as Run)).toBe('queued');
    expect(await engine.delivery(hook)).toMatchObject({ state: 'queued', failures: 0, sequence: 1 });
    const [again] = await engine.claim([hook]);
    expect(await engine.admit(again as Run)).toMatchObject({ run: 3, number: 3, failures: 0, sequence: '1' });
  },

  'a pause and a resume keep the position in the schedule, and what slept is due first': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    await engine.attempt(claim as Run, { waitMs: 3_600_000 });
    expect(await engine.requeueHeld()).toEqual([]);
    await engine.change(hook, 'paused');
    expect(await engine.requeueHeld()).toEqual([{ deliveries: 1 }]);
    await engine.events(hook.organizationId, 1);
    await engine.change(hook, 'active');
    expect(await engine.receiver(hook)).toMatchObject({ concurrency: 1, isFailing: false, exhaustedInRow: 0 });
    const [first] = await engine.claim([hook]);
    expect(first).toMatchObject({ eventId: claim?.eventId, run: 2 });
    expect(await engine.admit(first as Run)).toMatchObject({ failures: 1, number: 2 });
  },

  'a deleted webhook’s deliveries are cancelled, also one that was stored meanwhile': async (engine) => {
    const hook = await engine.webhook({ events: 2 });
    const [claim] = await engine.claim([hook], { healthy: 1 });
    await engine.attempt(claim as Run);
    await engine.change(hook, 'deleted');
    expect(await engine.cancelDeleted()).toEqual([{ deliveries: 2 }]);
    await engine.owner.query(`update webhook set state_at = now() - interval '2 hours' where id = $1`, [
      hook.webhookId,
    ]);
    await engine.owner.query(
      `update delivery set state = 'queued', due_at = now(), settled_at = null where event_id = $1`,
      [claim?.eventId],
    );
    expect(await engine.cancelDeleted()).toEqual([]);
    expect(await engine.listQueued()).toContainEqual({ ...hook, state: 'deleted', mustWait: false });
    expect(await engine.cancelDeleted([hook.webhookId])).toEqual([{ deliveries: 1 }]);
  },

  'one statement cancels no more than its limit, of all deleted webhooks together': async (engine) => {
    const hooks = [await engine.webhook({ events: 60 }), await engine.webhook({ events: 60 })];
    for (const hook of hooks) await engine.change(hook, 'deleted');
    for (let cancelled = 100; cancelled > 0; ) {
      const rows = await engine.cancelDeleted([], 100);
      cancelled = rows.reduce((sum, { deliveries }) => sum + deliveries, 0);
      expect(cancelled).toBeLessThanOrEqual(100);
    }
    const states = (await Promise.all(hooks.map((hook) => engine.deliveries(hook)))).flat().map(({ state }) => state);
    expect(states.filter((state) => state === 'cancelled')).toHaveLength(120);
  },

  'a failure halves the concurrency, a 2xx doubles it, a slow one leaves three': async (engine) => {
    const hook = await engine.webhook({ events: 9 });
    const claims = await engine.claim([hook]);
    const endings = [
      [{ outcome: 'failed' }, 5],
      [{ outcome: 'failed' }, 2],
      [{ outcome: 'failed' }, 1],
      [{ outcome: 'failed' }, 1],
      [{ outcome: 'delivered', tookMs: 200 }, 2],
      [{ outcome: 'delivered', tookMs: 2_000 }, 4],
      [{ outcome: 'delivered', tookMs: 5_000 }, 3],
    ] as const;
    for (const [index, [ending, concurrency]] of endings.entries()) {
      await engine.attempt(claims[index] as Run, ending);
      expect([index, await engine.receiver(hook)]).toMatchObject([
        index,
        { concurrency, isFailing: ending.outcome === 'failed' },
      ]);
    }
    await engine.setConcurrency(hook, 8);
    await engine.attempt(claims[7] as Run, { outcome: 'delivered', tookMs: 5_000 });
    expect(await engine.receiver(hook)).toMatchObject({ concurrency: 4 });
    await engine.attempt(claims[8] as Run, { outcome: 'delivered', tookMs: 5_000 });
    expect(await engine.receiver(hook)).toMatchObject({ concurrency: 3 });
  },

  'Retry-After delays the webhook for its time, and then one delivery goes first': async (engine) => {
    const hook = await engine.webhook({ events: 8 });
    const claims = await engine.claim([hook], { healthy: 3 });
    const [limited, other] = [await engine.admit(claims[0] as Run), await engine.admit(claims[1] as Run)];
    await engine.record(limited, { status: 429, retryAfterS: 20 });
    expect(await engine.receiver(hook)).toMatchObject({ concurrency: 1 });
    await engine.record(other, { outcome: 'delivered' }); // it was sent before the receiver said so
    expect(await engine.receiver(hook)).toMatchObject({ concurrency: 1 });
    expect(await engine.ask(claims[2] as Run)).toMatchObject({ decision: 'end' });
    await engine.pass([hook], 19);
    expect(await engine.claim([hook])).toEqual([]);
    await engine.pass([hook], 1.5);
    const probe = await engine.claim([hook]);
    expect(probe).toHaveLength(1);
    await engine.attempt(probe[0] as Run, { outcome: 'delivered' });
    expect(await engine.claim([hook])).toHaveLength(2);
  },

  'nothing waits for an hour because the clock was set back by one': async (engine) => {
    const setBack = (hook: Hook) => engine.pass([hook], -3_600);
    const hook = await engine.webhook({ events: 1 });
    await setBack(hook);
    const [claim] = await engine.claim([hook]);
    expect(claim).toBeDefined();

    // An attempt in progress keeps its slot for its own time, and no longer.
    const attempt = await engine.admit(claim as Run);
    await setBack(hook);
    const other = await engine.ask(claim as Run);
    expect(other).toMatchObject({ decision: 'wait' });
    expect((other as { waitMs: number }).waitMs).toBeLessThanOrEqual(26_000);
    expect(await engine.repair()).toEqual([]);
    await engine.pass([hook], 20);
    expect(await engine.repair()).toEqual([]);
    await engine.record(attempt, { waitMs: 30_000 });

    // A retry that a run asks for has waited by Temporal's clock.
    await setBack(hook);
    const retried = await engine.admit(claim as Run);
    await setBack(hook);
    expect(await engine.repair()).toEqual([]);
    await engine.pass([hook], 26);
    expect(await engine.repair()).toMatchObject([{ kind: 'lost', number: retried.number }]);

    const told = await engine.webhook({ events: 2 });
    const [first] = await engine.claim([told], { healthy: 1 });
    await engine.attempt(first as Run, { status: 503, retryAfterS: 60 });
    await setBack(told);
    const [second] = await engine.claim([told]);
    expect(second).toBeDefined();
    await engine.attempt(second as Run, { status: 503, retryAfterS: 60 });
    expect((await engine.receiver(told)).retryAfterSeconds).toBeLessThanOrEqual(60);
  },

  'events of a subject stay in order when the clock is set back between them': async (engine) => {
    const hook = await engine.webhook();
    const subject = randomUUID();
    await engine.events(hook.organizationId, 1, subject);
    const [given] = await engine.claim([hook]);
    await engine.pass([hook], -3_600);
    await engine.events(hook.organizationId, 2, subject, 'seat.ended');
    await engine.events(hook.organizationId, 1, randomUUID());
    expect(await engine.unblock()).toBe(0);
    // Another subject is in no order with these, and nothing waits for the clock to catch up.
    const [other] = await engine.claim([hook]);
    expect(other?.eventId).not.toBe(given?.eventId);
    const states = async () => {
      const deliveries = (await engine.deliveries(hook)).filter(({ subjectId }) => subjectId === subject);
      expect(deliveries[0]?.eventId).toBe(given?.eventId);
      return deliveries.map(({ state }) => state);
    };
    expect(await states()).toEqual(['running', 'blocked', 'blocked']);
    await engine.attempt(given as Run, { outcome: 'delivered' });
    expect(await states()).toEqual(['delivered', 'queued', 'blocked']);
    expect(await engine.claim([hook])).toHaveLength(1);

    // Also after the last one was settled. Receivers see the order in milliseconds, and in sequence numbers.
    await engine.owner.query(
      `update delivery set state = 'cancelled', due_at = null, settled_at = now()
      where due_at is not null and subject_id = $1`,
      [subject],
    );
    await engine.events(hook.organizationId, 1, subject);
    const { rows } = await engine.owner.query<{ at: string; id: string }>(
      `select e.body::json ->> 'createdAt' as at, e.id from event e where e.subject_id = $1 order by e.created_at`,
      [subject],
    );
    const later = rows.slice(1); // the first is from before the step
    expect(later.map(({ at }) => at)).toEqual(later.map(({ at }) => at).sort());
    expect(Date.parse(later[0]?.at ?? '')).toBeGreaterThan(Date.now() + 3_000_000);
    expect(later.map(({ id }) => id)).toEqual(later.map(({ id }) => id).sort());
    expect(await engine.deliveries(hook)).toHaveLength(5);
  },

  'a failure holds its webhook only with Retry-After': async (engine) => {
    const hook = await engine.webhook({ events: 2 });
    const claims = await engine.claim([hook]);
    await engine.attempt(claims[0] as Run);
    expect(await engine.receiver(hook)).toMatchObject({ retryAfterSeconds: null });
    await engine.attempt(claims[1] as Run, { status: 503, retryAfterS: 3_600 });
    const { retryAfterSeconds } = await engine.receiver(hook);
    expect(retryAfterSeconds).toBeGreaterThan(3_590);
    expect(retryAfterSeconds).toBeLessThanOrEqual(3_600);
  },

  'of one subject, an event waits until the one before is settled, and delays no other subject': async (engine) => {
    const hook = await engine.webhook();
    const [poisoned, other] = [randomUUID(), randomUUID()];
    await engine.events(hook.organizationId, 4, poisoned);
    await engine.events(hook.organizationId, 1, other);
    await engine.events(hook.organizationId, 1);
    const states = async () => (await engine.deliveries(hook)).map(({ state }) => state);
    expect(await states()).toEqual(['queued', 'blocked', 'blocked', 'blocked', 'queued', 'queued']);
    const claims = await engine.claim([hook]);
    expect(claims).toHaveLength(3);
    const inOrder = await engine.deliveries(hook);
    expect(await engine.unblock()).toBe(0);
    await engine.attempt(inOrder[0] as Run);
    for (const free of inOrder.slice(4)) await engine.attempt(free, { outcome: 'delivered' });
    expect(await states()).toEqual(['running', 'blocked', 'blocked', 'blocked', 'delivered', 'delivered']);
    await engine.pass([hook], 60);
    await engine.attempt(inOrder[0] as Run, { outcome: 'delivered' });
    expect((await states()).slice(0, 4)).toEqual(['delivered', 'queued', 'blocked', 'blocked']);

    const [second] = await engine.claim([hook]);
    for (let made = 0; made < scheduleAttempts; made += 1) {
      expect(await engine.claim([hook])).toEqual([]);
      await engine.attempt(second as Run);
      await engine.pass([hook], 60);
    }
    expect((await states()).slice(0, 4)).toEqual(['delivered', 'exhausted', 'queued', 'blocked']);
    expect(await engine.cancel(inOrder[2] as Run)).toBe(true);
    expect((await states()).slice(0, 4)).toEqual(['delivered', 'exhausted', 'cancelled', 'queued']);
  },

  'an event whose attempts kill their workers unblocks the next of its subject, and not before it ends': async (
    engine,
  ) => {
    const hook = await engine.webhook();
    await engine.events(hook.organizationId, 2, randomUUID());
    for (let made = 0; made < scheduleAttempts + lostRepeats; made += 1) {
      expect((await engine.deliveries(hook))[1]).toMatchObject({ state: 'blocked' });
      const [claim] = await engine.claim([hook]);
      await engine.admit(claim as Run);
      await engine.pass([hook], 26);
      await engine.repair();
      await engine.pass([hook], 70);
    }
    expect(await engine.deliveries(hook)).toMatchObject([{ state: 'exhausted' }, { state: 'queued' }]);
  },

  'two events of a subject that a repair ends at once unblock the next one': async (engine) => {
    const hook = await engine.webhook();
    const key = randomUUID();
    await engine.events(hook.organizationId, 1, key);
    const [first] = await engine.claim([hook]);
    await engine.attempt(first as Run, { outcome: 'delivered' });
    await engine.events(hook.organizationId, 2, key);
    await engine.redeliver(first as Run); // beside the second
    await engine.owner.query('update delivery set failures = $2 where webhook_id = $1', [
      hook.webhookId,
      scheduleAttempts + lostRepeats - 1,
    ]);
    for (const claim of await engine.claim([hook])) await engine.admit(claim);
    await engine.pass([hook], 26);
    await engine.repair();
    const states = (await engine.deliveries(hook)).map(({ state }) => state);
    expect(states).toEqual(['exhausted', 'exhausted', 'queued']);
  },

  'an event whose writer and the settlement before it did not see each other is unblocked': async (engine) => {
    const hook = await engine.webhook();
    const key = randomUUID();
    await engine.events(hook.organizationId, 1, key);
    const [claim] = await engine.claim([hook]);
    await inTransaction(
      engine,
      async (connection) => {
        await connection.query(`select record_event($1, 'seat.given', '{}', $2)`, [hook.organizationId, key]);
        await engine.attempt(claim as Run, { outcome: 'delivered' });
      },
      engine.owner,
    );
    await engine.events(hook.organizationId, 1, key);
    expect(await engine.deliveries(hook)).toMatchObject([
      { state: 'delivered' },
      { state: 'blocked' },
      { state: 'blocked' },
    ]);
    expect(await engine.unblock()).toBe(1);
    expect(await engine.deliveries(hook)).toMatchObject([
      { state: 'delivered' },
      { state: 'queued' },
      { state: 'blocked' },
    ]);
    expect(await engine.unblock()).toBe(0);
  },

  'a redelivery waits for no event of its subject, and a new event waits for it': async (engine) => {
    const hook = await engine.webhook();
    const key = randomUUID();
    await engine.events(hook.organizationId, 1, key);
    const [first] = await engine.claim([hook]);
    await engine.attempt(first as Run, { outcome: 'delivered' });
    await engine.events(hook.organizationId, 1, key);
    const [second] = await engine.claim([hook]);
    expect(await engine.redeliver(first as Run)).toBe('queued');
    await engine.events(hook.organizationId, 2, key);
    await engine.attempt(second as Run, { outcome: 'delivered' });
    const states = async () => (await engine.deliveries(hook)).map(({ state }) => state);
    expect(await states()).toEqual(['queued', 'delivered', 'blocked', 'blocked']);
    const [again] = await engine.claim([hook]);
    await engine.attempt(again as Run, { outcome: 'delivered' });
    expect(await states()).toEqual(['delivered', 'delivered', 'queued', 'blocked']);
    const [, , , blocked] = await engine.deliveries(hook);
    expect(await engine.redeliver(blocked as Run)).toBe('queued');
    expect(await states()).toEqual(['delivered', 'delivered', 'queued', 'queued']);
  },

  'a webhook without order holds nothing back, also what waited when order was turned off': async (engine) => {
    const ordered = await engine.webhook();
    const hook = await engine.webhook({ organizationId: ordered.organizationId });
    const key = randomUUID();
    await engine.events(hook.organizationId, 2, key);
    await turnOrderOff(engine, hook);
    await engine.events(hook.organizationId, 1, key);
    await engine.pass([hook], 3_600);
    const states = async () => (await engine.deliveries(hook)).map(({ state }) => state);
    expect(await states()).toEqual(['queued', 'blocked', 'queued']);
    expect(await engine.unblock()).toBe(1);
    expect(await states()).toEqual(['queued', 'queued', 'queued']);
    expect((await engine.deliveries(hook))[1]?.dueInSeconds).toBeGreaterThan(-60);
    expect((await engine.deliveries(ordered)).map(({ state }) => state)).toEqual(['queued', 'blocked', 'blocked']);
  },

  'what waits on a paused webhook is not unblocked before it is resumed': async (engine) => {
    const hook = await engine.webhook();
    await engine.events(hook.organizationId, 2, randomUUID());
    await turnOrderOff(engine, hook);
    await engine.change(hook, 'paused');
    expect(await engine.unblock()).toBe(0);
    await engine.change(hook, 'active');
    expect(await engine.unblock()).toBe(1);
  },

  'nothing waits for an event of a type that was removed from the webhook, also what waited before': async (engine) => {
    const hook = await engine.webhook();
    await engine.webhook({ organizationId: hook.organizationId });
    const [earlier, later] = [randomUUID(), randomUUID()];
    for (const subject of [earlier, later]) await engine.events(hook.organizationId, 1, subject);
    await engine.events(hook.organizationId, 2, earlier, 'seat.ended');
    await engine.owner.query(`update webhook set event_types = '{seat.ended}' where id = $1`, [hook.webhookId]);
    await engine.events(hook.organizationId, 2, later, 'seat.ended');
    const of = async (subject: string) =>
      (await engine.deliveries(hook)).filter(({ subjectId }) => subjectId === subject);
    const states = async (subject: string) => (await of(subject)).map(({ state }) => state);
    expect(await states(later)).toEqual(['queued', 'queued', 'blocked']);
    expect(await states(earlier)).toEqual(['queued', 'blocked', 'blocked']);
    expect(await engine.unblock()).toBe(1);
    expect(await states(earlier)).toEqual(['queued', 'queued', 'blocked']);
    expect(await engine.cancel((await of(earlier))[1] as Run)).toBe(true);
    expect(await states(earlier)).toEqual(['queued', 'cancelled', 'queued']);
  },

  'turning order off locks no delivery, however many wait': async (engine) => {
    const hook = await engine.webhook();
    await engine.events(hook.organizationId, 2, randomUUID());
    await inTransaction(
      engine,
      async (connection) => {
        await connection.query('select from delivery where webhook_id = $1 for update', [hook.webhookId]);
        await inTransaction(
          engine,
          async (change) => {
            await change.query(`set local lock_timeout = '1s'`);
            await change.query('update webhook set ordered = false where id = $1', [hook.webhookId]);
          },
          engine.owner,
        );
      },
      engine.owner,
    );
    expect(await engine.unblock()).toBe(1);
  },

  'an event unblocked by a request while the one before is settled is still waited for': async (engine) => {
    const hook = await engine.webhook();
    const { organizationId, webhookId } = hook;
    await engine.events(organizationId, 3, randomUUID());
    const [first] = await engine.claim([hook]);
    const attempt = await engine.admit(first as Run);
    const second = (await engine.deliveries(hook))[1];
    let settled: Promise<unknown> = Promise.resolve();
    await inTransaction(
      engine,
      async (connection) => {
        const values = [organizationId, webhookId, second?.eventId];
        await connection.query(engine.statements.redeliverOneSql, values);
        settled = engine.record(attempt, { outcome: 'delivered' });
        await engine.isWaiting(engine.statements.recordOutcomeSql, settled);
      },
      engine.owner,
    );
    await settled;
    const states = (await engine.deliveries(hook)).map(({ state }) => state);
    expect(states).toEqual(['delivered', 'queued', 'blocked']);
  },

  '410 Gone suspends the webhook with its own cause': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    await engine.attempt(claim as Run, { status: 410 });
    expect(await engine.suspend()).toMatchObject([{ webhookId: hook.webhookId, reason: 'gone' }]);
    const { rows } = await engine.owner.query(
      `select w.state, w.suspended_reason, a.detail ->> 'reason' as reason from webhook w
       join audit_entry a on a.organization_id = w.organization_id and a.action = 'webhook.suspend' where w.id = $1`,
      [hook.webhookId],
    );
    expect(rows).toEqual([{ state: 'suspended', suspended_reason: 'gone', reason: 'gone' }]);
    expect(await engine.suspend()).toEqual([]);
    await engine.change(hook, 'active');
    expect(await engine.suspend()).toEqual([]);
  },

  'two events that failed at their last attempt suspend a webhook that has long accepted nothing': async (engine) => {
    const hook = await engine.webhook({ events: 2 });
    const claims = await engine.claim([hook]);
    const exhaust = async (run: Run) => {
      for (let made = 0; made < scheduleAttempts; made += 1) {
        await engine.attempt(run);
        await engine.pass([hook], 59.5);
      }
    };
    await exhaust(claims[0] as Run);
    await engine.redeliver(claims[0] as Run);
    await engine.repair();
    expect(await engine.cancel(claims[1] as Run)).toBe(true);
    await engine.events(hook.organizationId, 1);
    const [again] = await engine.claim([hook]);
    await exhaust(again as Run); // the same event is no second one
    await engine.pass([hook], 4_000);
    expect(await engine.suspend()).toEqual([]);
    const [second] = await engine.claim([hook]);
    await exhaust(second as Run);
    expect(await engine.suspend(100_000)).toEqual([]);
    expect(await engine.suspend()).toMatchObject([{ webhookId: hook.webhookId, reason: 'failures' }]);
  },

  'a last attempt that is lost or has an internal error is made again, and its failure counts for suspension': async (
    engine,
  ) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    for (const outcome of ['failed', 'failed', 'internal_error'] as const) {
      await engine.attempt(claim as Run, { outcome });
      await engine.pass([hook], 60);
    }
    await engine.admit(claim as Run);
    await engine.pass([hook], 26);
    await engine.repair();
    await engine.pass([hook], 70);
    const [again] = await engine.claim([hook]);
    expect(await engine.attempt(again as Run)).toMatchObject({ state: 'exhausted' });
    expect(await engine.receiver(hook)).toMatchObject({ exhaustedInRow: 1 });
  },

  'an attempt in progress at a former URL says nothing of the new receiver': async (engine) => {
    const hook = await engine.webhook({ events: 2 });
    const [first, second] = await engine.claim([hook]);
    const attempt = await engine.admit(first as Run);
    await engine.owner.query(`update webhook set url = url || '/elsewhere' where id = $1`, [hook.webhookId]);
    await engine.record(attempt, { status: 410, retryAfterS: 20 });
    expect(await engine.receiver(hook)).toMatchObject({ isFailing: false, isGone: false, retryAfterSeconds: null });
    await engine.attempt(second as Run, { status: 410 });
    expect(await engine.receiver(hook)).toMatchObject({ isFailing: true, isGone: true });
  },

  'an attempt that is admitted while its webhook gets another URL says nothing of that one': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    let attempt: Attempt | null = null;
    await inTransaction(
      engine,
      async (connection) => {
        await connection.query(`update webhook set url = url || '/elsewhere' where id = $1`, [hook.webhookId]);
        attempt = await engine.admit(claim as Run);
        expect(attempt.url).not.toMatch(/elsewhere$/);
      },
      engine.owner,
    );
    await engine.record(attempt as unknown as Attempt, { status: 410, retryAfterS: 20 });
    expect(await engine.receiver(hook)).toMatchObject({ isFailing: false, isGone: false, retryAfterSeconds: null });
  },

  'an open transaction on a webhook’s row stops no claim, attempt, outcome or repair': async (engine) => {
    const hook = await engine.webhook({ events: 3 });
    await inTransaction(
      engine,
      async (connection) => {
        await connection.query('update webhook set description = $2 where id = $1', [hook.webhookId, 'changed']);
        const claims = await engine.claim([hook]);
        await engine.attempt(claims[0] as Run, { outcome: 'delivered' });
        await engine.attempt(claims[1] as Run, { status: 410 });
        await engine.pass([hook], 30);
        expect((await engine.repair()).some(({ webhookId }) => webhookId === hook.webhookId)).toBe(true);
        expect(await engine.suspend()).toEqual([]); // the next one suspends it
      },
      engine.owner,
    );
    expect(await engine.suspend()).toMatchObject([{ webhookId: hook.webhookId }]);
  },

  'an open transaction that has locked a receiver or a delivery stops no other webhook or delivery': async (engine) => {
    const hook = await engine.webhook({ events: 3 });
    const other = await engine.webhook({ events: 1 });
    const [retry] = await engine.claim([hook], { healthy: 1 });
    await engine.attempt(retry as Run);
    await engine.pass([hook], 60);
    const hold = (text: string, values: unknown[], work: () => Promise<void>) =>
      inTransaction(engine, (connection) => connection.query(text, values).then(work), engine.owner);
    await hold(`update webhook set url = url || '/elsewhere' where id = $1`, [hook.webhookId], async () => {
      expect(await engine.claim([hook, other])).toMatchObject([other]);
    });
    await hold('select from delivery where event_id = $1 for no key update', [retry?.eventId], async () => {
      let claims: Run[] = [];
      await inTransaction(engine, async (connection) => {
        expect(await engine.ask(retry as Run, randomUUID(), connection)).toMatchObject({ decision: 'lock_busy' });
        claims = await engine.claim([hook]);
      });
      await engine.returnClaims([retry as Run, ...claims]);
      expect(await engine.claim([hook])).toMatchObject(claims.map(({ eventId }) => ({ eventId, run: 2 })));
    });
    await engine.owner.query('delete from slot where webhook_id = $1', [hook.webhookId]);
    expect(await engine.ask(retry as Run)).toMatchObject({ decision: 'admitted', number: 2 });
  },
};

export const turnOrderOff = (engine: Engine, { webhookId }: Hook) =>
  engine.owner.query('update webhook set ordered = false where id = $1', [webhookId]);

export async function inTransaction(
  engine: Engine,
  work: (connection: PoolClient) => Promise<void>,
  pool = engine.worker,
): Promise<void> {
  const connection = await pool.connect();
  try {
    await connection.query('begin');
    await work(connection);
    await connection.query('commit');
  } catch (error) {
    await connection.query('rollback');
    throw error;
  } finally {
    connection.release();
  }
}
