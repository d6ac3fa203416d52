import { randomUUID } from 'node:crypto';
import type { Pool, PoolClient } from 'pg';
import { expect } from 'vitest';
import { cancelOneSql } from '#delivery/sql/requests.ts';
import {
  type Attempt,
  type DeliveryState,
  type Engine,
  type Hook,
  lostRepeats,
  type Run,
  type Statements,
  scheduleAttempts,
} from '#test/delivery-engine.ts';
import { inTransaction, turnOrderOff } from './scenarios.ts';

/** What the statements guarantee beside other deliveries and transactions. */
export const scenariosBesideOthers: Record<string, (engine: Engine) => Promise<void>> = {
  'a change of a delivery changes no other one, of its webhook, its subject, its event or its organization': async (
    engine,
  ) => {
    for (const [name, change] of Object.entries(changes)) await expectOnlyTarget(engine, name, change);
  },

  'a claim, a pause, a deletion or a suspension changes only the deliveries of its webhook': async (engine) => {
    const changeOne: Record<string, (hook: Hook) => Promise<unknown>> = {
      'queued blocked queued blocked': async (hook) => {
        await engine.change(hook, 'paused');
        expect(await engine.requeueHeld()).toEqual([{ deliveries: 2 }]);
      },
      'cancelled cancelled cancelled cancelled': async (hook) => {
        await engine.change(hook, 'deleted');
        expect(await engine.cancelDeleted()).toEqual([{ deliveries: 4 }]);
      },
      'running blocked running blocked': async (hook) => {
        await engine.owner.query('update receiver set gone_at = now() where webhook_id = $1', [hook.webhookId]);
        expect(await engine.suspend()).toMatchObject([hook]);
      },
    };
    for (const [states, change] of Object.entries(changeOne)) {
      const { hooks, claims } = await openSubjects(engine);
      for (const claim of claims) await sleep(engine, claim);
      await change(hooks[1]);
      const after = (await readStates(engine, hooks)).map((one) => one.split(' ')[0]).join(' ');
      expect(after).toBe(`running blocked running blocked ${states}`);
      expect([await engine.requeueHeld(), await engine.cancelDeleted()].flat().length).toBeLessThan(2);
      await engine.reset();
    }
  },

  'a statement that has waited for another change of its delivery sees it': async (engine) => {
    const waits: [keyof Statements, before: Step | null, first: Step, second: Step, after: string][] = [
      ['recordOutcomeSql', null, cancel, (run) => engine.record(run), 'cancelled'],
      ['recordOutcomeSql', null, cancel, (run) => engine.record(run, { outcome: 'delivered' }), 'cancelled'],
      ['redeliverOneSql', (run) => engine.record(run), cancel, (run) => engine.redeliver(run), 'cancelled'],
      ['cancelOneSql', null, accept, (run) => engine.cancel(run), 'delivered'],
    ];
    for (const [statement, before, first, second, after] of waits) {
      const hook = await engine.webhook({ events: 1 });
      const [claim] = await engine.claim([hook]);
      const attempt = await engine.admit(claim as Run);
      await before?.(attempt, engine.owner, engine);
      let result: Promise<unknown> = Promise.resolve();
      await inTransaction(
        engine,
        async (connection) => {
          await first(attempt, connection, engine);
          result = second(attempt, connection, engine);
          await engine.isWaiting(engine.statements[statement], result);
        },
        engine.owner,
      );
      await result;
      expect(await engine.delivery(hook)).toMatchObject({ state: after });
    }
  },

  'a repair skips what another transaction has locked': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    await engine.events(hook.organizationId, 2, randomUUID());
    const [retry, claimed] = await engine.claim([hook]);
    await engine.attempt(retry as Run);
    await engine.pass([hook], 200);
    await turnOrderOff(engine, hook);
    const deleted = await engine.webhook({ events: 1 });
    await engine.change(deleted, 'deleted');
    const paused = await engine.webhook({ events: 1 });
    for (const claim of await engine.claim([paused])) await sleep(engine, claim);
    await engine.change(paused, 'paused');
    const repair = async () => [
      (await engine.repair()).length,
      await engine.unblock(),
      (await engine.requeueHeld()).length,
      (await engine.cancelDeleted()).length,
    ];
    await inTransaction(
      engine,
      async (connection) => {
        const ids = [hook, deleted, paused].map(({ webhookId }) => webhookId);
        await connection.query('select from delivery where webhook_id = any ($1) for no key update', [ids]);
        await engine.returnClaims([claimed as Run]);
        expect(await repair()).toEqual([0, 0, 0, 0]);
      },
      engine.owner,
    );
    expect(await repair()).toEqual([2, 1, 1, 1]);
  },

  'a claim that is admitted while a repair looks at its slot keeps it': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    await engine.pass([hook], 11);
    let repaired: Promise<unknown> = Promise.resolve();
    await inTransaction(engine, async (connection) => {
      await engine.ask(claim as Run, randomUUID(), connection);
      repaired = engine.repair();
      await engine.isWaiting(engine.statements.repairDeliveriesSql, repaired);
    });
    expect(await repaired).toEqual([]);
    expect(await engine.delivery(hook)).toMatchObject({ state: 'running', hasAttempt: true });
  },

  'slots of a webhook, a host, healthy and degraded webhooks are counted for their own bound': async (engine) => {
    const first = await engine.webhook();
    const { organizationId } = first;
    const healthy = [first];
    for (let more = 0; more < 5; more += 1) healthy.push(await engine.webhook({ organizationId }));
    const degraded = [await engine.webhook({ organizationId }), await engine.webhook({ organizationId })];
    await engine.events(organizationId, 12);
    for (const hook of degraded) await engine.setConcurrency(hook, 4);
    const claims = await engine.claim(healthy.slice(0, 3), { healthy: 24 });
    expect(claims.map(({ isFull }) => isFull)).toEqual(Array(24).fill(false));
    claims.push(...(await engine.claim(healthy.slice(0, 3))));
    expect(claims).toHaveLength(30);
    const ofFirst = claims.filter(({ webhookId }) => webhookId === first.webhookId);
    for (const claim of ofFirst.slice(0, 3)) await engine.admit(claim);
    const fresh = await engine.claim([first]);
    expect(fresh).toEqual([]);
    await engine.returnClaims(ofFirst.slice(9));
    expect(await engine.claim([first])).toMatchObject([{ isDegraded: false }]); // two attempts have begun just now
    await engine.pass([first], 4);
    const slow = await engine.claim(healthy.slice(3, 4));
    expect(slow.filter(({ isDegraded }) => !isDegraded)).toHaveLength(10);
    const both = await engine.claim([...healthy, ...degraded], { healthy: 6 });
    expect(both.filter(({ isFull }) => isFull).map(({ isDegraded }) => isDegraded)).toEqual(Array(5).fill(true));
    both.push(...(await engine.claim(healthy)));
    expect(both.filter(({ isDegraded }) => isDegraded)).toHaveLength(5);
    expect(both).toHaveLength(15);
    const returned = both.filter(({ isDegraded }) => !isDegraded);
    await engine.returnClaims(returned);
    expect(await engine.claim(healthy)).toHaveLength(10);
    expect(await engine.claim([...healthy, ...degraded])).toEqual([]);
    await engine.setConcurrency(first, 1);
    expect(await engine.claim(healthy)).toEqual([]); // it has more than one already
  },

  'a claim takes the oldest of the webhook that has the fewest slots, and stops no other organization': async (
    engine,
  ) => {
    const host = randomUUID();
    const full = await engine.webhook({ host, events: 10 });
    const { organizationId } = full;
    const busy = await engine.webhook({ organizationId, host });
    await engine.events(organizationId, 12);
    const idle = await engine.webhook({ organizationId, host });
    await engine.events(organizationId, 12);
    await engine.claim([full]);
    await engine.claim([busy], { healthy: 3 });
    const claimIdle = async (count: number) => {
      const claims = await engine.claim([busy, idle], { healthy: count });
      expect(claims.map(({ webhookId }) => webhookId)).toEqual(Array(count).fill(idle.webhookId));
    };
    await claimIdle(2);
    const last = await engine.claim([busy, idle]); // five of the host are left
    expect(last.filter(({ webhookId }) => webhookId === idle.webhookId)).toHaveLength(3);
    expect(last.map(({ isFull }) => isFull)).toEqual(Array(5).fill(true));
    for (const hook of [busy, idle]) {
      const states = (await engine.deliveries(hook)).map(({ state }) => state);
      expect(states.slice(0, 5)).toEqual(Array(5).fill('running'));
      expect(new Set(states.slice(5))).toEqual(new Set(['queued']));
    }
    const other = await engine.webhook({ events: 1 });
    await inTransaction(engine, async (connection) => {
      await engine.claim([busy], { connection });
      expect(await engine.claim([other])).toHaveLength(1);
    });
  },

  'a slot of a settled or a cancelled delivery ends, and changes nothing of it': async (engine) => {
    const hook = await engine.webhook({ events: 2 });
    const [first, second] = await engine.claim([hook]);
    const attempt = await engine.admit(first as Run);
    await engine.pass([hook], 26);
    await engine.repair();
    await engine.pass([hook], 70);
    for (const claim of await engine.claim([hook])) await engine.admit(claim);
    await engine.record(attempt, { outcome: 'delivered' });
    const { webhookId, organizationId, eventId } = first as Run;
    await engine.owner.query('update delivery set failures = 20 where event_id = $1', [eventId]);
    await engine.pass([hook], 26);
    const readSettled = async () =>
      (await engine.owner.query('select settled_at from delivery where event_id = $1', [eventId])).rows;
    const settledAt = await readSettled();
    expect(await engine.repair()).toContainEqual(expect.objectContaining({ eventId, state: 'delivered' }));
    expect(await readSettled()).toEqual(settledAt);
    const deliveries = await engine.deliveries(hook);
    const find = (run?: Run) => deliveries.find((one) => one.eventId === run?.eventId);
    expect(find(first)).toMatchObject({ state: 'delivered', failures: 20, hasAttempt: null, dueInSeconds: null });
    expect((await engine.attempts(hook)).map(({ endsSchedule }) => endsSchedule)).not.toContain(true);
    expect(find(second)?.state).toBe('queued');

    await engine.events(organizationId, 1);
    const [cancelled] = (await engine.claim([hook])).filter((claim) => claim.eventId !== second?.eventId);
    await engine.cancel(cancelled as Run);
    await engine.returnClaims([cancelled as Run]);
    expect(await engine.ask(cancelled as Run)).toMatchObject({ decision: 'end' });
    await engine.pass([hook], 11);
    expect(await engine.repair()).toContainEqual(
      expect.objectContaining({ eventId: cancelled?.eventId, kind: 'old_slot', state: 'cancelled' }),
    );
    const after = (await engine.deliveries(hook)).find((one) => one.eventId === cancelled?.eventId);
    expect(after).toMatchObject({ hasAttempt: null, dueInSeconds: null });
    const states = (await engine.deliveries({ organizationId, webhookId })).map(({ state }) => state);
    expect(states).toContain('cancelled');
  },

  'a last attempt that fails after a late 2xx ends no redelivery': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    const late = await engine.admit(claim as Run);
    await engine.pass([hook], 26);
    await engine.repair();
    await engine.owner.query('update delivery set failures = $2, due_at = now() where webhook_id = $1', [
      hook.webhookId,
      scheduleAttempts,
    ]);
    const [again] = await engine.claim([hook]);
    const last = await engine.admit(again as Run);
    await engine.record(late, { outcome: 'delivered' });
    expect(await engine.redeliver(again as Run)).toBe('queued');
    expect(await engine.record(last)).toEqual({ state: 'queued' });
    expect(await engine.delivery(hook)).toMatchObject({ failures: 1 });
  },

  'a late failure of a last attempt ends nothing': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    await engine.owner.query('update delivery set failures = $2 where webhook_id = $1', [
      hook.webhookId,
      scheduleAttempts - 1,
    ]);
    const late = await engine.admit(claim as Run);
    await engine.pass([hook], 26);
    await engine.repair();
    await engine.pass([hook], 70);
    const [again] = await engine.claim([hook]);
    await engine.admit(again as Run);
    expect(await engine.record(late)).toEqual({ state: 'running' });
    expect(await engine.receiver(hook)).toMatchObject({ exhaustedInRow: 0 });
  },

  'a receiver that is failing is still asked to wait, and gone from its first 410': async (engine) => {
    const hook = await engine.webhook({ events: 5 });
    const claims = await engine.claim([hook]);
    const attempts: Attempt[] = [];
    for (const claim of claims) attempts.push(await engine.admit(claim));
    const [first, second, third, fourth, fifth] = attempts as [Attempt, Attempt, Attempt, Attempt, Attempt];
    for (let repeated = 0; repeated < 2; repeated += 1) await engine.record(first);
    expect(await engine.receiver(hook)).toMatchObject({ concurrency: 5 });
    await engine.setConcurrency(hook, 1);
    await engine.record(second, { status: 429, retryAfterS: 60 });
    await engine.record(third, { status: 429, retryAfterS: 20 });
    expect((await engine.receiver(hook)).retryAfterSeconds).toBeGreaterThan(50);
    await engine.record(fourth, { status: 410 });
    expect(await engine.receiver(hook)).toMatchObject({ isGone: true });
    const readGone = async () =>
      (await engine.owner.query('select gone_at from receiver where webhook_id = $1', [hook.webhookId])).rows;
    const since = await readGone();
    await engine.record(fifth, { status: 410 });
    expect(await readGone()).toEqual(since);
  },

  'a receiver begins to fail, and accepts again, without a change of its concurrency': async (engine) => {
    const hook = await engine.webhook({ events: 2 });
    const [first, second] = await engine.claim([hook]);
    await engine.setConcurrency(hook, 1);
    await engine.attempt(first as Run);
    expect(await engine.receiver(hook)).toMatchObject({ concurrency: 1, isFailing: true });
    await engine.setConcurrency(hook, 3);
    await engine.owner.query('update receiver set exhausted_in_row = 1 where webhook_id = $1', [hook.webhookId]);
    await engine.attempt(second as Run, { outcome: 'delivered', tookMs: 5_000 });
    expect(await engine.receiver(hook)).toMatchObject({ concurrency: 3, isFailing: false, exhaustedInRow: 0 });
  },

  'a late 2xx delivers what is queued again': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    const attempt = await engine.admit(claim as Run);
    await engine.pass([hook], 26);
    await engine.repair();
    expect(await engine.record(attempt, { outcome: 'delivered' })).toEqual({ state: 'delivered' });
  },

  'a retry gets no slot beyond those of its host or of degraded webhooks': async (engine) => {
    const host = randomUUID();
    const first = await engine.webhook({ host, events: 1 });
    const { organizationId } = first;
    const [retry] = await engine.claim([first]);
    await engine.attempt(retry as Run);
    const others = [await engine.webhook({ organizationId, host }), await engine.webhook({ organizationId, host })];
    await engine.events(organizationId, 10);
    expect(await engine.claim(others)).toHaveLength(20);
    await engine.pass([first], 60);
    expect(await engine.ask(retry as Run)).toMatchObject({ decision: 'end' });

    const degraded = await engine.webhook({ events: 1 });
    const [again] = await engine.claim([degraded]);
    await engine.attempt(again as Run);
    const inIt = { organizationId: degraded.organizationId };
    const hooks = [await engine.webhook(inIt), await engine.webhook(inIt)];
    await engine.events(degraded.organizationId, 4);
    for (const hook of [degraded, ...hooks]) await engine.setConcurrency(hook, 4);
    expect(await engine.claim(hooks)).toHaveLength(5);
    await engine.pass([degraded], 60);
    expect(await engine.ask(again as Run)).toMatchObject({ decision: 'end' });
  },

  'an event is of the webhooks that get its type, and waits for those of its own webhook': async (engine) => {
    const hook = await engine.webhook();
    const { organizationId } = hook;
    const other = await engine.webhook({ organizationId });
    const deleted = await engine.webhook({ organizationId });
    await engine.change(deleted, 'deleted');
    const subject = randomUUID();
    await engine.events(organizationId, 1, subject);
    const [claim] = await engine.claim([hook]);
    await engine.attempt(claim as Run, { outcome: 'delivered' });
    await engine.events(organizationId, 1, subject);
    await engine.events(organizationId, 1, null, 'client.started');
    const states = async (one: Hook) => (await engine.deliveries(one)).map(({ state }) => state);
    expect(await states(hook)).toEqual(['delivered', 'queued']);
    expect(await states(other)).toEqual(['queued', 'blocked']);
    expect(await states(deleted)).toEqual([]);
  },

  'webhooks with queued deliveries are listed once each, in their order, while the region sends': async (engine) => {
    const hooks = [await engine.webhook({ events: 2 }), await engine.webhook({ events: 2 })];
    hooks.push(await engine.webhook({ organizationId: hooks[0]?.organizationId ?? '' }));
    await engine.events(hooks[0]?.organizationId ?? '', 1);
    const busy = await engine.webhook({ events: 1 });
    await engine.claim([busy]);
    const rows = hooks.map((hook) => ({ ...hook, state: 'active', mustWait: false }));
    const key = (row: Hook) => `${row.organizationId}/${row.webhookId}`;
    expect(await engine.listQueued()).toEqual(rows.toSorted((a, b) => (key(a) < key(b) ? -1 : 1)));
    await engine.owner.query(`update delivery_switch set state = 'paused'`);
    try {
      expect(await engine.listQueued()).toEqual([]);
    } finally {
      await engine.owner.query(`update delivery_switch set state = 'running'`);
    }
  },

  'a bound delays no other webhook, and counts what is sent to its own only': async (engine) => {
    const hook = await engine.webhook();
    const { organizationId } = hook;
    const [other, bounded] = [await engine.webhook({ organizationId }), await engine.webhook({ organizationId })];
    await engine.events(organizationId, 12);
    await engine.setPostsPerSecond(hook, 1);
    await engine.setPostsPerSecond(bounded, 1);
    const others = await engine.claim([other]);
    expect(others).toHaveLength(10);
    const claims = await engine.claim([hook, other]);
    expect(claims.map(({ webhookId }) => webhookId)).toEqual([hook.webhookId, hook.webhookId]);
    for (const run of [...claims, ...others]) await engine.attempt(run, { outcome: 'delivered' });
    await engine.pass([hook], -8);
    const listed = await engine.listQueued();
    const waits = (one: Hook) => listed.find(({ webhookId }) => webhookId === one.webhookId)?.mustWait;
    expect([hook, other, bounded].map(waits)).toEqual([true, false, false]);
    const more = await engine.claim([hook, other, bounded]);
    expect(more.map(({ webhookId }) => webhookId).sort()).toEqual(
      [other, other, bounded, bounded].map(({ webhookId }) => webhookId).sort(),
    );
    await engine.setPostsPerSecond(hook, null);
    expect(await engine.claim([hook])).toHaveLength(10);
  },

  'numbers have no gap beside a redelivery, and are those of their webhook': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [first] = await engine.claim([hook]);
    await engine.attempt(first as Run, { outcome: 'delivered' });
    await engine.redeliver(first as Run);
    const other = await engine.webhook({ organizationId: hook.organizationId });
    await engine.events(hook.organizationId, 2);
    await engine.setConcurrency(other, 5);
    await engine.events(hook.organizationId, 4);
    expect(await engine.claim([hook, other])).toHaveLength(12); // 6 of them get a number of `hook`, 5 of `other`
    expect((await engine.deliveries(hook)).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect((await engine.deliveries(other)).map(({ sequence }) => sequence)).toEqual([1, 2, 3, 4, 5, null]);
    expect(await engine.receiver(hook)).toMatchObject({ nextSequence: 8 });
    expect(await engine.receiver(other)).toMatchObject({ nextSequence: 6 });
  },

  'attempts that are lost at once keep their numbers': async (engine) => {
    const { hooks, claims } = await openSubjects(engine);
    const numbers = new Map<string, number>();
    for (const [index, claim] of claims.entries()) {
      for (let made = 0; made < index; made += 1) await engine.attempt(claim, { outcome: 'internal_error', waitMs: 0 });
      const { number } = await engine.admit(claim);
      numbers.set(`${claim.webhookId} ${claim.eventId}`, number);
    }
    await engine.pass(hooks, 26);
    const rows = await engine.repair();
    expect(new Map(rows.map((row) => [`${row.webhookId} ${row.eventId}`, row.number]))).toEqual(numbers);
  },

  'a settlement that has waited for a cancellation of the next one unblocks the one after': async (engine) => {
    const hook = await engine.webhook();
    await engine.events(hook.organizationId, 3, randomUUID());
    const [claim] = await engine.claim([hook]);
    const attempt = await engine.admit(claim as Run);
    const next = (await engine.deliveries(hook))[1];
    let settled: Promise<unknown> = Promise.resolve();
    await inTransaction(
      engine,
      async (connection) => {
        await cancel(next as unknown as Attempt, connection, engine);
        settled = engine.record(attempt, { outcome: 'delivered' });
        await engine.isWaiting(engine.statements.recordOutcomeSql, settled);
      },
      engine.owner,
    );
    await settled;
    const states = (await engine.deliveries(hook)).map(({ state }) => state);
    expect(states.slice(0, 2)).toEqual(['delivered', 'cancelled']);
  },

  'a lost attempt whose delivery is locked is repaired later': async (engine) => {
    const hook = await engine.webhook();
    const locked = await engine.webhook({ organizationId: hook.organizationId });
    await engine.events(hook.organizationId, 1);
    for (const claim of await engine.claim([hook, locked])) await engine.admit(claim);
    await engine.pass([hook, locked], 26);
    await inTransaction(
      engine,
      async (connection) => {
        await connection.query('select from delivery where webhook_id = $1 for no key update', [locked.webhookId]);
        expect(await engine.repair()).toMatchObject([{ ...hook, kind: 'lost' }]);
      },
      engine.owner,
    );
    expect(await engine.repair()).toMatchObject([{ ...locked, kind: 'lost' }]);
  },

  'a webhook that was paused or suspended within the hour puts back what sleeps, and no attempt': async (engine) => {
    for (const state of ['paused', 'suspended'] as const) {
      const other = await engine.webhook();
      const hook = await engine.webhook({ organizationId: other.organizationId });
      await engine.events(hook.organizationId, 2);
      for (const claim of await engine.claim([other])) await engine.admit(claim);
      const [sleeping, attempting] = await engine.claim([hook]);
      await sleep(engine, sleeping as Run);
      await engine.admit(attempting as Run);
      await engine.change(hook, state);
      await engine.owner.query(`update webhook set state_at = now() - interval '2 hours' where id = $1`, [
        hook.webhookId,
      ]);
      expect(await engine.requeueHeld()).toEqual([]);
      await engine.owner.query('update webhook set state_at = now() where id = $1', [hook.webhookId]);
      expect(await engine.requeueHeld()).toEqual([{ deliveries: 1 }]);
      const deliveries = await engine.deliveries(hook);
      expect(deliveries.find(({ eventId }) => eventId === attempting?.eventId)).toMatchObject({ state: 'running' });
      await engine.reset();
    }
  },

  'a failure of an attempt whose claim PostgreSQL has lost assigns no number': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    const attempt = await engine.admit(claim as Run);
    await engine.owner.query('update delivery set sequence = null where webhook_id = $1', [hook.webhookId]);
    await engine.record(attempt);
    expect(await engine.delivery(hook)).toMatchObject({ sequence: null, failures: 1 });
    expect(await engine.receiver(hook)).toMatchObject({ nextSequence: 2 });
    await engine.cancel(claim as Run);
    await engine.record({ ...attempt, id: randomUUID() }, { outcome: 'delivered' });
    expect(await engine.delivery(hook)).toMatchObject({ sequence: null, state: 'cancelled' });
    expect(await engine.receiver(hook)).toMatchObject({ nextSequence: 2 });
  },

  'a cancellation of what waits unblocks the next only when nothing else holds it back': async (engine) => {
    const hook = await engine.webhook();
    const subject = randomUUID();
    await engine.events(hook.organizationId, 3, subject);
    const states = async () => (await engine.deliveries(hook)).map(({ state }) => state);
    const [first, second] = await engine.deliveries(hook);
    expect(await engine.cancel(second as Run)).toBe(true);
    expect(await states()).toEqual(['queued', 'cancelled', 'blocked']);
    await engine.owner.query(`update delivery set state = 'blocked' where webhook_id = $1 and event_id = $2`, [
      hook.webhookId,
      first?.eventId,
    ]); // as when its writer and the settlement before it did not see each other
    expect(await engine.cancel(first as Run)).toBe(true);
    expect(await states()).toEqual(['cancelled', 'cancelled', 'queued']);
  },

  'an attempt has the valid secrets of its webhook, newest first': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    await engine.webhook({ organizationId: hook.organizationId });
    const { rows } = await engine.owner.query<{ id: string }>(
      `insert into webhook_secret (organization_id, webhook_id, sealed, created_at, valid_until)
       select $1, $2, 'sealed', now() - make_interval(days => n), now() + make_interval(hours => 2 - n)
       from generate_series(0, 3) n returning id`,
      [hook.organizationId, hook.webhookId],
    );
    const [claim] = await engine.claim([hook]);
    const { id, secrets } = await engine.admit(claim as Run);
    const ids = secrets?.map((secret) => secret.id) ?? [];
    expect(ids).toHaveLength(3);
    expect(ids.slice(1)).toEqual(rows.slice(0, 2).map((row) => row.id));
    const attempt = await engine.owner.query('select signed_with from delivery_attempt where id = $1', [id]);
    expect(attempt.rows[0].signed_with.toSorted()).toEqual(ids.toSorted());
  },

  'a late 2xx replaces all that is stored of a lost attempt': async (engine) => {
    const hook = await engine.webhook({ events: 1 });
    const [claim] = await engine.claim([hook]);
    const attempt = await engine.admit(claim as Run);
    await engine.pass([hook], 26);
    await engine.repair();
    const { rows: before } = await engine.owner.query('select finished_at from delivery_attempt where id = $1', [
      attempt.id,
    ]);
    await engine.record(attempt, { outcome: 'delivered' });
    const { rows } = await engine.owner.query(
      `select status, cause, explanation, timings, peer_address, kept_bytes, response, response_encoding, headers,
         finished_at > $2 as "isLater" from delivery_attempt where id = $1`,
      [attempt.id, before[0].finished_at],
    );
    expect(rows).toEqual([
      {
        status: 204,
        cause: 'accepted',
        explanation: 'It was tried.',
        timings: { total: 100 },
        peer_address: '192.0.2.1',
        kept_bytes: 2,
        response: Buffer.from('ok'),
        response_encoding: 'gzip',
        headers: [['via', 'a']],
        isLater: true,
      },
    ]);
  },
};

