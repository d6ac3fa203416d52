/** What pages read about deliveries, and cancelling one. */
import { describe, expect, it } from 'vitest';
import { cancelDelivery, redeliverOne } from '#delivery/requests.ts';
import { findAttempt, getDeliveryDetail } from '#domain/webhooks/delivery-detail.ts';
import { type HealthSpan, healthSpans, listHealth, maxHealthDeliveries, sumCounts } from '#domain/webhooks/health.ts';
import { listLedgerFaults, readLedger, rollUpLedger } from '#domain/webhooks/ledger.ts';
import { getWebhook } from '#domain/webhooks/list.ts';
import { type DeliveryFilter, searchDeliveries } from '#domain/webhooks/search-deliveries.ts';
import { pageCounts } from '#domain/webhooks/summary.ts';
import { setupDatabase } from '#test/setup.ts';

const all: DeliveryFilter = { state: null, progress: null, type: null, eventId: null, from: null, to: null };
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000);

/** A webhook of an organization with deliveries that the test creates. */
async function setupDeliveries() {
  const { database, owner, make } = await setupDatabase();
  const webhook = await make.webhook();
  const db = owner;
  const request = { organizationId: webhook.orgId, webhookId: webhook.id, by: 'orgctl' } as const;
  const { pool } = owner;
  return {
    database,
    make,
    webhook,
    db,
    request,
    pool,
    settled: (state: 'delivered' | 'exhausted' | 'cancelled', minutes: number, attempts = 1) =>
      make.delivery({
        webhook,
        state,
        createdAt: minutesAgo(minutes),
        settledAt: minutesAgo(minutes),
        attempts: Array.from({ length: attempts }, (_, index) => ({
          status: state === 'delivered' && index === attempts - 1 ? 200 : 500,
          endsSchedule: state === 'exhausted' && index === attempts - 1,
        })),
      }),
    search: (filter: Partial<DeliveryFilter>, page: Partial<Parameters<typeof searchDeliveries>[3]> = {}) =>
      searchDeliveries(db, request, { ...all, ...filter }, { before: null, atMost: 100, ...page }),
  };
}

const ids = ({ deliveries }: { deliveries: { eventId: string }[] }) => deliveries.map(({ eventId }) => eventId);

describe('searching deliveries', () => {
  it('shows each delivery once, newest first, page by page', async () => {
    const t = await setupDeliveries();
    const made: string[] = [];
    for (let minutes = 7; minutes > 0; minutes -= 1) made.unshift(await t.settled('delivered', minutes));
    const seen: string[] = [];
    let before: string | null = null;
    do {
      const found = await t.search({}, { before, atMost: 3 });
      seen.push(...ids(found));
      before = found.older;
    } while (before !== null);
    expect(seen).toEqual(made);
  });

  it('by state, type, event and time finds exactly the matches', async () => {
    const t = await setupDeliveries();
    const old = await t.settled('exhausted', 90);
    const delivered = await t.settled('delivered', 30);
    const waiting = await t.make.delivery({ webhook: t.webhook, type: 'seat.given', createdAt: minutesAgo(5) });
    const other = await t.make.webhook({ orgId: t.webhook.orgId });
    await t.make.delivery({ webhook: other });
    expect(ids(await t.search({}))).toEqual([waiting, delivered, old]);
    expect(ids(await t.search({ state: 'exhausted' }))).toEqual([old]);
    expect(ids(await t.search({ state: 'delivered' }))).toEqual([delivered]);
    expect(ids(await t.search({ state: 'waiting' }))).toEqual([waiting]);
    expect(ids(await t.search({ type: 'seat.given' }))).toEqual([waiting]);
    expect(ids(await t.search({ eventId: delivered }))).toEqual([delivered]);
    expect(ids(await t.search({ from: minutesAgo(31), to: minutesAgo(29) }))).toEqual([delivered]);
    expect(ids(await t.search({ from: minutesAgo(29.99) }))).toEqual([waiting]);
    expect(ids(await t.search({ state: 'cancelled' }))).toEqual([]);
  });

  it('stops after a bounded number of rows, and continues from there until all were scanned', async () => {
    const t = await setupDeliveries();
    const seatGiven = await t.make.delivery({ webhook: t.webhook, type: 'seat.given', createdAt: minutesAgo(50) });
    for (let minutes = 8; minutes > 0; minutes -= 1) await t.settled('delivered', minutes);
    const first = await t.search({ type: 'seat.given' }, { scanLimit: 5 });
    expect(first).toMatchObject({ deliveries: [], hasStopped: true });
    const second = await t.search({ type: 'seat.given' }, { scanLimit: 5, before: first.older });
    expect(ids(second)).toEqual([seatGiven]);
    expect(second).toMatchObject({ older: null, hasStopped: false });
  });

  it('reports which attempt is in progress, when the next one is due, and how the last one ended', async () => {
    const t = await setupDeliveries();
    const now = { webhook: t.webhook, state: 'running' } as const;
    await t.make.delivery({ ...now, attempts: [{ status: null, finishedAt: null }] });
    await t.make.delivery({
      ...now,
      dueAt: minutesAgo(-10),
      attempts: [{ status: 503, cause: 'answered_unavailable' }],
    });
    const { deliveries } = await t.search({});
    const [attempting, waiting] = deliveries.sort((a, b) => Number(b.isAttempting) - Number(a.isAttempting));
    expect(attempting).toMatchObject({ isAttempting: true, lastStatus: null });
    expect(waiting).toMatchObject({ isAttempting: false, lastStatus: 503, lastCause: 'answered_unavailable' });
    expect(waiting?.dueInMs).toBeGreaterThan(9 * 60_000);
    expect(waiting?.dueInMs).toBeLessThanOrEqual(10 * 60_000);
  });
});

