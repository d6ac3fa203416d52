/**
 * Holding all deliveries of a region: none starts, none is lost, and each is posted once
 * afterwards.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import type { SwitchState } from '#domain/webhooks/delivery-switch.ts';
import { readDeliverySwitch, setDeliverySwitch } from '#domain/webhooks/delivery-switch.ts';
import { readLedger } from '#domain/webhooks/ledger.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { startTestWorker } from '#test/worker.ts';

const timeout = 90_000;
const patient = { timeout: 30_000, interval: 50 };
/** Several times the relay's longest wait between two claims. */
const quietMs = 2_000;

async function setup(settings: Record<string, string> = {}) {
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  const professional = await make.member();
  await make.webhook({ orgId: professional.orgId, url: receiver.url });
  const { pool } = owner;
  return {
    receiver,
    owner,
    startWorker: () => startTestWorker(database, settings),
    makeEvent: () => make.grant({ professional }),
    set: (state: SwitchState) => setDeliverySwitch(owner, state),
    async countByState(): Promise<Record<string, number>> {
      const { rows } = await pool.query<{ state: string; count: number }>(
        'select state, count(*)::integer as count from delivery group by state',
      );
      return Object.fromEntries(rows.map(({ state, count }) => [state, count]));
    },
  };
}

describe.each(['paused', 'draining'] as const)('while deliveries are %s', (held) => {
  it('no post begins, the one under way is recorded, and all events go out once afterwards', { timeout }, async () => {
    const { receiver, owner, startWorker, makeEvent, set, countByState } = await setup();
    const open: ServerResponse[] = [];
    receiver.respond = (response) => void open.push(response);
    await startWorker();
    await makeEvent();
    await vi.waitFor(() => expect(open).toHaveLength(1), patient);

    await set(held);
    await makeEvent();
    expect(await readDeliverySwitch(owner)).toMatchObject({ state: held, underWay: 1, isDrained: false });
    open.pop()?.writeHead(200).end();
    for (let event = 1; event < 20; event += 1) await makeEvent();
    await vi.waitFor(async () => expect(await countByState()).toEqual({ delivered: 1, queued: 20 }), patient);
    await wait(quietMs);

    expect(receiver.received).toHaveLength(1);
    const { rows } = await owner.pool.query(`select distinct run, attempts from delivery where state = 'queued'`);
    expect(rows).toEqual([{ run: 0, attempts: 0 }]);
    await owner.pool.query(`update delivery_switch set changed_at = changed_at - interval '10 seconds'`);
    expect(await readDeliverySwitch(owner)).toMatchObject({ state: held, underWay: 0, isDrained: true });

    receiver.respond = (response) => void response.writeHead(200).end();
    await set('running');
    await vi.waitFor(async () => expect(await countByState()).toEqual({ delivered: 21 }), patient);
    expect(receiver.received).toHaveLength(21);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(21);
    expect(await readLedger(owner)).toMatchObject({ required: 21, delivered: 21, difference: 0, missing: 0 });
    expect(await readDeliverySwitch(owner)).toMatchObject({ state: 'running', isDrained: false });
  });

  it('a retry that comes due is not made, and its delivery continues afterwards', { timeout }, async () => {
    const { receiver, owner, startWorker, makeEvent, set, countByState } = await setup({ DELIVERY_SCHEDULE: '1s,1h' });
    receiver.respond = (response) => {
      // In the receiver's handler, so that it is set before the attempt's end is recorded.
      void set(held).then(() => response.writeHead(500).end());
    };
    await startWorker();
    await makeEvent();

    await vi.waitFor(async () => {
      const { rows } = await owner.pool.query('select run, attempts, failures, state from delivery');
      expect(rows).toEqual([{ run: 1, attempts: 1, failures: 1, state: 'queued' }]);
    }, patient);
    await wait(quietMs);
    expect(receiver.received).toHaveLength(1);

    receiver.respond = (response) => void response.writeHead(200).end();
    await set('running');
    await vi.waitFor(async () => expect(await countByState()).toEqual({ delivered: 1 }), patient);
    expect(receiver.received.map(({ headers }) => headers['webhook-attempt'])).toEqual(['1', '2']);
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  });

  it('a due delivery is neither overdue nor stuck', async () => {
    const { owner, makeEvent, set } = await setup();
    await makeEvent();
    await owner.pool.query(`update delivery set due_at = now() - interval '1 hour'`);
    expect(await readLedger(owner)).toMatchObject({ waiting: 1, overdue: 1, stuck: 1 });

    await set(held);

    expect(await readLedger(owner)).toMatchObject({ waiting: 1, overdue: 0, stuck: 0, difference: 0 });
  });
});

it('a state that is set already stays as old as it is', async () => {
  const { owner, set } = await setup();
  expect(await set('paused')).toBe(true);
  const { changedAt } = await readDeliverySwitch(owner);

  expect(await set('paused')).toBe(false);

  expect((await readDeliverySwitch(owner)).changedAt).toBe(changedAt);
});
