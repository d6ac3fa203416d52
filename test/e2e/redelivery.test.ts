/** Redelivering a range, from the request's row to the receiver. */
import type { ServerResponse } from 'node:http';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type Ledger, readLedger } from '#domain/webhooks/ledger.ts';
import { cancelRedelivery, findRedelivery, requestRedelivery, type Selection } from '#domain/webhooks/redeliveries.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { startTestWorker } from '#test/worker.ts';
import { type RedeliverInput, rateLimit, redeliveryWorkflowId } from '../../workflows/redeliver/types.ts';
import { cancelSignal, progressQuery } from '../../workflows/redeliver/workflow.ts';

const timeout = 90_000;
const patient = { timeout: 45_000, interval: 50 };
const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);
const lately: Selection = { failedSince: hoursAgo(48).toISOString() };

describe('a redelivery', () => {
  it('of a range sends every event of it again with its own id and body, and no other', { timeout }, async () => {
    const t = await setupRedelivery();
    const before = await t.settled('delivered', 10);
    const inside = [await t.settled('delivered', 8), await t.settled('exhausted', 7), await t.settled('delivered', 6)];
    const after = await t.settled('exhausted', 4);
    await t.startWorker();

    const { id } = await t.request({ from: hoursAgo(9).toISOString(), to: hoursAgo(5).toISOString() });

    await t.until(id, 'done', { queued: 3, retriesRequested: 0 });
    await t.ledgerHas({ delivered: 4, exhausted: 1, waiting: 0 });
    const bodies = new Map((await t.events()).map((event) => [event.id, event.body]));
    const received = t.receiver.received.map(({ headers, body }) => [headers['webhook-id'], body.toString()]);
    expect(new Map(received as [string, string][])).toEqual(new Map(inside.map((event) => [event, bodies.get(event)])));
    expect(received).toHaveLength(3);
    expect(received.flat()).not.toContain(before);
    expect(received.flat()).not.toContain(after);
  });

  it('of all failed events skips delivered ones, and makes the next attempt of an open one now', {
    timeout,
  }, async () => {
    const t = await setupRedelivery();
    await t.settled('delivered', 9);
    const exhausted = await t.settled('exhausted', 8);
    t.receiver.answer = refuse;
    await t.startWorker({ DELIVERY_SCHEDULE: '6h,6h' });
    const professional = await t.make.member({ orgId: t.webhook.orgId });
    await t.make.grant({ professional });
    await vi.waitFor(async () => expect(await t.states()).toContain('waiting 1 later'), patient);
    const [open] = t.receiver.received;
    t.receiver.answer = accept;

    const { id } = await t.request(lately);

    await t.until(id, 'done', { queued: 1, retriesRequested: 1 });
    await t.ledgerHas({ delivered: 3, waiting: 0, exhausted: 0 });
    const again = t.receiver.received.slice(1);
    expect(again.map(({ headers }) => headers['webhook-id']).sort()).toEqual(
      [exhausted, open?.headers['webhook-id']].sort(),
    );
    const posts = t.receiver.received.filter(({ headers }) => headers['webhook-id'] === open?.headers['webhook-id']);
    expect(posts.map(({ headers, body }) => [headers['webhook-attempt'], body.toString()])).toEqual([
      ['1', open?.body.toString()],
      ['2', open?.body.toString()],
    ]);
    const { rows } = await t.owner.pool.query('select round from delivery where event_id = $1', [
      open?.headers['webhook-id'],
    ]);
    expect(rows).toEqual([{ round: 1 }]); // a retry was requested, not a new round
  });

  it('goes page by page with a pause after each, reports its progress, and keeps the order of the events', {
    timeout,
  }, async () => {
    const t = await setupRedelivery();
    const failed: string[] = [];
    for (let event = 0; event < 50; event += 1) failed.push(await t.settled('exhausted', 20 - event / 10));
    await t.startWorker();

    const { id } = await t.request(lately);

    const handle = t.client.workflow.getHandle(redeliveryWorkflowId(id));
    await vi.waitFor(async () => {
      const progress = await handle.query(progressQuery);
      expect(progress).toMatchObject({
        state: 'running',
        queued: progress.pages * rateLimit.perPage,
        retriesRequested: 0,
      });
      expect(progress.pages).toBeGreaterThan(0);
    }, patient);
    expect(await handle.result()).toBe('done');
    expect(await handle.query(progressQuery)).toEqual({
      state: 'done',
      pages: 3,
      seen: 50,
      queued: 50,
      retriesRequested: 0,
    });
    expect(await t.find(id)).toMatchObject({ state: 'done', seen: 50, queued: 50 });
    expect(await stepsOf(handle)).toEqual(['page', 'rest of 1000 ms', 'page', 'rest of 1000 ms', 'page']);
    await t.ledgerHas({ delivered: 50 });
    const order = t.receiver.received.map(({ headers }) => failed.indexOf(String(headers['webhook-id'])));
    // Ten slots: when an event arrives, at most nine earlier ones have not.
    for (const [position, rank] of order.entries()) expect(rank - position).toBeLessThan(10);
    expect(order.toSorted((a, b) => a - b)).toEqual(failed.map((_, rank) => rank));
  });

  it('that is cancelled half-way by its row alone sends none of the rest', { timeout }, async () => {
    const t = await setupRedelivery();
    for (let event = 0; event < 100; event += 1) await t.settled('exhausted', 20 - event / 10);
    await t.startWorker();
    const { id } = await t.request(lately);
    await vi.waitFor(async () => expect(await t.find(id)).toMatchObject({ state: 'running' }), patient);

    await t.cancel(id);

    const { queued } = await t.until(id, 'cancelled');
    expect(queued).toBeGreaterThanOrEqual(rateLimit.perPage);
    expect(queued).toBeLessThan(100);
    expect(await t.client.workflow.getHandle(redeliveryWorkflowId(id)).result()).toBe('cancelled');
    await t.ledgerHas({ delivered: queued, exhausted: 100 - queued });
    expect(t.receiver.received).toHaveLength(queued);
  });

  it('is ended during a long pause by the signal of its cancellation', { timeout }, async () => {
    const t = await setupRedelivery();
    for (let event = 0; event < 3; event += 1) await t.settled('exhausted', 20 - event);
    await t.startWorker();
    const { id, handle } = await t.startByHand({ pace: { perPage: 1, perSecond: 0.001 } });
    await vi.waitFor(async () => expect(await t.find(id)).toMatchObject({ queued: 1 }), patient);
    await t.cancel(id);
    await handle.signal(cancelSignal);
    expect(await handle.result()).toBe('cancelled');
    await t.ledgerHas({ delivered: 1, exhausted: 2 });
  });

  it('of a webhook that is parked meanwhile ends with that reason', { timeout }, async () => {
    const t = await setupRedelivery();
    for (let event = 0; event < 100; event += 1) await t.settled('exhausted', 20 - event / 10);
    await t.startWorker();
    const { id } = await t.request(lately);
    await vi.waitFor(async () => expect(await t.find(id)).toMatchObject({ state: 'running' }), patient);
    await t.owner.pool.query(`update webhook set state = 'parked', parked_reason = 'paused'`);
    const ended = await t.until(id, 'ended');
    expect(ended).toMatchObject({ endReason: 'webhook_parked' });
    expect(ended.queued).toBeLessThan(100);
    await vi.waitFor(async () => expect((await readLedger(t.owner.pool)).waiting).toBe(0), patient);
    expect(await readLedger(t.owner.pool)).toMatchObject({ difference: 0, exhausted: 100 - ended.queued });
  });

  it('of many pages continues in a new run, so that no history grows without limit', { timeout }, async () => {
    const t = await setupRedelivery();
    for (let event = 0; event < 9; event += 1) await t.settled('exhausted', 20 - event);
    await t.startWorker();
    const { id, handle } = await t.startByHand({ pace: { perPage: 2, perSecond: 1_000 }, pagesPerRun: 2 });
    expect(await handle.result()).toBe('done');
    const first = t.client.workflow.getHandle(handle.workflowId, handle.firstExecutionRunId, { followRuns: false });
    expect((await first.describe()).status.name).toBe('CONTINUED_AS_NEW');
    expect(await stepsOf(first)).toEqual(['page', 'rest of 2 ms', 'page', 'rest of 2 ms']);
    expect(await t.find(id)).toMatchObject({ state: 'done', queued: 9 });
    await t.ledgerHas({ delivered: 9 });
  });

  it('whose workflow is terminated half-way is started again where it stopped', { timeout }, async () => {
    const t = await setupRedelivery();
    for (let event = 0; event < 50; event += 1) await t.settled('exhausted', 20 - event / 10);
    await t.startWorker({ RECONCILE_AFTER: '2s' });
    const { id } = await t.request(lately);
    await vi.waitFor(async () => expect(await t.find(id)).toMatchObject({ state: 'running' }), patient);
    await t.client.workflow.getHandle(redeliveryWorkflowId(id)).terminate();
    await t.until(id, 'done', { queued: 50 });
    await t.ledgerHas({ delivered: 50 });
    expect(t.receiver.received).toHaveLength(50);
  });
});

