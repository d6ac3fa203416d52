/** Redelivering one event, a range, or all that failed since a moment; and listing redeliveries. */
import { describe, expect, it } from 'vitest';
import { claimDeliveriesSql } from '#domain/db/statements/claim-deliveries.ts';
import { requestRedelivery, type Selection } from '#domain/webhooks/redeliveries.ts';
import { carryOutPage, recordNotified } from '#domain/webhooks/redelivery-page.ts';
import { claimValues } from '#test/claim.ts';
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
      attempts: [{ status: state === 'delivered' ? 200 : 500, isLast: state === 'exhausted' }],
    });
  const request = (selection: Selection, by: Parameters<typeof t.of>[1] = undefined) =>
    requestRedelivery(t.owner.orm.em, { ...t.of(id, by), selection });
  /**
   * Executes every page in turn, as the workflow does; returns the deliveries that each changed.
   */
  async function carryOut({ id: redeliveryId }: { id: string }, { perPage = 100, scanLimit = 2_000 } = {}) {
    const of = { organizationId: t.organizationId, redeliveryId };
    const pages: { eventId: string; how: string }[][] = [];
    for (let page = 0; ; page += 1) {
      const before = new Map((await deliveryStates()).map((row) => [row.eventId, row.version]));
      const { progress, unnotified } = await carryOutPage(
        t.owner.pool,
        { ...of, page, perPage },
        { leaseMs: 60_000, scanLimit },
      );
      const changed = (await deliveryStates()).filter(({ eventId, version }) => before.get(eventId) !== version);
      pages.push(
        changed.map(({ eventId }) => ({ eventId, how: unnotified.includes(eventId) ? 'retry_now' : 'queued' })),
      );
      const after = await recordNotified(t.owner.pool, { ...of, pages: progress.pages });
      if (after?.state !== 'running') return pages;
    }
  }
  const deliveryStates = () =>
    t.rows<{ eventId: string; version: string }>(
      'select event_id as "eventId", xmin::text as version from delivery order by event_id',
    );
  return { ...t, webhook, id, settled, request, carryOut };
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
      { eventId: middle, type: 'seat.ended', state: 'waiting', round: 1, attempts: 0, sequence: null, settledAt: null },
    ]);
    expect((await t.deliveries(t.id, 'exhausted')).map(({ eventId }) => eventId)).toEqual([old]);
    expect(await t.deliveries(t.id, 'parked')).toEqual([]);
  });

  it('shows every attempt with its status and cause, and reports an unknown delivery', async () => {
    const t = await setupDeliveries();
    const eventId = await t.make.delivery({
      webhook: t.webhook,
      started: true,
      attempts: [{ status: 500 }, { status: null, cause: 'timeout' }, { finishedAt: null }],
    });
    await t.rows(
      `update delivery_attempt set answer = 'no', peer_address = '192.0.2.7', timings = '{"total": 12}'
        where number = 1`,
    );
    expect(await t.delivery(t.id, eventId)).toMatchObject({
      eventId,
      state: 'waiting',
      type: 'client.started',
      attempts: [
        { number: 1, status: 500, cause: 'status', answer: 'no', peerAddress: '192.0.2.7', timings: { total: 12 } },
        { number: 2, status: null, cause: 'timeout', answer: null },
        { number: 3, status: null, cause: null, finishedAt: null },
      ],
    });
    await expect(t.delivery(t.id, nowhere)).rejects.toMatchObject({ reason: 'no_such_delivery' });
  });
});

