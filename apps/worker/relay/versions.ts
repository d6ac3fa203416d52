import type { NativeConnection } from '@temporalio/worker';
import { StartRefused } from '#runtime/start-refused.ts';

/** Which deployment this worker belongs to, and which build of it this is. Source: issue 5, point 7. */
export interface WorkerVersion {
  /** One a region and release, for example `org-api-us`. */
  deploymentName: string;
  buildId: string;
}

export interface VersionsOptions {
  service: NativeConnection['workflowService'];
  /** Carries out a call and fails it after a few seconds. */
  withinDeadline?: <T>(call: () => Promise<T>) => Promise<T>;
  namespace: string;
  version: WorkerVersion;
  /** The queue whose pollers tell which versions are alive. */
  taskQueue: string;
  checkEveryMs?: number;
  /**
   * After how long without a poll the current version counts as gone. A poll that finds nothing lasts 60 s at the server, so less than that would call a living one gone.
   */
  goneAfterMs?: number;
  /** How long `start` tries. */
  startDeadlineMs?: number;
  /** Told which build is current (null: none) when it changes, and whether it is this one. */
  onCurrent?: (current: { buildId: string | null; isOwn: boolean }) => void;
  /** Of a check that failed; it is repeated. */
  onError: (cause: unknown) => void;
}

const retryEveryMs = 1_000;
/** The server knows a version a few seconds after its first polls; what fails later is told. */
const quietMs = 10_000;

/**
 * Makes this worker's version the current one of its deployment, so that new deliveries start on it and waiting ones go on with it. Nothing outside the pods takes part: no hook, no operator.
 *
 * A worker makes its own version current when it starts, whichever way the rollout goes; and again when the current one has had no pollers for a while. So an old pod that restarts in the
 * middle of a rollout takes over for as long as its version lives, and cannot leave the deployment pointing at a version that is gone. Meanwhile deliveries wait in Temporal; none is lost.
 *
 * (Rejected: order by creation time, under which a rollback would never take over; order by Helm's revision, which Argo CD does not count.)
 */
export function createVersions(options: VersionsOptions) {
  const { service, namespace, version, taskQueue, onError, onCurrent = () => {} } = options;
  // Seen on a real cluster: the server may hang on the first call for a version whose workers have just begun to poll, and answer the next at once.
  const { withinDeadline = (call) => call() } = options;
  const { checkEveryMs = 10_000, goneAfterMs = 75_000, startDeadlineMs = 600_000 } = options;
  const { deploymentName, buildId } = version;
  let timer: NodeJS.Timeout | undefined;
  let checking: Promise<void> | null = null;
  let known: string | null | undefined;
  const stopping = new AbortController();

  function tell(current: string | null): void {
    if (current === known) return;
    known = current;
    onCurrent({ buildId: current, isOwn: current === buildId });
  }

  /** The conflict token lets one of several that see the same win. */
  async function makeCurrent(conflictToken: Uint8Array | null): Promise<void> {
    await withinDeadline(() =>
      service.setWorkerDeploymentCurrentVersion({ namespace, deploymentName, buildId, conflictToken }),
    );
    tell(buildId);
  }

  async function makeCurrentSoon(): Promise<void> {
    for (const startedAt = performance.now(); !stopping.signal.aborted; ) {
      try {
        return await makeCurrent(null);
      } catch (cause) {
        const triedMs = performance.now() - startedAt;
        if (triedMs > startDeadlineMs) throw notCurrent(cause);
        if (triedMs > quietMs) onError(cause);
        await new Promise((resolve) => setTimeout(resolve, retryEveryMs));
      }
    }
  }

  function notCurrent(cause: unknown): StartRefused {
    return new StartRefused(
      `version ${buildId} could not be made current in Temporal's deployment ${deploymentName}: see that Temporal is 1.28 or newer and knows versioning, and this worker's rights there`,
      { cause },
    );
  }

  async function check(): Promise<void> {
    const { workerDeploymentInfo, conflictToken } = await withinDeadline(() =>
      service.describeWorkerDeployment({ namespace, deploymentName }),
    );
    const current = workerDeploymentInfo?.routingConfig?.currentDeploymentVersion?.buildId || null;
    tell(current);
    if (current === buildId || stopping.signal.aborted) return;
    if (current === null || !(await isAlive(current))) await makeCurrent(conflictToken ?? null);
  }

  async function isAlive(current: string): Promise<boolean> {
    const { pollers } = await withinDeadline(() =>
      service.describeTaskQueue({ namespace, taskQueue: { name: taskQueue }, taskQueueType: 1 }),
    );
    const since = Date.now() - goneAfterMs;
    return (pollers ?? []).some(
      ({ deploymentOptions, lastAccessTime }) =>
        deploymentOptions?.deploymentName === deploymentName &&
        deploymentOptions.buildId === current &&
        Number(lastAccessTime?.seconds ?? 0) * 1_000 >= since,
    );
  }

  function tick(): void {
    checking ??= check()
      .catch(onError)
      .finally(() => {
        checking = null;
      });
  }

  return {
    /**
     * Resolves when this version is current. The server knows a version, and its queues, a moment after the worker's first polls, so this is repeated until then.
     *
     * @throws StartRefused after the deadline: without, it would get no work.
     */
    async start(): Promise<void> {
      await makeCurrentSoon();
      if (!stopping.signal.aborted) timer = setInterval(tick, checkEveryMs);
    },
    /** Waits for the check under way. Safe to call twice, and before `start`. The version stays current: another pod of it may live. */
    async stop(): Promise<void> {
      stopping.abort();
      clearInterval(timer);
      await checking;
    },
  };
}
