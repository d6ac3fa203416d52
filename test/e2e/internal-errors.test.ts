import { fileURLToPath } from 'node:url';
import { activityInfo } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest';
import { factsOf } from '#delivery/post/outcome.ts';
import { postOnce } from '#delivery/post/post.ts';
import { createResolve } from '#delivery/post/resolve.ts';
import { refusedPost } from '#test/post-outcomes.ts';
import { startReceiver } from '#test/receiver.ts';
import { setupDatabase } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { startTestWorker, testNamespace, workerEnvironment } from '#test/worker.ts';
import { signWith } from '../../apps/worker/activities.ts';
import { readConfig } from '../../apps/worker/config.ts';
import { openTemporal } from '../../apps/worker/relay/temporal.ts';
import {
  type ActivityDependencies,
  createDeliveryActivities,
  type PostOutcome,
} from '../../workflows/deliver-event/activities.ts';
import { priorityOfRound } from '../../workflows/deliver-event/priority.ts';
import { organizationAttribute } from '../../workflows/deliver-event/search-attributes.ts';
import {
  type AttemptInput,
  type AttemptResult,
  attemptTimeoutMs,
  type DeliverEventInput,
  type DeliveryActivities,
  deliverQueue,
  workflowIdOf,
} from '../../workflows/deliver-event/types.ts';
import { createTestActivities } from '../../workflows/send-test/activities.ts';

const timeout = 120_000;
const seconds = (waits: number[]) => waits.map((waitMs) => waitMs / 1_000);

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));
/** The current workflow code, while every timer fires 20,000 times sooner. */
const bundle = bundleWorkflowCode({
  workflowsPath: fileURLToPath(import.meta.resolve('#workflows/index.ts')),
  workflowInterceptorModules: [file('../workflows/virtual-time/interceptors.ts')],
  logger: new DefaultLogger('ERROR'),
});

const internalError: PostOutcome = {
  ...refusedPost,
  status: null,
  cause: 'dns_unavailable',
  isInternalError: true,
};
const accepted: PostOutcome = { ...refusedPost, kind: 'delivered', status: 200, cause: 'accepted' };

