import { Context } from '@temporalio/activity';
import { Client } from '@temporalio/client';
import {
  type InjectedSinks,
  type NativeConnection,
  Worker,
  type WorkerOptions,
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
import { type ReplayActivities, replayQueue } from '#workflows/rollout/types.ts';
import type { TestActivities } from '#workflows/send-test/types.ts';
import { connectToTemporal, followApiKey } from './connect-temporal.ts';
import { createDeliveryWorkflows } from './delivery-workflows.ts';
import { replaySample } from './replay-sample.ts';
import { openSearchAttributes } from './search-attributes.ts';
import type { WorkerVersion } from './versions.ts';

export interface TemporalOptions extends TemporalServer {
  activities: DeliveryActivities & Partial<TestActivities & RedeliveryActivities>;
  delaysMs: readonly number[];
  /**
   * By how much a task may be older than the backlog of its queue explains before it counts as
   * stranded; 60 s.
   */
  strandedAfterMs?: number;
  /** Attempts under way at once, on the prompt queue and on the slow one. */
  promptSlots: number;
  slowSlots: number;
  /** Workflow code, bundled before; null bundles it now (2 s). */
  bundle: WorkflowBundleWithSourceMap | null;
  /** The version as which the workers poll; null: unversioned. */
  version?: WorkerVersion | null;
  /** Whether workers of a version replay histories when an operator asks. */
  offersReplay?: boolean;
  /** Called when this process ends a round, at the time of its end. */
  onRoundEnded?: (end: RoundEnd) => void;
  /** Called with a sentence: what keeps it from opening, or what it does without. */
  onProblem?: (sentence: string) => void;
  /** Ends the opening, which goes on until Temporal answers. */
  signal?: AbortSignal;
}

/**
 * Workflow tasks without an attempt in them that a worker carries out at once; each is a matter of
 * milliseconds.
 */
export const otherWorkflowTasks = 20;
/** For questions to the server that are asked again when it does not answer. */
const callDeadlineMs = 5_000;

/** The worker's half of Temporal, open. */
export type OpenTemporal = Awaited<ReturnType<typeof openTemporal>>;

/**
 * Two workers on one connection, one per queue, so that retries and failing webhooks have slots of
 * their own, a third one that replays histories for an operator, and what the relay asks of
 * Temporal. Workflows are started eagerly: the worker that
 * starts one gets its first task with the answer, which spares the round trip through the queue.
 *
 * Resolves once Temporal answers, however long that takes. @throws the signal's reason when that
 * came first.
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
  const leaveApiKey = followApiKey(connection, options);
  const client = new Client({ connection, namespace });
  const attributes = await openSearchAttributes({ client, namespace, onProblem });
  const workers = await createWorkers(connection, client, options);
  const running = Promise.all(workers.map((worker) => worker.run()));

  const close = async (): Promise<void> => {
    for (const worker of workers) if (worker.getState() === 'RUNNING') worker.shutdown();
    await running;
    leaveApiKey();
    await connection.close();
  };

  return {
    /** Rejects when a worker fails permanently; resolves after `stop`. */
    running,
    /** Over the workers' connection. */
    client,
    service: connection.workflowService,
    withinDeadline: <T>(call: () => Promise<T>) => connection.withDeadline(Date.now() + callDeadlineMs, call),
    ...createDeliveryWorkflows({ client, delaysMs, attributes, strandedAfterMs }),
    stop: once(close),
  };
}

async function createWorkers(
  connection: NativeConnection,
  client: Client,
  options: TemporalOptions,
): Promise<Worker[]> {
  const { namespace, activities, promptSlots, slowSlots, onRoundEnded = () => {}, version = null } = options;
  const workflowBundle = options.bundle ?? (await bundleWorkflows());
  const sinks: InjectedSinks<DeliverySinks> = { delivery: { ended: { fn: (_, end) => onRoundEnded(end) } } };
  const common = { connection, namespace, activities, shutdownGraceTime: '25s', ...versioned(version) } as const;
  const prompt = await Worker.create({
    ...common,
    taskQueue: deliverQueue,
    workflowBundle,
    sinks,
    maxConcurrentActivityTaskExecutions: promptSlots,
    maxConcurrentLocalActivityExecutions: promptSlots,
    // A first attempt holds its workflow's task for as long as it takes; the steps of others must
    // not wait for it.
    maxConcurrentWorkflowTaskExecutions: promptSlots + otherWorkflowTasks,
    maxCachedWorkflows: 2_000,
  });
  const slow = await Worker.create({
    ...common,
    taskQueue: deliverSlowQueue,
    maxConcurrentActivityTaskExecutions: slowSlots,
  });
  if (version === null || options.offersReplay !== true) return [prompt, slow];
  const replay = await Worker.create({
    connection,
    namespace,
    taskQueue: replayQueue(version.deploymentName, version.buildId),
    activities: {
      replaySample: ({ sampleSize }) =>
        replaySample({ client, workflowBundle, sampleSize, onReplayed: () => Context.current().heartbeat() }),
    } satisfies ReplayActivities,
    maxConcurrentActivityTaskExecutions: 1,
  });
  return [prompt, slow, replay];
}

/**
 * A delivery waits for days, so it moves on with each release instead of keeping an old pod alive:
 * saved histories prove that the new code can take it over.
 */
function versioned(version: WorkerVersion | null): Pick<WorkerOptions, 'workerDeploymentOptions'> {
  if (version === null) return {};
  return {
    workerDeploymentOptions: { version, useWorkerVersioning: true, defaultVersioningBehavior: 'AUTO_UPGRADE' },
  };
}