describe('redelivering one event', () => {
  it('begins a new round of a settled delivery with the same event, which a relay claims', async () => {
    const t = await setupDeliveries();
    for (const state of ['delivered', 'exhausted'] as const) {
      const eventId = await t.settled(state, 5);
      expect(await t.redeliver(t.id, eventId, false)).toEqual({ eventId, round: 2, how: 'queued' });
      expect(await t.stateOf(eventId)).toMatchObject({ state: 'waiting', round: 2, due: true, settled: false });
      expect(await t.rows(claimDeliveriesSql, await claimValues(t.owner.pool))).toMatchObject([{ eventId, round: 2 }]);
      expect((await t.lines()).at(-1)).toEqual({
        action: 'delivery.redeliver',
        person_id: t.manager.userId,
        detail: { webhookId: t.id, eventId, round: 2 },
      });
    }
  });

  it('makes an open delivery due now in its own round, and returns the workflow to notify', async () => {
    const t = await setupDeliveries();
    const later = { webhook: t.webhook, nextAttemptAt: new Date(Date.now() + 3_600_000) };
    const running = await t.make.delivery({ ...later, started: true, round: 4, attempts: [{ status: 500 }] });
    const queued = await t.make.delivery(later);
    expect(await t.redeliver(t.id, running)).toEqual({ eventId: running, round: 4, how: 'retry_now' });
    expect(await t.redeliver(t.id, queued, false)).toEqual({ eventId: queued, round: 1, how: 'queued' });
    const due = await t.rows<{ count: string }>('select count(*) from delivery where next_attempt_at <= now()');
    expect(due).toMatchObject([{ count: '2' }]);
    expect(await t.stateOf(running)).toMatchObject({ started: true, round: 4 });
  });

  it('is refused when the workflow cannot be notified, and leaves the delivery unchanged', async () => {
    const t = await setupDeliveries();
    const eventId = await t.make.delivery({ webhook: t.webhook, started: true });
    const before = await t.rows('select * from delivery');
    await expect(t.redeliver(t.id, eventId, false)).rejects.toMatchObject({ reason: 'delivery_open' });
    expect(await t.rows('select * from delivery')).toEqual(before);
  });

  it('is refused for events older than 30 days, other webhooks’ events, cancelled ones, and parked or deleted webhooks', async () => {
    const t = await setupDeliveries();
    const old = await t.settled('exhausted', 30 * 24 + 1);
    const young = await t.settled('exhausted', 30 * 24 - 1);
    const cancelled = await t.make.delivery({ webhook: t.webhook, state: 'cancelled' });
    await expect(t.redeliver(t.id, old)).rejects.toMatchObject({ reason: 'event_too_old' });
    await expect(t.redeliver(t.id, cancelled)).rejects.toMatchObject({ reason: 'delivery_cancelled' });
    await expect(t.redeliver(t.id, nowhere)).rejects.toMatchObject({ reason: 'no_such_delivery' });
    await t.pause(t.id);
    await expect(t.redeliver(t.id, young)).rejects.toMatchObject({ reason: 'webhook_parked' });
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
      started: true,
      createdAt: hoursAgo(8),
      attempts: [{ status: 500 }],
    });
    const fourth = await t.settled('delivered', 7);
    await t.settled('delivered', 3);
    const other = await t.make.webhook({ orgId: t.organizationId });
    await t.make.delivery({ webhook: other, state: 'delivered', createdAt: hoursAgo(8) });

    const redelivery = await t.request({ from: hoursAgo(10.5).toISOString(), to: hoursAgo(6).toISOString() });
    const pages = await t.carryOut(redelivery, { perPage: 2 });

    expect(pages.flat()).toEqual([
      { eventId: first, how: 'queued' },
      { eventId: second, how: 'queued' },
      { eventId: third, how: 'retry_now' },
      { eventId: fourth, how: 'queued' },
    ]);
    expect(pages.every((page) => page.length <= 2)).toBe(true);
    expect(await t.rows('select round, count(*)::int from delivery group by round order by round')).toEqual([
      { round: 1, count: 4 },
      { round: 2, count: 3 },
    ]);
  });

  it('includes the beginning of the range and excludes its end', async () => {
    const t = await setupDeliveries();
    const from = hoursAgo(10);
    const to = hoursAgo(9);
    const inside = await t.make.delivery({ webhook: t.webhook, state: 'delivered', createdAt: from });
    await t.make.delivery({ webhook: t.webhook, state: 'delivered', createdAt: to });
    const pages = await t.carryOut(await t.request({ from: from.toISOString(), to: to.toISOString() }));
    expect(pages.flat().map(({ eventId }) => eventId)).toEqual([inside]);
  });

  it('sends all failed ones since a moment: exhausted or still failing since, also of earlier events, and no delivered one', async () => {
    const t = await setupDeliveries();
    await t.settled('exhausted', 200, 100);
    await t.settled('delivered', 20);
    const early = await t.settled('exhausted', 80, 8);
    const failing = await t.make.delivery({
      webhook: t.webhook,
      started: true,
      createdAt: hoursAgo(5),
      attempts: [{ status: 503 }],
    });
    await t.make.delivery({ webhook: t.webhook, createdAt: hoursAgo(4) }); // not tried yet
    const late = await t.settled('exhausted', 3);

    const redelivery = await t.request({ failedSince: hoursAgo(10).toISOString() });

    expect((await t.carryOut(redelivery)).flat()).toEqual([
      { eventId: early, how: 'queued' },
      { eventId: failing, how: 'retry_now' },
      { eventId: late, how: 'queued' },
    ]);
    expect(await t.rows('select seen, queued, retries_requested from redelivery')).toEqual([
      { seen: 6, queued: 2, retries_requested: 1 },
    ]);
  });

  it('leaves an attempt in progress alone', async () => {
    const t = await setupDeliveries();
    await t.make.delivery({ webhook: t.webhook, started: true, attempts: [{ status: 500 }, { finishedAt: null }] });
    const redelivery = await t.request({ failedSince: hoursAgo(1).toISOString() });
    expect((await t.carryOut(redelivery)).flat()).toEqual([]);
  });

  it('finds a few among many by scanning a bounded number of rows a page', async () => {
    const t = await setupDeliveries();
    const failed: string[] = [];
    for (let event = 0; event < 90; event += 1) {
      const eventId = await t.settled(event % 30 === 29 ? 'exhausted' : 'delivered', 100 - event);
      if (event % 30 === 29) failed.push(eventId);
    }
    const redelivery = await t.request({ failedSince: hoursAgo(300).toISOString() });
    const pages = await t.carryOut(redelivery, { perPage: 1, scanLimit: 20 });
    expect(pages.flat().map(({ eventId }) => eventId)).toEqual(failed);
    expect(pages.length).toBeGreaterThan(4);
  });
});