type Step = (run: Attempt, connection: Pool | PoolClient, engine: Engine) => Promise<unknown>;
const cancel: Step = ({ organizationId, webhookId, eventId }, connection) =>
  connection.query(cancelOneSql, [organizationId, webhookId, eventId]);
const accept: Step = (run, connection, engine) => engine.record(run, { outcome: 'delivered' }, connection);

/**
 * Two webhooks of an organization, with two events of each of two subjects; the first of each is claimed. The target
 * is the last of these, because a statement that picks any row often picks the first.
 */
async function openSubjects(engine: Engine) {
  const other = await engine.webhook();
  const { organizationId } = other;
  const hooks = [other, await engine.webhook({ organizationId })] as const;
  for (const subject of [randomUUID(), randomUUID()]) await engine.events(organizationId, 2, subject);
  const claims = await engine.claim(hooks);
  expect(claims).toHaveLength(4);
  await engine.owner.query(
    `update delivery set due_at = due_at - interval '1 hour' where state = 'blocked' and organization_id = $1`,
    [organizationId],
  );
  const target = (await engine.deliveries(hooks[1]))[2] as DeliveryState;
  return { hooks, target, claims };
}

/** Makes a change of the target, and compares everything before and after it. */
async function expectOnlyTarget(engine: Engine, name: string, { before, others = before, change, unblocks }: Example) {
  const { hooks, target, claims } = await openSubjects(engine);
  let attempt: unknown;
  for (const claim of claims) {
    const isTarget = claim.webhookId === target.webhookId && claim.eventId === target.eventId;
    const made = await (isTarget ? before : others)(engine, claim);
    if (isTarget) attempt = made;
  }
  const [states, rows] = [await readStates(engine, hooks), await readOthers(engine, target)];
  const attempts = (await engine.deliveries(hooks[1]))[2]?.attempts ?? 0;
  await change(engine, { ...target, run: 1 }, attempt as Attempt);
  expect(await readOthers(engine, target), name).toEqual(rows);
  const after = await readStates(engine, hooks);
  expect(after.slice(0, 6), name).toEqual(states.slice(0, 6));
  expect(after[6], name).not.toBe(states[6]);
  const [, , now, next] = await engine.deliveries(hooks[1]);
  expect(now?.attempts, name).toBeGreaterThanOrEqual(attempts);
  if (unblocks === true) expect(next, name).toMatchObject({ state: 'queued', run: 0, attempts: 0, hasAttempt: null });
  if (unblocks === true) expect(next?.dueInSeconds, name).toBeGreaterThan(-60);
  else expect(after[7], name).toBe(states[7]);
}

