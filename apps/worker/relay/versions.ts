import { setTimeout as sleep } from 'node:timers/promises';
import type { NativeConnection } from '@temporalio/worker';
import { createIntervalLoop } from '#runtime/interval-loop.ts';
import { StartRefused } from '#runtime/start-refused.ts';
import { taskQueueTypes, toMs } from './progress.ts';
import { isStopped, planOperated, planRamp, type RampAction, type RampState } from './ramp.ts';
import type { TaskCounts } from './task-counts.ts';

/** The deployment that this worker belongs to, and its build. */
export interface WorkerVersion {
  /** One for each region and release, for example `org-api-us`. */
  deploymentName: string;
  buildId: string;
}

interface VersionsOptions {
  service: NativeConnection['workflowService'];
  /** Runs a call and fails it after a few seconds. */
  withinDeadline?: <T>(call: () => Promise<T>) => Promise<T>;
  namespace: string;
  version: WorkerVersion;
  /** The queue whose pollers show which versions are alive. */
  taskQueue: string;
  checkEveryMs?: number;
  /** After how long without a poll the current version counts as gone. An empty poll lasts 60 s. */
  goneAfterMs?: number;
  /** Whether workers or a Kubernetes operator move traffic to this version. */
  rollout?: 'worker' | 'operator';
  /** The longest step of the ramp, when there is too little work to judge by. */
  rampStepMs: number;
  /** Workflow tasks of this process so far. */
  countTasks: () => Promise<TaskCounts>;
  /** Called with true when this version's ramp stops because workflow tasks failed. */
  onStopped?: (isStopped: boolean) => void;
  /** Called when the current build changes (null: none). */
  onCurrent?: (current: { buildId: string | null; isOwn: boolean }) => void;
  /** Called with the error of a failed check; it is repeated. */
  onError: (cause: unknown) => void;
}

const retryEveryMs = 1_000;
/** How long `start` tries while Temporal refuses. */
const startDeadlineMs = 600_000;
/** After how long without a worker of the current version this one takes over from an operator. */
const takeOverMs = 300_000;
/** The server knows a version a few seconds after its first polls; later failures are reported. */
const quietMs = 10_000;

/**
 * Makes this worker's version the current one of its deployment, so that new deliveries start on it
 * and waiting ones continue on it. This needs nothing outside the pods.
 *
 * A version takes traffic in steps (`planRamp`). Its pods are not ready meanwhile, so a rollout
 * keeps the pods of the version before. When a workflow task fails, the ramp returns to 0 percent
 * and stays there. The first version, and one that finds the current version without pollers,
 * becomes current at once, because nothing else does the work.
 *
 * A worker does this when it starts, in either direction of a rollout, so an old pod that restarts
 * cannot leave the deployment on a version that is gone. While an operator owns the rollout, a
 * version only ends its own share (`planOperated`).
 *
 * Rejected: order by creation time, with which a rollback would never take over; order by Helm's
 * revision, which Argo CD does not count.
 */
