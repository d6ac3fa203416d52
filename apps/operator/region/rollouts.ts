import { Client, WorkflowNotFoundError } from '@temporalio/client';
import { NativeConnection, Worker, type WorkflowBundleWithSourceMap } from '@temporalio/worker';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import { bundleWorkflows } from '#workflows/bundle-sources.ts';
import { connectionOptions } from '#workflows/connection.ts';
import { deliverQueue } from '#workflows/deliver-event/types.ts';
import {
  progressMemo,
  type RolloutActivities,
  type RolloutInput,
  type RolloutProgress,
  requestMemo,
  rolloutQueue,
  rolloutWorkflowId,
} from '#workflows/rollout/types.ts';
import { type Note, ReconcileFailed } from '../controller/contract.ts';
import type { Region } from '../resources.ts';
import type { Connections } from './connections.ts';
import { readWorkers } from './workers.ts';

export interface ObservedRollout {
  /** Whether this process carries out the rollouts of the region. */
  isOpen: boolean;
  /** Null: none was started, or Temporal's retention removed it. `requestOf` writes the request. */
  newest: { request: string; isRunning: boolean; progress: RolloutProgress } | null;
}

const callDeadlineMs = 5_000;
const cancelDeadlineMs = 20_000;
/** A poll that finds nothing lasts 60 s at the server. */
const goneAfterMs = 75_000;

/** Names a rollout: the same request is carried out once. */
export const requestOf = ({ spec: { release, workers } }: Region): string =>
  [release.buildId, workers?.rollout?.retry].filter(Boolean).join(' ');

/**
 * Runs rollouts as Temporal workflows on a worker of this process. A workflow continues where it
 * stopped when another process of the operator takes over.
 */
export function createRollouts(options: {
  connections: Connections;
  /** Null bundles the workflows when the first rollout starts. */
  bundle: WorkflowBundleWithSourceMap | null;
  /** Records an Event about the Region. */
  announce: (note: Note) => Promise<void>;
  /** Called when the worker ends by an error; it is opened again by a later pass. */
  onError: (cause: unknown) => void;
}) {
  const { connections, bundle, announce, onError } = options;
  let open: { key: string; stop(): Promise<void> } | null = null;

  async function openClient(region: Region) {
    const { namespace, deployment: deploymentName } = region.spec.temporal;
    if (deploymentName === undefined) throw new ReconcileFailed('NoDeployment', 'temporal.deployment is missing.');
    const client = new Client({ connection: await connections.openTemporal(region), namespace });
    return { client, deploymentName, handle: client.workflow.getHandle(rolloutWorkflowId(deploymentName)) };
  }

  async function findNewest(region: Region): Promise<ObservedRollout['newest']> {
    const { client, handle } = await openClient(region);
    try {
      const { status, memo = {} } = await client.withDeadline(Date.now() + callDeadlineMs, () => handle.describe());
      const { [requestMemo]: request, [progressMemo]: progress } = memo as Record<string, unknown>;
      if (typeof request !== 'string' || progress === undefined) return null;
      return { request, isRunning: status.name === 'RUNNING', progress: progress as RolloutProgress };
    } catch (cause) {
      if (cause instanceof WorkflowNotFoundError) return null;
      throw cause;
    }
  }

  return {
    async read(region: Region): Promise<ObservedRollout> {
      const { key } = await connections.serverOf(region);
      return { isOpen: open?.key === key, newest: await findNewest(region) };
    },

    /** Starts the worker that carries out rollouts. */
    async open(region: Region): Promise<void> {
      const { key, server } = await connections.serverOf(region);
      await open?.stop();
      const { client, deploymentName } = await openClient(region);
      const activities = createRolloutActivities(client, announce);
      const opened = { key, ...(await startWorker(server, deploymentName, activities, bundle)) };
      open = opened;
      void opened.running.catch(onError).finally(() => {
        if (open === opened) open = null;
      });
    },

    /** Starts a rollout. One that runs is left alone. */
    async start(region: Region, input: RolloutInput): Promise<void> {
      const { client, deploymentName } = await openClient(region);
      const progress: RolloutProgress = {
        buildId: input.buildId,
        state: 'replaying',
        reason: null,
        message: 'The rollout starts.',
        percentage: 0,
        replayed: null,
        failed: null,
      };
      await client.workflow.start('rolloutWorkers', {
        workflowId: rolloutWorkflowId(deploymentName),
        taskQueue: rolloutQueue(deploymentName),
        args: [input],
        memo: { [requestMemo]: requestOf(region), [progressMemo]: progress },
        workflowIdConflictPolicy: 'USE_EXISTING',
        workflowTaskTimeout: '10s',
      });
    },

    /** Cancels the rollout that runs, and waits until the build before has all traffic. */
    async cancel(region: Region): Promise<void> {
      const { client, handle } = await openClient(region);
      await client.withDeadline(Date.now() + callDeadlineMs, () => handle.cancel());
      await client.withDeadline(Date.now() + cancelDeadlineMs, () => handle.result());
    },

    /** Gives the current build all traffic again. */
    async endShare(region: Region): Promise<void> {
      const { client, deploymentName } = await openClient(region);
      await createRolloutActivities(client, announce).setShare({ deploymentName, buildId: null, percentage: 0 });
    },

    async close(): Promise<void> {
      await open?.stop();
    },
  };
}