/** The state of each delivery, and its run, failures, attempts and slot. */
async function readStates(engine: Engine, hooks: readonly Hook[]): Promise<string[]> {
  const deliveries = (await Promise.all(hooks.map((hook) => engine.deliveries(hook)))).flat();
  return deliveries.map((one) => [one.state, one.run, one.failures, one.attempts, one.hasAttempt].join(' '));
}

/** All that is stored of an organization's deliveries, without the target and the one that it holds back. */
async function readOthers(engine: Engine, { organizationId, webhookId, subjectId }: DeliveryState) {
  const { rows } = await engine.owner.query(
    `select d, s, case when d.webhook_id <> $2 then r end as r, (select array_agg(a order by a.id)
         from delivery_attempt a where a.webhook_id = d.webhook_id and a.event_id = d.event_id) as a
     from delivery d join receiver r on r.webhook_id = d.webhook_id
     left join slot s on s.webhook_id = d.webhook_id and s.event_id = d.event_id
     where d.organization_id = $1 and not (d.webhook_id = $2 and d.subject_id = $3) order by d.webhook_id, d.event_id`,
    [organizationId, webhookId, subjectId],
  );
  expect(rows).toHaveLength(6);
  return rows;
}

type Before = (engine: Engine, run: Run) => Promise<unknown>;
type Change = (engine: Engine, delivery: Run, attempt: Attempt) => Promise<unknown>;