describe('health', () => {
  it('counts the events of each hour by their outcome', async () => {
    const t = await setupDeliveries();
    const now = new Date();
    const minutesIntoHour = now.getUTCMinutes();
    await t.settled('delivered', minutesIntoHour + 20);
    await t.settled('delivered', minutesIntoHour + 30, 3);
    await t.settled('exhausted', minutesIntoHour + 40);
    await t.make.delivery({ webhook: t.webhook, createdAt: minutesAgo(minutesIntoHour + 50) });
    await t.settled('delivered', 26 * 60);
    const hours = await listHealth(t.db, t.request, '24h', now);
    expect(hours).toHaveLength(24);
    const whole = {
      atOnce: 1,
      afterRetries: 1,
      pending: 1,
      retrying: 0,
      held: 0,
      failed: 1,
      cancelled: 0,
      isCapped: false,
    };
    const hour = new Date(Math.floor(now.getTime() / 3_600_000) * 3_600_000 - 3_600_000);
    expect(hours.at(-2)).toEqual({ from: hour.toISOString(), ...whole });
    expect(hours.filter((bucket) => sumCounts(bucket) > 0)).toHaveLength(1);
    const days = await listHealth(t.db, t.request, '30d', now);
    expect(days).toHaveLength(30);
    expect(days.reduce((sum, bucket) => sum + sumCounts(bucket), 0)).toBe(5);
  });

  it.each(Object.keys(healthSpans) as HealthSpan[])(
    'of %s has every event of the range in the bar of its time',
    async (span) => {
      const t = await setupDeliveries();
      const { count, lengthMs } = healthSpans[span];
      const now = new Date(Math.floor(Date.now() / lengthMs) * lengthMs + lengthMs / 2);
      const minutesBefore = (bars: number) => (Date.now() - now.getTime() + bars * lengthMs) / 60_000;
      await t.settled('delivered', minutesBefore(count - 1));
      await t.settled('exhausted', minutesBefore(1));
      await t.settled('delivered', minutesBefore(count));
      const bars = await listHealth(t.db, t.request, span, now);
      expect(bars).toHaveLength(count);
      expect(bars.map((bar) => [bar.atOnce, bar.failed])).toEqual(
        bars.map((_, index) => [index === 0 ? 1 : 0, index === count - 2 ? 1 : 0]),
      );
    },
  );

  it('keeps an event delivered on the first attempt after a redelivery', async () => {
    const t = await setupDeliveries();
    const accepted = { status: 200, cause: 'accepted' };
    const attempts = [accepted, accepted];
    await t.make.delivery({ webhook: t.webhook, state: 'delivered', run: 2, attempts });
    const { day } = await getWebhook(t.db, t.request, pageCounts(new Date()));
    expect(day).toMatchObject({ atOnce: 1, afterRetries: 0 });
  });

  it('counts a cancelled delivery apart from failed deliveries', async () => {
    const t = await setupDeliveries();
    await t.settled('cancelled', 20);
    const { day } = await getWebhook(t.db, t.request, pageCounts(new Date()));
    expect(day).toMatchObject({ failed: 0, cancelled: 1 });
  });

  it('scans a bounded number of an hour’s events, and reports that', async () => {
    const t = await setupDeliveries();
    const { orgId, id } = t.webhook;
    await t.pool.query(
      `with made as (select new_id() as id from generate_series(1, $3)), event as (
         insert into event (organization_id, id, type, created_at, body, delivery_count)
           select $1, id, 'client.started', now(), '{}', 1 from made
       ) insert into delivery (organization_id, webhook_id, event_id, state, attempts, created_at, settled_at)
       select $1, $2, id, 'delivered', 1, now(), now() from made`,
      [orgId, id, maxHealthDeliveries + 7],
    );
    const hours = await listHealth(t.db, t.request, '24h', new Date());
    expect(hours.filter(({ isCapped }) => isCapped)).toEqual([
      expect.objectContaining({ atOnce: maxHealthDeliveries }),
    ]);
    const { day } = await getWebhook(t.db, t.request, pageCounts(new Date()));
    expect(day).toMatchObject({ atOnce: maxHealthDeliveries, isCapped: true });
  });
});