export type Rollouts = ReturnType<typeof createRollouts>;

async function startWorker(
  server: TemporalServer,
  deploymentName: string,
  activities: RolloutActivities,
  bundle: WorkflowBundleWithSourceMap | null,
) {
  const workflowBundle = bundle ?? (await bundleWorkflows());
  const connection = await NativeConnection.connect(connectionOptions(server));
  const worker = await Worker.create({
    connection,
    namespace: server.namespace,
    taskQueue: rolloutQueue(deploymentName),
    workflowBundle,
    activities,
    maxCachedWorkflows: 2,
    maxConcurrentWorkflowTaskExecutions: 2,
    maxConcurrentActivityTaskExecutions: 4,
  });
  const running = worker.run().finally(() => connection.close());
  return {
    running,
    async stop(): Promise<void> {
      if (worker.getState() === 'RUNNING') worker.shutdown();
      await running.catch(() => {});
    },
  };
}

function createRolloutActivities(client: Client, announce: (note: Note) => Promise<void>): RolloutActivities {
  const { workflowService } = client;
  const { namespace } = client.options;
  const call = <T>(work: () => Promise<T>) => client.withDeadline(Date.now() + callDeadlineMs, work);
  return {
    async readRouting({ deploymentName }) {
      const workers = await call(() => readWorkers(workflowService, { namespace, deploymentName }));
      const currentBuild = workers?.currentBuild ?? null;
      const { pollers } = await call(() =>
        workflowService.describeTaskQueue({ namespace, taskQueue: { name: deliverQueue }, taskQueueType: 1 }),
      );
      const since = Date.now() - goneAfterMs;
      const isCurrentAlive = (pollers ?? []).some(
        ({ deploymentOptions, lastAccessTime }) =>
          deploymentOptions?.deploymentName === deploymentName &&
          deploymentOptions.buildId === currentBuild &&
          Number(lastAccessTime?.seconds ?? 0) * 1_000 >= since,
      );
      const ramping = workers?.ramping ?? null;
      return {
        currentBuild,
        isCurrentAlive,
        ramping: ramping === null ? null : { buildId: ramping.buildId, percentage: ramping.percent },
      };
    },
    async setShare({ deploymentName, buildId, percentage }) {
      const change = { namespace, deploymentName, buildId: buildId ?? '', percentage };
      await call(() => workflowService.setWorkerDeploymentRampingVersion(change));
    },
    async makeCurrent({ deploymentName, buildId }) {
      await call(() => workflowService.setWorkerDeploymentCurrentVersion({ namespace, deploymentName, buildId }));
    },
    announceHold: ({ message }) => announce({ reason: 'RolloutHeld', message }),
  };
}