const hourMs = 3_600_000;
const stayClaimed = async () => {};
const admit = (engine: Engine, run: Run) => engine.admit(run);
const sleep = (engine: Engine, run: Run) => engine.attempt(run, { waitMs: hourMs });
const accepted = (engine: Engine, run: Run) => engine.attempt(run, { outcome: 'delivered' });
const admitLast = async (engine: Engine, run: Run) => {
  const failures = scheduleAttempts + lostRepeats - 1;
  await engine.owner.query('update delivery set failures = $2 where event_id = $1', [run.eventId, failures]);
  return engine.admit(run);
};
const repairOne = async (engine: Engine, { webhookId, eventId }: Run) => {
  const old = `update slot set until = until - interval '1 hour' where webhook_id = $1 and event_id = $2`;
  await engine.owner.query(old, [webhookId, eventId]);
  await engine.repair();
};
const makeDue = ({ owner }: Engine, { webhookId, eventId }: Run, ago: string) =>
  owner.query(`update delivery set due_at = now() - $3::interval where webhook_id = $1 and event_id = $2`, [
    webhookId,
    eventId,
    ago,
  ]);

/**
 * A change of one delivery, after `before` has happened to it and `others` (the same) to the others
 * that are claimed.
 */
interface Example {
  before: Before;
  others?: Before;
  change: Change;
  /** Whether the next of its subject is put into the queue. */
  unblocks?: boolean;
}