// Regression: a lasting internal error repeated each delivery every 15 s on the queue of first
// attempts, until Temporal ended the workflow for its length after 20 hours.
describe('a delivery that an internal error postpones', () => {
  it('waits from 15 s to 10 min, longer each time, in the slow queue, and uses up no attempt', {
    timeout,
  }, async () => {
    const { start, made, rows } = await arrange([
      ...Array(8).fill(internalError),
      refusedPost,
      internalError,
      accepted,
    ]);

    expect(await (await start()).result()).toBe('delivered');

    const waits = seconds(made.flatMap(({ result }) => ('waitMs' in result ? [result.waitMs] : [])));
    for (const [index, least] of [15, 30, 60, 120, 240, 480, 600, 600, 3_600, 15].entries()) {
      expect(waits[index]).toBeGreaterThanOrEqual(least);
      expect(waits[index]).toBeLessThanOrEqual(least * 1.1);
    }
    expect(made.map(({ queue }) => queue)).toEqual([deliverQueue, ...Array(10).fill('deliver-slow')]);
    // The attempt that the receiver refused uses the first of the schedule's two waits.
    expect(made.map(({ input }) => input.nextDelayMs === null)).toEqual(Array(11).fill(false));
    expect(await rows('select state, attempts from delivery')).toEqual([{ state: 'delivered', attempts: 11 }]);
  });

  it('continues in a new run with its state when its history is long', { timeout }, async () => {
    const outcomes = [refusedPost, ...Array(5).fill(internalError), refusedPost, accepted];
    const { start, made, rows, ids } = await arrange(outcomes, { eventsPerRun: 10 });

    const handle = await start();
    expect(await handle.result()).toBe('delivered');

    const runs = await runsOf(handle);
    expect(runs.length).toBeGreaterThan(2);
    const waits = seconds(made.flatMap(({ result }) => ('waitMs' in result ? [result.waitMs] : [])));
    for (const [index, least] of [3_600, 15, 30, 60, 120, 240, 7_200].entries()) {
      expect(waits[index]).toBeGreaterThanOrEqual(least);
      expect(waits[index]).toBeLessThanOrEqual(least * 1.1);
    }
    expect(await rows('select state, attempts from delivery')).toEqual([{ state: 'delivered', attempts: 8 }]);
    // Operators' queries still find it, and fairness still applies to its organization.
    for (const { attributes, priority } of runs) {
      expect(attributes.get(organizationAttribute)).toBe(ids.organizationId);
      expect(priority).toMatchObject(priorityOfRound({ ...ids, slow: false }));
    }
  });

  it('continues in a new run when Temporal suggests it', { timeout }, async () => {
    const { start, made } = await arrange([], {}, async (_, nth) =>
      // Temporal also suggests it at 4 MiB of history, which these texts reach before 4,096 events.
      nth < 7
        ? ({ kind: 'postponed', waitMs: 1, because: 'internalError', words: 'x'.repeat(1_000_000) } as AttemptResult)
        : { kind: 'delivered' },
    );

    const handle = await start();
    expect(await handle.result()).toBe('delivered');

    const last = await handle.client.getHandle(handle.workflowId).describe();
    expect(last.runId).not.toBe(handle.firstExecutionRunId);
    expect(made.map(({ input }) => input.internalErrors)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it('ends in the run that receives the cancellation', { timeout }, async () => {
    const { start, made } = await arrange([], { eventsPerRun: 5 }, async () => ({ kind: 'postponed', waitMs: 1 }));
    const handle = await start();
    await expect.poll(() => made.length, { timeout: 60_000 }).toBeGreaterThan(3);
    await handle.signal('cancel');
    expect(await handle.result()).toBe('closed');
  });
});

/**
 * Errors before the first byte of a request is sent, and the recorded cause. Regression: each was
 * `lost`, and used up the schedule.
 */
describe('an attempt that fails before anything is sent', () => {
  const admitted = 'select cause, explanation, status, headers, is_last from delivery_attempt';

  it.each([
    ['its webhook has no secret', `delete from webhook_secret`],
    ['its secret does not open', `update webhook_secret set sealed = 'damaged'`],
    ['the row with its body is missing', `set session_replication_role = replica; delete from event`],
    ['its stored URL cannot be read', `update webhook set url = 'https:/'`],
    ['its stored URL is none that a registration takes', `update webhook set url = 'https://user@127.0.0.1/'`],
  ])('is recorded as an internal error when %s, and does not count', { timeout }, async (_, damage) => {
    const { receiver, activities, input, rows, errors } = await arrangeActivities();
    await rows(damage);

    const result = await activities.attemptDelivery({ ...input, nextDelayMs: null, internalErrors: 3 });

    // Not `exhausted`, although it is the schedule's last: the same attempt is repeated, and the
    // wait grows with the number of errors.
    expect(result).toMatchObject({ kind: 'postponed', because: 'internalError' });
    expect('waitMs' in result && result.waitMs).toBeGreaterThanOrEqual(120_000);
    const [attempt] = await rows(admitted);
    expect(attempt).toMatchObject({ cause: 'internal_error', status: null });
    expect(attempt?.explanation).toBe(factsOf('internal_error').explanation);
    expect(await rows('select state, attempts from delivery')).toEqual([{ state: 'waiting', attempts: 1 }]);
    expect(await rows('select failing_since from webhook')).toEqual([{ failing_since: null }]);
    expect(receiver.received).toEqual([]);
    expect(errors).toHaveLength(1);
  });

  it('is recorded as an internal error when its admission took so long that the attempt could outlast its limit', {
    timeout,
  }, async () => {
    const { owner, activities, input, rows, receiver } = await arrangeActivities();
    const holder = await owner.pool.connect();
    await holder.query('begin');
    await holder.query('select from delivery for update');
    const attempt = activities.attemptDelivery(input);
    await new Promise((resolve) => setTimeout(resolve, attemptTimeoutMs - 10_000 - 1_500));
    await holder.query('commit');
    holder.release();
    expect(await attempt).toMatchObject({ kind: 'postponed', because: 'internalError' });
    expect(await rows('select cause from delivery_attempt')).toEqual([{ cause: 'internal_error' }]);
    expect(receiver.received).toEqual([]);
  });

  it('appears in the metric of its alert, and is delivered once the key is configured', { timeout }, async () => {
    const { database, make, owner } = await setupDatabase();
    const receiver = await startReceiver();
    const professional = await make.member();
    await make.webhook({ orgId: professional.orgId, url: receiver.url });
    const otherKey = `9:${Buffer.alloc(32, 9).toString('base64')}`;
    const broken = await startTestWorker(database, { WEBHOOK_SECRET_KEYS: otherKey });
    await make.grant({ professional });
    const metric = /^org_api_delivery_internal_errors_total\{cause="internal_error"\} 1$/m;
    const patient = { timeout: 40_000, interval: 100 };
    await vi.waitFor(
      async () => expect(await (await fetch(`${broken.metricsUrl}/metrics`)).text()).toMatch(metric),
      patient,
    );
    expect(broken.logLines.join('')).toContain('add that version to WEBHOOK_SECRET_KEYS');
    expect(broken.logLines.join('')).not.toContain('whsec_');
    await broken.stop();
    expect(receiver.received).toHaveLength(0);

    await startTestWorker(database);
    const { rows } = await owner.pool.query<{ id: string }>(
      `select 'delivery/' || webhook_id || '/' || event_id as id from delivery`,
    );
    await (await openTestTemporal()).workflow.getHandle(rows[0]?.id ?? '').signal('retryNow');
    await vi.waitFor(() => expect(receiver.received).toHaveLength(1), patient);
  });
});

// Regression: a worker whose clock was ten minutes off signed with its own time, and receivers
// refused its posts as too old.
it('signatures contain the time of PostgreSQL’s clock, whatever the worker’s clock shows', { timeout }, async () => {
  const { activities, testActivities, input, rows, receiver } = await arrangeActivities();
  const [{ now }] = (await rows('select extract(epoch from clock_timestamp())::float8 as now')) as [{ now: number }];
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 600_000 });
  try {
    await activities.attemptDelivery(input);
    await testActivities.postTest({ ...input, eventType: 'client.started' });
  } finally {
    vi.useRealTimers();
  }
  expect(receiver.received).toHaveLength(2);
  for (const { headers } of receiver.received) {
    expect(Math.abs(Number(headers['webhook-timestamp']) - now)).toBeLessThan(60);
    expect(headers['service-signature']).toContain(`t=${headers['webhook-timestamp']},`);
  }
});

/** One delivery, with the activities that a worker registers, and its receiver. */
async function arrangeActivities() {
  const { database, owner, make } = await setupDatabase();
  const professional = await make.member();
  const receiver = await startReceiver();
  const webhook = await make.webhook({ orgId: professional.orgId, url: receiver.url });
  await make.grant({ professional });
  const rows = async (query: string) => {
    const result = (await owner.pool.query(query)) as unknown as { rows: Record<string, unknown>[] };
    return Array.isArray(result) ? [] : result.rows;
  };
  const [event] = await rows('select id from event');
  const config = readConfig(workerEnvironment(database));
  const errors: unknown[] = [];
  const dependencies: ActivityDependencies = {
    pool: owner.pool,
    sign: signWith(() => config.webhookSecretKeys),
    post: (request) =>
      postOnce({
        ...request,
        allow: config.webhookAllow,
        resolve: createResolve(),
        onInternalError: (error) => errors.push(error),
      }),
    onInternalError: (error) => errors.push(error),
  };
  const input: AttemptInput = {
    organizationId: professional.orgId,
    webhookId: webhook.id,
    eventId: event?.id as string,
    round: 1,
    nextDelayMs: 60_000,
    internalErrors: 0,
  };
  const activities = createDeliveryActivities(dependencies);
  return { owner, rows, receiver, errors, input, activities, testActivities: createTestActivities(dependencies) };
}

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;

/** Returns every run of a workflow, from the first. */
async function runsOf(handle: WorkflowHandle & { firstExecutionRunId: string }) {
  const { client } = handle;
  const runs = [];
  for (let runId: string | null | undefined = handle.firstExecutionRunId; runId; ) {
    const run: WorkflowHandle = client.getHandle(handle.workflowId, runId);
    const { typedSearchAttributes } = await run.describe();
    const events: History['events'] = (await run.fetchHistory()).events;
    const begun = events?.[0]?.workflowExecutionStartedEventAttributes;
    runs.push({ attributes: typedSearchAttributes, priority: begun?.priority });
    runId = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
  return runs;
}

/**
 * One delivery with a workflow whose timers fire 20,000 times sooner. Its posts return `outcomes`
 * in turn, unless `attempt` replaces the whole activity.
 */
async function arrange(
  outcomes: PostOutcome[],
  option: Partial<DeliverEventInput> = {},
  attempt?: (input: AttemptInput, nth: number) => Promise<AttemptResult>,
) {
  const { owner, make } = await setupDatabase();
  const professional = await make.member();
  const webhook = await make.webhook({ orgId: professional.orgId, url: 'http://127.0.0.1:9/' });
  await make.grant({ professional });
  const rows = async (query: string) => (await owner.pool.query(query)).rows;
  const [event] = await rows('select id from event');
  const ids = { organizationId: professional.orgId, webhookId: webhook.id, eventId: event?.id as string, round: 1 };
  const left = [...outcomes];
  const real = createDeliveryActivities({
    pool: owner.pool,
    sign: () => ({}),
    post: async () => left.shift() ?? accepted,
  });
  const made: { input: AttemptInput; result: AttemptResult; queue: string }[] = [];
  const attemptDelivery: DeliveryActivities['attemptDelivery'] = async (input) => {
    const queue = activityInfo().taskQueue;
    const result = await (attempt === undefined ? real.attemptDelivery(input) : attempt(input, made.length + 1));
    if (result.kind !== 'begun') made.push({ input, result, queue });
    return result;
  };
  const temporal = await openTemporal({
    address: inject('temporalAddress'),
    namespace: testNamespace(),
    delaysMs: [],
    activities: { ...real, attemptDelivery },
    promptSlots: 10,
    slowSlots: 10,
    bundle: await bundle,
  });
  onTestFinished(() => temporal.stop());
  const client = await openTestTemporal();
  const input: DeliverEventInput = {
    ...ids,
    delaysMs: [3_600_000, 7_200_000],
    slow: false,
    type: 'client.started',
    begunAtMs: Date.now(),
    ...option,
  };
  const start = () =>
    client.workflow.start('deliverEvent', {
      taskQueue: deliverQueue,
      workflowId: workflowIdOf(ids, 1),
      args: [input],
      priority: priorityOfRound({ ...ids, slow: false }),
      typedSearchAttributes: new TypedSearchAttributes([{ key: organizationAttribute, value: ids.organizationId }]),
    });
  return { start, made, rows, ids };
}