const accept = (response: ServerResponse) => void response.writeHead(200).end();
const refuse = (response: ServerResponse) => void response.writeHead(500).end();

/** A webhook with a receiver that accepts; the test creates its organization's deliveries. */
async function setupRedelivery() {
  const { database, owner, make } = await setupDatabase();
  const receiver = await startReceiver();
  const webhook = await make.webhook({ url: receiver.url });
  const client = await openTestTemporal();
  const { em } = owner.orm;
  const of = (redeliveryId: string) => ({ organizationId: webhook.orgId, redeliveryId, by: 'operator' }) as const;
  const find = (redeliveryId: string) => findRedelivery(em, of(redeliveryId));

  return {
    owner,
    make,
    receiver,
    webhook,
    client,
    find,
    startWorker: (settings: Record<string, string> = {}) => startTestWorker(database, settings),
    settled: (state: 'delivered' | 'exhausted', hours: number) =>
      make.delivery({
        webhook,
        state,
        createdAt: hoursAgo(hours),
        settledAt: hoursAgo(hours),
        attempts: [{ status: state === 'delivered' ? 200 : 500, isLast: state === 'exhausted' }],
      }),
    request: (selection: Selection) =>
      requestRedelivery(em, { organizationId: webhook.orgId, webhookId: webhook.id, by: 'operator', selection }),
    cancel: (redeliveryId: string) => cancelRedelivery(em, of(redeliveryId)),
    /** A redelivery that the relay ignores, with a workflow that the test starts. */
    async startByHand(replaced: Partial<RedeliverInput>) {
      const { rows } = await owner.pool.query<{ id: string }>(
        `insert into redelivery (organization_id, webhook_id, failed_since, leased_until)
         values ($1, $2, now() - interval '2 days', now() + interval '1 hour') returning id`,
        [webhook.orgId, webhook.id],
      );
      const id = rows[0]?.id ?? '';
      const key = { organizationId: webhook.orgId, redeliveryId: id };
      const input: RedeliverInput = {
        ...key,
        page: 0,
        pace: rateLimit,
        pagesPerRun: 100,
        progress: null,
        ...replaced,
      };
      const start = { taskQueue: 'deliver', workflowId: redeliveryWorkflowId(id), args: [input] };
      const handle = await client.workflow.start('redeliver', start);
      onTestFinished(async () => void (await handle.terminate().catch(() => {})));
      return { id, handle };
    },
    /** Waits until a redelivery has this state. */
    async until(id: string, state: string, more: object = {}) {
      const found = await vi.waitFor(async () => {
        const now = await find(id);
        expect(now).toMatchObject({ state, ...more });
        return now;
      }, patient);
      if (found === null) throw new Error('it is gone');
      return found;
    },
    /** Waits until the ledger has these figures and its difference is 0. */
    ledgerHas: (figures: Partial<Ledger>) =>
      vi.waitFor(
        async () => expect(await readLedger(owner.pool)).toMatchObject({ ...figures, difference: 0 }),
        patient,
      ),
    events: async () => (await owner.pool.query<{ id: string; body: string }>('select id, body from event')).rows,
    /** Deliveries as `state attempts when`. */
    states: async () =>
      (
        await owner.pool.query<{ said: string }>(
          `select concat_ws(' ', state, attempts, case when next_attempt_at > now() + interval '1 hour'
            then 'later' end) as said from delivery`,
        )
      ).rows.map(({ said }) => said),
  };
}

/** Returns what a run of the workflow did, in order. */
async function stepsOf(handle: { fetchHistory(): Promise<unknown> }): Promise<string[]> {
  const { events } = (await handle.fetchHistory()) as {
    events: {
      activityTaskScheduledEventAttributes?: object | null;
      timerStartedEventAttributes?: { startToFireTimeout?: { seconds?: unknown; nanos?: number | null } | null } | null;
    }[];
  };
  return events.flatMap((event) => {
    if (event.activityTaskScheduledEventAttributes) return ['page'];
    const rest = event.timerStartedEventAttributes?.startToFireTimeout;
    return rest ? [`rest of ${Number(rest.seconds ?? 0) * 1_000 + (rest.nanos ?? 0) / 1e6} ms`] : [];
  });
}
