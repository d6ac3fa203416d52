import { CancellationScope, isCancellation, proxyActivities, sleep, upsertMemo } from '@temporalio/workflow';
import {
  type HoldReason,
  progressMemo,
  type ReplayActivities,
  type RolloutActivities,
  type RolloutInput,
  type RolloutProgress,
  type Routing,
  replayQueue,
} from './types.ts';

/** The shares of the traffic that a build takes before it becomes current, in percent. */
const shares = [5, 50] as const;
/** How often the routing is read during a step. */
const checksPerStep = 12;

const { readRouting, setShare, makeCurrent, announceHold } = proxyActivities<RolloutActivities>({
  startToCloseTimeout: '15s',
  retry: { initialInterval: '1s', maximumInterval: '15s' },
});

/**
 * Moves the traffic of a worker deployment to a new build, in steps.
 *
 * The build first replays a sample of histories, then takes 5 and 50 percent, and becomes current.
 * Its workers end its share when a workflow task fails, which this workflow sees in the routing.
 * When the rollout is held or cancelled, the build before takes all traffic again.
 *
 * The progress is in the memo, where it can be read without a worker, also after the end.
 */
export async function rolloutWorkers(input: RolloutInput): Promise<RolloutProgress> {
  const { deploymentName, buildId } = input;
  const progress: RolloutProgress = {
    buildId,
    state: 'replaying',
    reason: null,
    message: `Build ${buildId} replays histories before it takes traffic.`,
    percentage: 0,
    replayed: null,
    failed: null,
  };
  const report = (change: Partial<RolloutProgress>) => {
    Object.assign(progress, change);
    upsertMemo({ [progressMemo]: { ...progress } });
  };
  const hold = async (reason: HoldReason, message: string) => {
    report({ state: 'held', reason, message, percentage: 0 });
    await announceHold({ reason, message });
    return progress;
  };
  report({});

  try {
    const replay = await replayBy(input);
    report({ replayed: replay.replayed, failed: replay.failed });
    if (replay.firstFailure !== null) {
      const { workflowId, error } = replay.firstFailure;
      return await hold(
        'ReplayFailed',
        `${replay.failed} of ${replay.replayed + replay.failed} histories do not replay with build ${buildId}; ` +
          `first ${workflowId}: ${error}`,
      );
    }
    const before = await readRouting({ deploymentName });
    const needsSteps = before.currentBuild !== null && before.isCurrentAlive && before.currentBuild !== buildId;
    for (const percentage of needsSteps ? shares : []) {
      await setShare({ deploymentName, buildId, percentage });
      report({ state: 'ramping', percentage, message: `Build ${buildId} takes ${percentage} % of the traffic.` });
      const problem = await watchStep(input);
      if (problem !== null) return await hold(...problem);
    }
    await makeCurrent({ deploymentName, buildId });
    report({ state: 'current', percentage: 100, message: `Build ${buildId} takes all traffic.` });
    return progress;
  } catch (error) {
    if (!isCancellation(error)) throw error;
    return await CancellationScope.nonCancellable(async () => {
      const { ramping } = await readRouting({ deploymentName });
      if (ramping?.buildId === buildId) await setShare({ deploymentName, buildId: null, percentage: 0 });
      return await hold('Cancelled', `The release has another build than ${buildId}.`);
    });
  }
}

/** Waits for a worker of the build, for as long as its pods take to start. */
function replayBy({ deploymentName, buildId, sampleSize }: RolloutInput) {
  const { replaySample } = proxyActivities<ReplayActivities>({
    taskQueue: replayQueue(deploymentName, buildId),
    startToCloseTimeout: '10m',
    heartbeatTimeout: '30s',
    retry: { initialInterval: '2s', maximumInterval: '30s' },
  });
  return replaySample({ sampleSize });
}

/** Waits for the end of a step. Returns why the rollout is held, or null. */
async function watchStep({
  deploymentName,
  buildId,
  stepMs,
}: RolloutInput): Promise<[reason: HoldReason, message: string] | null> {
  for (let check = 0; check < checksPerStep; check += 1) {
    await sleep(stepMs / checksPerStep);
    const problem = judge(await readRouting({ deploymentName }), buildId);
    if (problem !== null) return problem;
  }
  return null;
}

function judge({ currentBuild, ramping }: Routing, buildId: string): [reason: HoldReason, message: string] | null {
  if (currentBuild === buildId) return null;
  if (ramping === null || ramping.buildId !== buildId)
    return ['Superseded', `Something else took the share of build ${buildId} away.`];
  if (ramping.percentage === 0)
    return ['TasksFailed', `Workflow tasks failed with build ${buildId}, so it takes no traffic any more.`];
  return null;
}
