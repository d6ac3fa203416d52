import { fileURLToPath } from 'node:url';
import { Client } from '@temporalio/client';
import {
  bundleWorkflowCode,
  DefaultLogger,
  type InjectedSinks,
  makeTelemetryFilterString,
  type NativeConnection,
  Runtime,
  Worker,
  type WorkerOptions,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import type { Logger } from '#runtime/log.ts';
import { once } from '#runtime/once.ts';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import {
  type DeliveryActivities,
  type DeliverySinks,
  deliverQueue,
  deliverSlowQueue,
  type RoundEnd,
} from '#workflows/deliver-event/types.ts';
import type { RedeliveryActivities } from '#workflows/redeliver/types.ts';
import type { TestActivities } from '#workflows/send-test/types.ts';
import { connectToTemporal, followApiKey } from './connect-temporal.ts';
import { createDeliveryWorkflows } from './delivery-workflows.ts';
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
 * Bundles `workflows/` for a worker. Its source map has lines only: columns would depend on the
 * length of this machine's paths, and a prebuilt bundle is to have the same bytes everywhere.
 */
export function bundleWorkflows(): Promise<WorkflowBundleWithSourceMap> {
  return bundleWorkflowCode({
    workflowsPath: fileURLToPath(import.meta.resolve('#workflows/index.ts')),
    logger: new DefaultLogger('ERROR'),
    webpackConfigHook: (config) => ({ ...config, devtool: 'inline-cheap-module-source-map' }),
  });
}

/**
 * Two workers on one connection, one per queue, so that retries and failing webhooks have slots of
 * their own; and what the relay asks of Temporal. Workflows are started eagerly: the worker that
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
  const workers = await createWorkers(connection, options);
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

async function createWorkers(connection: NativeConnection, options: TemporalOptions): Promise<[Worker, Worker]> {
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
  return [prompt, slow];
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

/**
 * Sends what the SDK and its native core have to say to our log, warnings and worse only; the core
 * would otherwise write to standard error itself. The SDK's runtime is one a process and cannot be
 * replaced, so this is called once, by the process's main or a test file's set-up, before anything
 * opens Temporal. With `metricsAddress` (host:port) the core serves its own metrics there.
 */
export function installTemporalLog(log: Logger, metricsAddress?: string): void {
  Runtime.install({
    telemetryOptions: {
      logging: { filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }), forward: {} },
      ...(metricsAddress === undefined ? {} : { metrics: { prometheus: { bindAddress: metricsAddress } } }),
    },
    logger: new DefaultLogger('WARN', ({ level, message }) => log.warn({ sdkLevel: level }, `temporal: ${message}`)),
  });
}
