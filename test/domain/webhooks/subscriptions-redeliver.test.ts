/** Redelivering one event, a range, or all that failed since a moment; and listing redeliveries. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { redeliverPage } from '#delivery/redelivery.ts';
import { requestRedelivery, type Selection } from '#domain/webhooks/redeliveries.ts';
import { Engine } from '#test/delivery-engine.ts';
import { nowhere, setupWebhooks } from './subscriptions.ts';

const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);

async function setupDeliveries() {
  const t = await setupWebhooks();
  const webhook = await t.make.webhook({ orgId: t.organizationId });
  const id = webhook.id;
  const settled = (state: 'delivered' | 'exhausted', hours: number, settledHours = hours) =>
    t.make.delivery({
      webhook,
      state,
      createdAt: hoursAgo(hours),
      settledAt: hoursAgo(settledHours),
      attempts: [{ status: state === 'delivered' ? 200 : 500, endsSchedule: state === 'exhausted' }],
    });
  const request = (selection: Selection, by: Parameters<typeof t.of>[1] = undefined) =>
    requestRedelivery(t.owner, { ...t.of(id, by), selection });
  /** Carries out every page in turn, as the workers do; returns the events that each queued. */
  async function carryOut({ sendAtMost = 100, scanAtMost = 2_000 } = {}) {
    const pages: string[][] = [];
    for (;;) {
      await t.rows('update redelivery set due_at = now()');
      const before = new Map((await deliveryStates()).map((row) => [row.eventId, row.version]));
      if (!(await redeliverPage(t.owner, { scanAtMost, sendAtMost }))) return pages;
      const changed = (await deliveryStates()).filter(({ eventId, version }) => before.get(eventId) !== version);
      pages.push(changed.map(({ eventId }) => eventId));
    }
  }
  const deliveryStates = () =>
    t.rows<{ eventId: string; version: string }>(
      'select event_id as "eventId", xmin::text as version from delivery order by event_id',
    );
  const engine = new Engine(t.database, t.owner);
  onTestFinished(() => engine.worker.end());
  return { ...t, webhook, id, settled, request, carryOut, engine };
}

describe('listing deliveries', () => {
  it('shows the newest first, by state and page by page, of this webhook only', async () => {
    const t = await setupDeliveries();
    const other = await t.make.webhook({ orgId: t.organizationId });
    await t.make.delivery({ webhook: other });
    const old = await t.settled('exhausted', 50);
    const middle = await t.make.delivery({ webhook: t.webhook, createdAt: hoursAgo(2), type: 'seat.ended' });
    const young = await t.settled('delivered', 1);
    expect((await t.deliveries(t.id)).map(({ eventId }) => eventId)).toEqual([young, middle, old]);
    expect(await t.deliveries(t.id, 'waiting')).toMatchObject([
      { eventId: middle, type: 'seat.ended', state: 'waiting', attempts: 0, sequence: null, settledAt: null },
    ]);
    expect((await t.deliveries(t.id, 'exhausted')).map(({ eventId }) => eventId)).toEqual([old]);
    expect(await t.deliveries(t.id, 'held')).toEqual([]);
  });

  it('shows every attempt with its status and cause, and reports an unknown delivery', async () => {
    const t = await setupDeliveries();
    const eventId = await t.make.delivery({
      webhook: t.webhook,
      state: 'running',
      attempts: [{ status: 500 }, { status: null, cause: 'timeout' }, { finishedAt: null }],
    });
    await t.rows(
      `update delivery_attempt set response = 'no', peer_address = '192.0.2.7', timings = '{"total": 12}'
        where number = 1`,
    );
    expect(await t.delivery(t.id, eventId)).toMatchObject({
      eventId,
      state: 'waiting',
      type: 'client.started',
      attempts: [
        { number: 1, status: 500, cause: 'status', response: 'no', peerAddress: '192.0.2.7', timings: { total: 12 } },
        { number: 2, status: null, cause: 'timeout', response: null },
        { number: 3, status: null, cause: null, finishedAt: null },
      ],
    });
    await expect(t.delivery(t.id, nowhere)).rejects.toMatchObject({ reason: 'no_such_delivery' });
  });
});