export function createVersions(options: VersionsOptions) {
  const { service, namespace, version, taskQueue, onError, onCurrent = () => {} } = options;
  // Seen on a real cluster: the server may hang on the first call for a version whose workers have
  // just begun to poll, and answer the next one at once.
  const { withinDeadline = (call) => call() } = options;
  const { checkEveryMs = 10_000, goneAfterMs = 75_000, rollout = 'worker' } = options;
  const { rampStepMs, countTasks, onStopped = () => {} } = options;
  const { deploymentName, buildId } = version;
  let known: string | null | undefined;
  let hasBegun = false;
  let wasStopped = false;
  let currentSeenAt = performance.now();
  let step = { percentage: -1, startedAt: 0, tasks: { completed: 0, failed: 0 } };
  const stopping = new AbortController();

  function reportCurrent(current: string | null): void {
    if (current === known) return;
    known = current;
    onCurrent({ buildId: current, isOwn: current === buildId });
  }

  async function becomeCurrent(): Promise<void> {
    let failingSince: number | null = null;
    while (!stopping.signal.aborted) {
      const result = await check().catch((cause: unknown) => ({ cause }));
      if (result === true) return;
      failingSince = result === false ? null : reportFailure(result.cause, failingSince ?? performance.now());
      await sleep(retryEveryMs);
    }
  }

  /**
   * Returns since when checks fail.
   *
   * @throws StartRefused after the deadline.
   */
  function reportFailure(cause: unknown, failingSince: number): number {
    const failedMs = performance.now() - failingSince;
    if (failedMs > startDeadlineMs)
      throw new StartRefused(
        `version ${buildId} could not be made current in Temporal's deployment ${deploymentName}: see that ` +
          `Temporal is 1.28 or newer and knows versioning, and this worker's rights there`,
        { cause },
      );
    if (failedMs > quietMs) onError(cause);
    return failingSince;
  }

  /** Takes the next step, if there is one. Returns whether this version is current. */
  async function check(): Promise<boolean> {
    const described = await withinDeadline(() => service.describeWorkerDeployment({ namespace, deploymentName }));
    const { conflictToken = null } = described;
    const { current, ramping } = readRouting(described);
    reportCurrent(current);
    const state = { own: buildId, current, ramping };
    if (isStopped(state) !== wasStopped) {
      wasStopped = isStopped(state);
      onStopped(wasStopped);
    }
    if (current === buildId) hasBegun = true;
    if (current === buildId || stopping.signal.aborted) return current === buildId;
    const isCurrentAlive = current !== null && (await isAlive(current));
    if (isCurrentAlive) currentSeenAt = performance.now();
    const action = plan({ ...state, isCurrentAlive, hasBegun, ...(await judgeStep(ramping)) });
    // With the conflict token, only one of several workers that see the same state succeeds.
    const change = { namespace, deploymentName, buildId, conflictToken };
    if (action.kind === 'makeCurrent') {
      await withinDeadline(() => service.setWorkerDeploymentCurrentVersion(change));
      hasBegun = true;
      reportCurrent(buildId);
      return true;
    }
    if (action.kind === 'ramp') {
      const { percentage } = action;
      await withinDeadline(() => service.setWorkerDeploymentRampingVersion({ ...change, percentage }));
      hasBegun = true;
    }
    return false;
  }

  function plan(state: RampState): RampAction {
    if (rollout === 'worker') return planRamp(state, { stepMs: rampStepMs });
    return planOperated({ ...state, withoutCurrentMs: performance.now() - currentSeenAt }, { takeOverMs });
  }

  /** Returns what this process did since its version got the current share. */
  async function judgeStep(ramping: RampState['ramping']) {
    const tasks = await countTasks();
    const percentage = ramping?.buildId === buildId ? ramping.percentage : -1;
    if (percentage !== step.percentage) {
      // A task that failed while the share changed counts too: it failed on this version's code.
      step = { percentage, startedAt: performance.now(), tasks: { ...tasks, failed: step.tasks.failed } };
    }
    return {
      completedTasks: tasks.completed - step.tasks.completed,
      failedTasks: tasks.failed - step.tasks.failed,
      stepAgeMs: performance.now() - step.startedAt,
    };
  }

  async function isAlive(current: string): Promise<boolean> {
    const { pollers } = await withinDeadline(() =>
      service.describeTaskQueue({ namespace, taskQueue: { name: taskQueue }, taskQueueType: taskQueueTypes.workflow }),
    );
    const since = Date.now() - goneAfterMs;
    return (pollers ?? []).some(
      ({ deploymentOptions, lastAccessTime }) =>
        deploymentOptions?.deploymentName === deploymentName &&
        deploymentOptions.buildId === current &&
        toMs(lastAccessTime) >= since,
    );
  }

  const loop = createIntervalLoop({ run: check, everyMs: checkEveryMs, onError });
  return {
    /**
     * Resolves when this version is current. The server knows a version a moment after the worker's
     * first polls, so this is repeated until then.
     *
     * @throws StartRefused after the deadline: the worker would get no work.
     */
    async start(): Promise<void> {
      await becomeCurrent();
      if (!stopping.signal.aborted) void loop.start();
    },
    /** Waits for the current check. The version stays current: another pod of it may live. */
    async stop(): Promise<void> {
      stopping.abort();
      await loop.stop();
    },
  };
}

type Described = Awaited<ReturnType<NativeConnection['workflowService']['describeWorkerDeployment']>>;

/** Returns the current version and the one that takes a share; null: none. */
function readRouting({ workerDeploymentInfo }: Described): Pick<RampState, 'current' | 'ramping'> {
  const routing = workerDeploymentInfo?.routingConfig;
  const buildId = routing?.rampingDeploymentVersion?.buildId;
  return {
    current: routing?.currentDeploymentVersion?.buildId || null,
    ramping: buildId ? { buildId, percentage: routing?.rampingVersionPercentage ?? 0 } : null,
  };
}