describe('an attempt', () => {
  it('has the sent headers on record, in their order', async () => {
    const t = await setupDeliveries();
    const headers = { 'webhook-signature': 'v1,abc', 'Content-Type': 'application/json', a: 'b' };
    const attempts = [{ status: 200, timings: { total: 3 }, response: Buffer.from('ok'), headers }];
    const eventId = await t.make.delivery({ webhook: t.webhook, state: 'delivered', attempts });
    const attempt = await findAttempt(t.db, { ...t.request, eventId, number: 1 });
    expect(Object.entries(attempt?.headers ?? {})).toEqual(Object.entries(headers));
    expect(attempt).toMatchObject({ response: Buffer.from('ok'), type: 'client.started', timings: { total: 3 } });
    expect(await findAttempt(t.db, { ...t.request, eventId, number: 2 })).toBeNull();
  });

  it('is listed with the newest, and earlier ones page by page', async () => {
    const t = await setupDeliveries();
    const eventId = await t.settled('exhausted', 5, 7);
    const numbers: number[] = [];
    let before: number | null = null;
    do {
      const look = await getDeliveryDetail(t.db, { ...t.request, eventId }, { before, atMost: 3 });
      numbers.push(...look.newestAttempts.map(({ number }) => number));
      before = look.olderAttempts;
    } while (before !== null);
    expect(numbers).toEqual([7, 6, 5, 4, 3, 2, 1]);
  });
});

describe('a delivery that a person cancels', () => {
  it.each(['queued', 'running'] as const)(
    'keeps the ledger without difference when it was %s, before and after it is rolled up',
    async (state) => {
      const t = await setupDeliveries();
      const person = await t.make.member({ orgId: t.webhook.orgId, signedIn: true });
      const eventId = await t.make.delivery({ webhook: t.webhook, state });
      const by = { personId: person.userId };
      await cancelDelivery(t.db, { ...t.request, by, eventId });
      expect(await readLedger(t.db)).toMatchObject({ cancelled: 1, waiting: 0, held: 0, difference: 0 });
      expect(await rollUpLedger(t.db, { settledForSeconds: 0 })).toEqual({ deliveries: 1, events: 1 });
      expect(await readLedger(t.db)).toMatchObject({ required: 1, cancelled: 1, difference: 0 });
      expect(await listLedgerFaults(t.db, { everything: true })).toEqual([]);
      const entries = await t.pool.query(`select person_id, detail from audit_entry where action = 'delivery.cancel'`);
      expect(entries.rows).toEqual([{ person_id: person.userId, detail: { webhookId: t.webhook.id, eventId } }]);
    },
  );

  it('without its audit entry is reported by the ledger', async () => {
    const t = await setupDeliveries();
    const [first, second] = [
      await t.make.delivery({ webhook: t.webhook }),
      await t.make.delivery({ webhook: t.webhook }),
    ];
    await cancelDelivery(t.db, { ...t.request, eventId: first });
    await cancelDelivery(t.db, { ...t.request, eventId: second });
    await t.pool.query(`delete from audit_entry where detail ->> 'eventId' = $1`, [second]);
    expect(await listLedgerFaults(t.db)).toMatchObject([{ kind: 'no_proof', eventId: second }]);
    expect(await readLedger(t.db)).toMatchObject({ difference: 1 });
  });

  it('is neither settled nor of another webhook, and is not cancelled without the permission', async () => {
    const t = await setupDeliveries();
    const delivered = await t.settled('delivered', 5);
    const open = await t.make.delivery({ webhook: t.webhook });
    const other = await t.make.webhook({ orgId: t.webhook.orgId });
    const analyst = await t.make.member({ orgId: t.webhook.orgId, permissions: ['org.read'] });
    const cancel = (more: object) => cancelDelivery(t.db, { ...t.request, eventId: open, ...more });
    await expect(cancel({ eventId: delivered })).rejects.toMatchObject({ reason: 'delivery_settled' });
    await expect(cancel({ webhookId: other.id })).rejects.toMatchObject({ reason: 'no_such_delivery' });
    await expect(cancel({ by: { personId: analyst.userId } })).rejects.toMatchObject({
      reason: 'may_not_manage_webhooks',
    });
    const states = await t.pool.query('select state from delivery order by created_at');
    expect(states.rows).toEqual([{ state: 'delivered' }, { state: 'queued' }]);
  });

  it('is not sent again', async () => {
    const t = await setupDeliveries();
    const eventId = await t.make.delivery({ webhook: t.webhook });
    await cancelDelivery(t.db, { ...t.request, eventId });
    const again = redeliverOne(t.db, { ...t.request, eventId });
    await expect(again).rejects.toMatchObject({ reason: 'delivery_cancelled' });
  });
});

it('a retry request does not send a delivery again that was delivered meanwhile', async () => {
  const t = await setupDeliveries();
  const eventId = await t.settled('delivered', 5);
  const retry = redeliverOne(t.db, { ...t.request, eventId }, { onlyOpen: true });
  await expect(retry).rejects.toMatchObject({ reason: 'delivery_settled' });
});
