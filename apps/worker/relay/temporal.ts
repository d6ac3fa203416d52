import { Client } from '@temporalio/client';
import {
  type InjectedSinks,
  type NativeConnection,
  Worker,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import { once } from '#runtime/once.ts';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import { bundleWorkflows } from '#workflows/bundle-sources.ts';
import {
  type DeliveryActivities,
  type DeliverySinks,
  deliverQueue,
  deliverSlowQueue,
  type RoundEnd,
} from '#workflows/deliver-event/types.ts';
import type { RedeliveryActivities } from '#workflows/redeliver/types.ts';
import type { TestActivities } from '#workflows/send-test/types.ts';
import { findUnmetNeeds } from '#workflows/server-needs.ts';
import { connectToTemporal, followApiKey } from './connect-temporal.ts';
import { createDeliveryWorkflows } from './delivery-workflows.ts';
import { openSearchAttributes } from './search-attributes.ts';
import { UnlimitedWorker } from './unlimited-worker.ts';

export interface TemporalOptions extends TemporalServer {
  activities: DeliveryActivities & Partial<TestActivities & RedeliveryActivities>;
  delaysMs: readonly number[];
  /** How much older than its queue's backlog a task may be before it counts as stranded; 60 s. */
  strandedAfterMs?: number;
  /** Attempts in progress at once, on the prompt queue and on the slow one. */
  promptSlots: number;
  slowSlots: number;
  /** Workflow code that was bundled before; null bundles it now (2 s). */
  bundle: WorkflowBundleWithSourceMap | null;
  /** Called when this process ends a round, at the time of its end. */
  onRoundEnded?: (end: RoundEnd) => void;
  /** Called with a sentence: what prevents it from opening, or what is missing. */
  onProblem?: (sentence: string) => void;
  /** Ends the opening, which continues until Temporal answers. */
  signal?: AbortSignal;
}

/** Workflow tasks without an attempt that a worker carries out at once; each takes milliseconds. */
export const otherWorkflowTasks = 20;
/** For requests to the server that are repeated when it does not answer. */
const callDeadlineMs = 5_000;

/** The worker's connection to Temporal, open. */
export type OpenTemporal = Awaited<ReturnType<typeof openTemporal>>;

/**
 * Opens two workers on one connection, one per queue, so that retries and failing webhooks have
 * slots of their own, and the client of the relay. Workflows are started eagerly: the worker that
 * starts one gets its first task with the answer.
 *
 * @throws the signal's reason when that aborted before Temporal answered.
 */
export async function openTemporal(options: TemporalOptions) {
  const {
    namespace,
    delaysMs,
    strandedAfterMs = 60_000,
    onProblem = () => {},
    signal = new AbortController().signal,
  } = options;
  const connection = await connectToTemporal({ server: options, signal, onProblem });
  if (connection === null) throw signal.reason;
  const apiKey = followApiKey(connection, options, onProblem);
  void apiKey.start();
  const client = new Client({ connection, namespace });
  await reportUnmetNeeds(connection, namespace, onProblem);
  const attributes = await openSearchAttributes({ client, namespace, onProblem });
  const workers = await createWorkers(connection, options);
  const running = Promise.all(workers.map((worker) => worker.run()));

  const close = async (): Promise<void> => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    await running;
    await apiKey.stop();
    await connection.close();
  };

  return {
    /** Rejects when a worker fails permanently; resolves after `stop`. */
    running,
    /** Uses the workers' connection. */
    client,
    service: connection.workflowService,
    withinDeadline: <T>(call: () => Promise<T>) => connection.withDeadline(Date.now() + callDeadlineMs, call),
    ...createDeliveryWorkflows({ client, delaysMs, attributes, strandedAfterMs }),
    stop: once(close),
  };
}

/** Reports what the server lacks. A server that does not say so now is no reason to wait. */
async function reportUnmetNeeds(
  connection: NativeConnection,
  namespace: string,
  onProblem: (sentence: string) => void,
): Promise<void> {
  const ask = () => findUnmetNeeds(connection, namespace);
  const needs = await connection.withDeadline(Date.now() + callDeadlineMs, ask).catch(() => []);
  for (const { problem, remedy } of needs) onProblem(`${problem}: ${remedy}`);
}

async function createWorkers(connection: NativeConnection, options: TemporalOptions): Promise<Worker[]> {
  const { namespace, activities, promptSlots, slowSlots, onRoundEnded = () => {} } = options;
  const workflowBundle = options.bundle ?? (await bundleWorkflows());
  const sinks: InjectedSinks<DeliverySinks> = { delivery: { ended: { fn: (_, end) => onRoundEnded(end) } } };
  const common = { connection, namespace, activities, shutdownGraceTime: '25s' } as const;
  const prompt = await UnlimitedWorker.create({
    ...common,
    taskQueue: deliverQueue,
    workflowBundle,
    sinks,
    maxConcurrentActivityTaskExecutions: promptSlots,
    maxConcurrentLocalActivityExecutions: promptSlots,
    // A first attempt holds its workflow's task for its whole duration; the steps of other
    // workflows must not wait for it.
    maxConcurrentWorkflowTaskExecutions: promptSlots + otherWorkflowTasks,
    maxCachedWorkflows: 2_000,
  });
  const slow = await Worker.create({
    ...common,
    taskQueue: deliverSlowQueue,
    maxConcurrentActivityTaskExecutions: slowSlots,
  });
  return [prompt, slow];
}
