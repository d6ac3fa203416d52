import { fileURLToPath } from 'node:url';
import { activityInfo } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import { TypedSearchAttributes } from '@temporalio/common';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { setupDatabase } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { testNamespace } from '#test/worker.ts';
import { openTemporal } from '../../apps/worker/relay/temporal.ts';
import { createDeliveryActivities, type PostOutcome } from '../../workflows/deliver-event/activities.ts';
import { priorityOfRound } from '../../workflows/deliver-event/priority.ts';
import { organizationAttribute, stateAttribute } from '../../workflows/deliver-event/search-attributes.ts';
import {
  type AttemptInput,
  type AttemptResult,
  type DeliverEventInput,
  type DeliveryActivities,
  deliverQueue,
  workflowIdOf,
} from '../../workflows/deliver-event/types.ts';

const timeout = 120_000;
const seconds = (waits: number[]) => waits.map((waitMs) => waitMs / 1_000);

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));
/** The workflow's own code, while every timer fires 20,000 times sooner. */
const bundle = bundleWorkflowCode({
  workflowsPath: fileURLToPath(import.meta.resolve('#workflows/index.ts')),
  workflowInterceptorModules: [file('../workflows/virtual-time/interceptors.ts')],
  logger: new DefaultLogger('ERROR'),
});

const blank = {
  ...{ status: null, explanation: 'A sentence.', timingsMs: { total: 1 }, peerAddress: null, keptBytes: 0 },
  ...{ answer: Buffer.alloc(0), retryAfterSeconds: null },
};
const ownFault: PostOutcome = { ...blank, kind: 'failed', cause: 'dns_unavailable', ownFault: true };
const refused: PostOutcome = { ...blank, kind: 'failed', status: 500, cause: 'answered_server_error', ownFault: false };
const accepted: PostOutcome = { ...blank, kind: 'delivered', status: 200, cause: 'accepted', ownFault: false };

// Once, a fault of ours that lasted repeated each delivery every 15 s on the queue of the news, until Temporal ended the workflow for its length after 20 hours.
describe('a delivery that a fault of ours postpones', () => {
  it('waits from 15 s to 10 min, longer after each, on the slow queue, and uses up no attempt', {
    timeout,
  }, async () => {
    const { start, made, rows } = await arrange([...Array(8).fill(ownFault), refused, ownFault, accepted]);

    expect(await (await start()).result()).toBe('delivered');

    const waits = seconds(made.flatMap(({ result }) => ('waitMs' in result ? [result.waitMs] : [])));
    for (const [index, least] of [15, 30, 60, 120, 240, 480, 600, 600, 3_600, 15].entries()) {
      expect(waits[index]).toBeGreaterThanOrEqual(least);
      expect(waits[index]).toBeLessThanOrEqual(least * 1.1);
    }
    expect(made.map(({ queue }) => queue)).toEqual([deliverQueue, ...Array(10).fill('deliver-slow')]);
    // Of the schedule's two waits the first is used, by the one attempt that the receiver refused.
    expect(made.map(({ input }) => input.nextDelayMs === null)).toEqual(Array(11).fill(false));
    expect(await rows('select state, attempts from delivery')).toEqual([{ state: 'delivered', attempts: 11 }]);
  });

  it('goes on in a new run when its history is long, with all that it has behind it', { timeout }, async () => {
    const outcomes = [refused, ...Array(5).fill(ownFault), refused, accepted];
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
    // It is still found by what operators list it by, and takes its organization's turns.
    for (const { attributes, priority } of runs) {
      expect(attributes.get(organizationAttribute)).toBe(ids.organizationId);
      expect(priority).toMatchObject(priorityOfRound({ ...ids, slow: false }));
    }
    expect(runs.map(({ attributes }) => attributes.get(stateAttribute))).toEqual([
      ...Array(runs.length - 1).fill('waiting'),
      'delivered',
    ]);
  });

  it('goes on in a new run when Temporal suggests it', { timeout }, async () => {
    const { start, made } = await arrange([], {}, async (_, nth) =>
      // Temporal suggests it at 4 MiB of history, too, to which these words come sooner than to 4,096 events.
      nth < 7
        ? ({ kind: 'postponed', waitMs: 1, because: 'ownFault', words: 'x'.repeat(1_000_000) } as AttemptResult)
        : { kind: 'delivered' },
    );

    const handle = await start();
    expect(await handle.result()).toBe('delivered');

    const last = await handle.client.getHandle(handle.workflowId).describe();
    expect(last.runId).not.toBe(handle.firstExecutionRunId);
    expect(made.map(({ input }) => input.ownFaults)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });

  it('ends in whichever run it is told to', { timeout }, async () => {
    const { start, made } = await arrange([], { eventsPerRun: 5 }, async () => ({ kind: 'postponed', waitMs: 1 }));
    const handle = await start();
    await expect.poll(() => made.length, { timeout: 60_000 }).toBeGreaterThan(3);
    await handle.signal('cancel');
    expect(await handle.result()).toBe('closed');
  });
});

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;

/** Every run of a workflow, from the first. */
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

/** One delivery with a workflow whose timers fire 20,000 times sooner. Its posts come to `outcomes`, one after the other, unless `attempt` replaces the whole activity. */
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
    ...{ address: inject('temporalAddress'), namespace: testNamespace(), delaysMs: [] },
    activities: { ...real, attemptDelivery },
    ...{ promptSlots: 10, slowSlots: 10 },
    bundle: await bundle,
  });
  onTestFinished(() => temporal.stop());
  const client = await openTestTemporal();
  const input: DeliverEventInput = {
    ...{ ...ids, delaysMs: [3_600_000, 7_200_000], slow: false },
    ...{ type: 'client.started', begunAtMs: Date.now(), firstAttempt: 'local', ...option },
  };
  const start = () =>
    client.workflow.start('deliverEvent', {
      ...{ taskQueue: deliverQueue, workflowId: workflowIdOf(ids, 1), args: [input] },
      priority: priorityOfRound({ ...ids, slow: false }),
      typedSearchAttributes: new TypedSearchAttributes([
        { key: organizationAttribute, value: ids.organizationId },
        { key: stateAttribute, value: 'attempting' },
      ]),
    });
  return { start, made, rows, ids };
}