describe('redelivering one event', () => {
  it('starts the schedule of a settled delivery again with the same event, which a relay claims', async () => {
    const t = await setupDeliveries();
    for (const state of ['delivered', 'exhausted'] as const) {
      const eventId = await t.settled(state, 5);
      expect(await t.redeliver(t.id, eventId)).toEqual({ eventId, how: 'queued' });
      expect(await t.readState(eventId)).toEqual({ state: 'queued', run: 1, failures: 0, due: true, settled: false });
      expect(await t.engine.claim([{ organizationId: t.organizationId, webhookId: t.id }])).toMatchObject([
        { eventId, run: 2 },
      ]);
      expect((await t.entries()).at(-1)).toEqual({
        action: 'delivery.redeliver',
        person_id: t.manager.userId,
        detail: { webhookId: t.id, eventId },
      });
    }
  });

  it('makes an open delivery due now at its position in the schedule', async () => {
    const t = await setupDeliveries();
    const later = { webhook: t.webhook, dueAt: new Date(Date.now() + 3_600_000) };
    const sleeping = await t.make.delivery({ ...later, state: 'running', attempts: [{ status: 500 }] });
    const queued = await t.make.delivery(later);
    for (const eventId of [sleeping, queued])
      expect(await t.redeliver(t.id, eventId)).toEqual({ eventId, how: 'queued' });
    expect(await t.readState(sleeping)).toMatchObject({ state: 'queued', due: true, failures: 1 });
    expect(await t.readState(queued)).toMatchObject({ state: 'queued', due: true, failures: 0 });
  });

  it('changes and records nothing while its attempt is in progress', async () => {
    const t = await setupDeliveries();
    const attempts = [{ finishedAt: null }];
    const eventId = await t.make.delivery({ webhook: t.webhook, state: 'running', attempts });
    const before = [await t.rows('select * from delivery'), await t.entries()];
    expect(await t.redeliver(t.id, eventId)).toEqual({ eventId, how: 'attempting' });
    expect([await t.rows('select * from delivery'), await t.entries()]).toEqual(before);
  });

  it('is rejected for events older than 30 days, other webhooks’ events, cancelled ones, and paused or deleted webhooks', async () => {
    const t = await setupDeliveries();
    const old = await t.settled('exhausted', 30 * 24 + 1);
    const young = await t.settled('exhausted', 30 * 24 - 1);
    const cancelled = await t.make.delivery({ webhook: t.webhook, state: 'cancelled' });
    await expect(t.redeliver(t.id, old)).rejects.toMatchObject({ reason: 'event_too_old' });
    await expect(t.redeliver(t.id, cancelled)).rejects.toMatchObject({ reason: 'delivery_cancelled' });
    await expect(t.redeliver(t.id, nowhere)).rejects.toMatchObject({ reason: 'no_such_delivery' });
    await t.pause(t.id);
    await expect(t.redeliver(t.id, young)).rejects.toMatchObject({ reason: 'webhook_not_active' });
    await t.remove(t.id);
    await expect(t.redeliver(t.id, young)).rejects.toMatchObject({ reason: 'webhook_deleted' });
  });
});

describe('redelivering many events', () => {
  it('sends a range with every outcome, in order, in pages, each event once', async () => {
    const t = await setupDeliveries();
    await t.settled('delivered', 11);
    const first = await t.settled('delivered', 10);
    const second = await t.settled('exhausted', 9);
    const third = await t.make.delivery({
      webhook: t.webhook,
      state: 'running',
      createdAt: hoursAgo(8),
      attempts: [{ status: 500 }],
    });
    const fourth = await t.settled('delivered', 7);
    await t.settled('delivered', 3);
    const other = await t.make.webhook({ orgId: t.organizationId });
    await t.make.delivery({ webhook: other, state: 'delivered', createdAt: hoursAgo(8) });

    await t.request({ from: hoursAgo(10.5).toISOString(), to: hoursAgo(6).toISOString() });
    const pages = await t.carryOut({ sendAtMost: 2 });

    expect(pages.flat()).toEqual([first, second, third, fourth]);
    expect(pages.every((page) => page.length <= 2)).toBe(true);
    expect(await t.rows(`select failures from delivery where state = 'queued' order by event_id`)).toEqual(
      [0, 0, 1, 0].map((failures) => ({ failures })),
    );
  });

  it('includes the beginning of the range and excludes its end', async () => {
    const t = await setupDeliveries();
    const from = hoursAgo(10);
    const to = hoursAgo(9);
    const inside = await t.make.delivery({ webhook: t.webhook, state: 'delivered', createdAt: from });
    await t.make.delivery({ webhook: t.webhook, state: 'delivered', createdAt: to });
    await t.request({ from: from.toISOString(), to: to.toISOString() });
    expect((await t.carryOut()).flat()).toEqual([inside]);
  });

  it('sends all failed ones since a moment: exhausted or still failing since, also of earlier events, and no delivered one', async () => {
    const t = await setupDeliveries();
    await t.settled('exhausted', 200, 100);
    await t.settled('delivered', 20);
    const early = await t.settled('exhausted', 80, 8);
    const failing = await t.make.delivery({
      webhook: t.webhook,
      state: 'running',
      createdAt: hoursAgo(5),
      attempts: [{ status: 503 }],
    });
    await t.make.delivery({ webhook: t.webhook, createdAt: hoursAgo(4) }); // not tried yet
    const late = await t.settled('exhausted', 3);

    await t.request({ failedSince: hoursAgo(10).toISOString() });

    expect((await t.carryOut()).flat()).toEqual([early, failing, late]);
    expect(await t.rows('select state, seen, matched, queued from redelivery')).toEqual([
      { state: 'done', seen: 6, matched: 3, queued: 3 },
    ]);
  });

  it('leaves an attempt in progress alone', async () => {
    const t = await setupDeliveries();
    await t.make.delivery({
      webhook: t.webhook,
      state: 'running',
      attempts: [{ status: 500 }, { finishedAt: null }],
    });
    await t.request({ failedSince: hoursAgo(1).toISOString() });
    expect((await t.carryOut()).flat()).toEqual([]);
  });

  it('finds a few among many by scanning a bounded number of rows a page', async () => {
    const t = await setupDeliveries();
    const failed: string[] = [];
    for (let event = 0; event < 90; event += 1) {
      const eventId = await t.settled(event % 30 === 29 ? 'exhausted' : 'delivered', 100 - event);
      if (event % 30 === 29) failed.push(eventId);
    }
    await t.request({ failedSince: hoursAgo(300).toISOString() });
    const pages = await t.carryOut({ sendAtMost: 1, scanAtMost: 20 });
    expect(pages.flat()).toEqual(failed);
    expect(pages.length).toBeGreaterThan(4);
  });
});
