import type { Client, WorkflowService } from '@temporalio/client';
import { type NativeConnection, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import { once } from '#runtime/flow/once.ts';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import { bundleWorkflows } from '#workflows/bundle-sources.ts';
import { type DeliveryActivities, deliverQueue, getWorkflowId } from '#workflows/deliver-event/types.ts';
import type { deliverEvent } from '#workflows/deliver-event/workflow.ts';
import type { TestActivities } from '#workflows/send-test/types.ts';
import { findUnmetNeeds } from '#workflows/server-needs.ts';
import { connectToTemporal, followApiKey, TemporalLink } from './connect-temporal.ts';
import type { ClaimedDelivery } from './sql/claim.ts';

interface TemporalOptions extends TemporalServer {
  activities: DeliveryActivities & TestActivities;
  /** First attempts of runs that this process makes at once for healthy webhooks, and as many others. */
  workerSlots: number;
  /** Workflow code that was bundled before; null bundles it now (2 s). */
  bundle: WorkflowBundleWithSourceMap | null;
  /** Called with a sentence: what prevents it from opening, or what is missing. */
  onProblem?: (sentence: string) => void;
  /** Ends the opening, which continues until Temporal answers. */
  signal?: AbortSignal;
}

/** Workflow tasks without an attempt that a worker carries out at once; each takes milliseconds. */
export const otherWorkflowTasks = 20;

/**
 * How long Temporal waits for a worker that has a workflow task: one that is killed before the
 * first admission holds the delivery for this time. The worker extends it during an attempt.
 */
const workflowTaskTimeout = '5s';

/**
 * Opens Temporal's worker and the client of the relay on one connection. Runs are started eagerly:
 * the process that starts one gets its first task with the reply.
 *
 * @throws the signal's reason when that aborted before Temporal answered.
 */
export async function openTemporal(options: TemporalOptions) {
  const { namespace, onProblem = () => {}, signal = new AbortController().signal } = options;
  const connection = await connectToTemporal({ server: options, signal, onProblem });
  if (connection === null) throw signal.reason;
  const worker = await createWorker(connection, options);
  const onReplaced = (next: NativeConnection) => {
    worker.connection = next;
  };
  const link = new TemporalLink(connection, { server: options, onReplaced, onProblem });
  const apiKey = followApiKey(link, options, onProblem);
  void apiKey.start();
  // A server that does not say now what it lacks is no reason to wait.
  const needs = await link.call(() => findUnmetNeeds(connection, namespace)).catch(() => []);
  for (const { problem, remedy } of needs) onProblem(`${problem}: ${remedy}`);
  const running = worker.run();

  return {
    /** Calls Temporal within a deadline; not for the start of a run. */
    call: <Result>(send: (service: WorkflowService) => Promise<Result>) =>
      link.call(({ workflowService }) => send(workflowService)),
    startRun: (delivery: ClaimedDelivery) => link.call((client) => startRun(client, delivery)),
    stop: once(async (): Promise<void> => {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await running;
      await apiKey.stop();
      await link.close();
    }),
  };
}

/** Starts a run; the server ends an older one with it. Returns whether the first task came with the reply. */
async function startRun(client: Client, { isFull: _, ...input }: ClaimedDelivery): Promise<boolean> {
  const { eagerlyStarted } = await client.workflow.start<typeof deliverEvent>('deliverEvent', {
    taskQueue: deliverQueue,
    workflowId: getWorkflowId(input),
    args: [input],
    requestEagerStart: true,
    workflowTaskTimeout,
    workflowIdReusePolicy: 'ALLOW_DUPLICATE',
    workflowIdConflictPolicy: 'TERMINATE_EXISTING',
  });
  return eagerlyStarted;
}

async function createWorker(connection: NativeConnection, options: TemporalOptions): Promise<Worker> {
  const { namespace, activities, workerSlots, bundle } = options;
  const workflowBundle = bundle ?? (await bundleWorkflows());
  return await Worker.create({
    connection,
    namespace,
    activities,
    workflowBundle,
    taskQueue: deliverQueue,
    shutdownGraceTime: '25s',
    maxConcurrentLocalActivityExecutions: workerSlots,
    maxConcurrentActivityTaskExecutions: workerSlots,
    // The first attempt of a run takes its workflow's task for its whole duration; the steps of other
    // workflows must not wait for it.
    maxConcurrentWorkflowTaskExecutions: workerSlots + otherWorkflowTasks,
    maxCachedWorkflows: 2_000,
  });
}
