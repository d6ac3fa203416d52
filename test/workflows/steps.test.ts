/**
 * The steps of the workflow of deliveries, on the real server, while every timer fires 20,000 times
 * sooner.
 */
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { activityInfo } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { bundleWorkflowCode, DefaultLogger } from '@temporalio/worker';
import { describe, expect, inject, it } from 'vitest';
import { openTemporal } from '#delivery/temporal.ts';
import { shareInstallation } from '#test/setup.ts';
import { openTestTemporal } from '#test/temporal.ts';
import { testNamespace } from '#test/worker.ts';
import {
  type AttemptInput,
  type DeliverEventInput,
  deliverQueue,
  getWorkflowId,
  type NextStep,
} from '#workflows/deliver-event/types.ts';
import { timesFaster } from './virtual-time/speed.ts';

const timeout = 60_000;
const bundle = bundleWorkflowCode({
  workflowsPath: fileURLToPath(import.meta.resolve('#workflows/index.ts')),
  workflowInterceptorModules: [fileURLToPath(new URL('virtual-time/interceptors.ts', import.meta.url))],
  logger: new DefaultLogger('ERROR'),
});

const hourMs = 3_600_000;
const failed = (waitMs: number): NextStep => ({ kind: 'wait', waitMs, isInternalError: false });
const error = (waitMs: number): NextStep => ({ kind: 'wait', waitMs, isInternalError: true });
const end: NextStep = { kind: 'end' };

describe.concurrent('the workflow of a delivery', () => {
  it('makes its first attempt within its first task, the others as tasks, and sleeps for what each answers', {
    timeout,
  }, async () => {
    const { run, requested } = await arrange([failed(hourMs), failed(2 * hourMs), end]);
    const { timersMs } = await run();
    expect(requested.map(({ isLocal }) => isLocal)).toEqual([true, false, false]);
    expect(timersMs).toEqual([hourMs, 2 * hourMs].map((waitMs) => waitMs / timesFaster));
  });

  it('makes none within a task for a degraded webhook', { timeout }, async () => {
    const { run, requested } = await arrange([failed(hourMs), end], { isDegraded: true });
    await run();
    expect(requested.map(({ isLocal }) => isLocal)).toEqual([false, false]);
  });

  it('passes on how many internal errors came one after another, also that of an attempt without a response', {
    timeout,
  }, async () => {
    const lost = ApplicationFailure.nonRetryable('internal error; see the worker log');
    const { run, requested } = await arrange([error(15_000), lost, error(60_000), failed(hourMs), lost, end]);
    const { timersMs } = await run();
    expect(requested.map(({ input }) => input.internalErrors)).toEqual([0, 1, 2, 3, 0, 1]);
    expect(timersMs).toEqual([1, 1, 3, 180, 1]);
  });

  // Temporal ends an execution at 51,200 events, and an internal error may last for days.
  it('continues as a new execution with its state when its history is long', { timeout }, async () => {
    const responses = [failed(hourMs), ...Array(5).fill(error(600_000)), failed(hourMs), end];
    const { run, requested } = await arrange(responses, { eventsPerExecution: 10 });
    const { executions } = await run();
    expect(executions).toBeGreaterThan(2);
    expect(requested.map(({ input }) => input.internalErrors)).toEqual([0, 0, 1, 2, 3, 4, 5, 0]);
    expect(requested.map(({ isLocal }) => isLocal)).toEqual([true, ...Array(7).fill(false)]);
  });

  it('continues as a new execution when Temporal suggests it', { timeout }, async () => {
    // Temporal suggests it at 4 MiB of history, which these texts reach long before 4,096 events.
    const long = { ...error(1), words: 'x'.repeat(1_000_000) };
    const { start, requested } = await arrange([...Array(6).fill(long), end]);
    const handle = await start();
    await handle.result();
    expect((await handle.client.getHandle(handle.workflowId).describe()).runId).not.toBe(handle.firstExecutionRunId);
    expect(requested.map(({ input }) => input.internalErrors)).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });
});

type History = Awaited<ReturnType<WorkflowHandle['fetchHistory']>>;

interface Script {
  responses: (NextStep | Error)[];
  requested: { input: AttemptInput; isLocal: boolean }[];
}

/** By event: what its attempts answer, and what they were asked. */
const scripts = new Map<string, Script>();

/** One worker makes the attempts of all tests. */
const shared = shareInstallation(async (onFinished) => {
  const temporal = await openTemporal({
    address: inject('temporalAddress'),
    namespace: testNamespace(),
    activities: {
      async attemptDelivery(input) {
        const { responses, requested } = scripts.get(input.eventId) as Script;
        const response = responses[requested.length] ?? end;
        requested.push({ input, isLocal: activityInfo().isLocal });
        if (response instanceof Error) throw response;
        return response;
      },
      postTest: async () => null,
      checkSignatures: async () => null,
    },
    workerSlots: 10,
    bundle: await bundle,
  });
  onFinished(() => temporal.stop());
  return openTestTemporal(onFinished);
});

/** A workflow whose attempts answer, or fail, in turn. */
async function arrange(responses: (NextStep | Error)[], option: Partial<DeliverEventInput> = {}) {
  const client = shared();
  const requested: Script['requested'] = [];
  const key = { organizationId: randomUUID(), webhookId: randomUUID(), eventId: randomUUID() };
  const input: DeliverEventInput = {
    ...key,
    run: 1,
    isDegraded: false,
    type: 'client.started',
    dueAtMs: Date.now(),
    ...option,
  };
  const workflowId = getWorkflowId(key);
  scripts.set(key.eventId, { responses, requested });

  const start = () => client.workflow.start('deliverEvent', { taskQueue: deliverQueue, workflowId, args: [input] });

  /** Runs it to its end. Returns its timers in ms and how many executions it had. */
  async function run(): Promise<{ timersMs: number[]; executions: number }> {
    const handle = await start();
    await handle.result();
    const timersMs: number[] = [];
    let executions = 0;
    for (let runId: string | null | undefined = handle.firstExecutionRunId; runId; executions += 1) {
      const { events }: History = await client.workflow.getHandle(workflowId, runId).fetchHistory();
      for (const { timerStartedEventAttributes: timer } of events ?? []) {
        const wait = timer?.startToFireTimeout;
        if (wait) timersMs.push(Number(wait.seconds ?? 0) * 1000 + (wait.nanos ?? 0) / 1e6);
      }
      runId = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
    }
    return { timersMs, executions };
  }
  return { start, run, requested };
}
