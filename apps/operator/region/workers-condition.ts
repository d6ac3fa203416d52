import { condition } from '../controller/conditions.ts';
import type { JudgedCondition } from '../controller/contract.ts';
import type { Region } from '../resources.ts';
import { isUnreadable, type ObservedRegion } from './observe.ts';

/** Judges whether one build takes all traffic, the release's if the spec names it. */
export function judgeWorkers({ spec }: Region, { workers }: ObservedRegion): JudgedCondition {
  const type = 'WorkersCurrent';
  if (isUnreadable(workers)) return condition(type, null, workers.reason, workers.message);
  if (workers === null)
    return condition(type, null, 'NoDeployment', 'Temporal knows no worker deployment of the name in the spec.');
  const { currentBuild, ramping } = workers;
  if (currentBuild === null) return condition(type, false, 'NoCurrentBuild', 'No build of the workers is current.');
  if (ramping !== null && ramping.percent === 0)
    return condition(
      type,
      false,
      'RampStopped',
      `Build ${ramping.buildId} was stopped; ${currentBuild} does the work.`,
    );
  if (ramping !== null)
    return condition(type, false, 'Ramping', `Build ${ramping.buildId} takes ${ramping.percent} % of the traffic.`);
  const expected = spec.release.buildId;
  if (expected !== undefined && expected !== currentBuild)
    return condition(
      type,
      false,
      'OtherBuildCurrent',
      `Build ${currentBuild} is current; the release has ${expected}.`,
    );
  return condition(type, true, 'BuildCurrent', `Build ${currentBuild} is current.`);
}