const changes: Record<string, Example> = {
  'its claim is returned': { before: stayClaimed, change: (engine, run) => engine.returnClaims([run]) },
  'its claim ends': { before: stayClaimed, change: repairOne },
  'its attempt is admitted': { before: stayClaimed, change: admit },
  'its retry is admitted': {
    before: sleep,
    others: admit,
    change: async (engine, run) => {
      await makeDue(engine, run, '0 s');
      await engine.admit(run);
    },
  },
  'its retry goes back to the queue': {
    before: sleep,
    change: async (engine, run) => {
      await makeDue(engine, run, '0 s');
      await engine.owner.query('update receiver set gone_at = now() where webhook_id = $1', [run.webhookId]);
      expect(await engine.ask(run)).toMatchObject({ decision: 'end' });
    },
  },
  'its run is late': {
    before: sleep,
    others: admit,
    change: async (engine, run) => {
      await makeDue(engine, run, '1 hour');
      await engine.repair();
    },
  },
  'its attempt fails': { before: admit, change: (engine, _, attempt) => engine.record(attempt) },
  'its attempt is lost': { before: admit, change: repairOne },
  'its last attempt is lost': { before: admitLast, change: repairOne, unblocks: true },
  'its last attempt fails': {
    before: admitLast,
    others: sleep,
    change: async (engine, run, attempt) => {
      await engine.record(attempt);
      expect(await engine.receiver(run)).toMatchObject({ exhaustedInRow: 1 });
    },
    unblocks: true,
  },
  'it is accepted': {
    before: admit,
    change: (engine, _, attempt) => engine.record(attempt, { outcome: 'delivered' }),
    unblocks: true,
  },
  'its attempt, which PostgreSQL has lost, is accepted': {
    before: admit,
    change: async (engine, run, attempt) => {
      await engine.owner.query('delete from delivery_attempt where id = $1', [attempt.id]);
      await engine.owner.query('update delivery set sequence = null where webhook_id = $1 and event_id = $2', [
        run.webhookId,
        run.eventId,
      ]);
      await engine.record(attempt, { outcome: 'delivered' });
      const numbers = (await engine.attempts(run)).map(({ number }) => number);
      expect(numbers).toEqual([1, 1]);
    },
    unblocks: true,
  },
  'it is cancelled before its attempt': {
    before: stayClaimed,
    change: async (engine, run) => {
      expect(await engine.cancel(run)).toBe(true);
      expect(await engine.ask(run)).toMatchObject({ decision: 'end' });
    },
    unblocks: true,
  },
  'it is cancelled': { before: admit, change: (engine, run) => engine.cancel(run), unblocks: true },
  'it is sent again while it waits': {
    before: sleep,
    others: admit,
    change: async (engine, run) => expect(await engine.redeliver(run)).toBe('queued'),
  },
  'its last claim ends': {
    before: async (engine, { eventId }) => {
      const failures = scheduleAttempts + lostRepeats - 1;
      await engine.owner.query('update delivery set failures = $2 where event_id = $1', [eventId, failures]);
    },
    change: repairOne,
  },
  'it is sent again after a 2xx': { before: accepted, change: (engine, run) => engine.redeliver(run) },
};
