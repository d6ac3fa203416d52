import { conditionsOf } from '../controller/conditions.ts';
import type { JudgedCondition } from '../controller/contract.ts';
import type { Region } from '../resources.ts';
import { isUnreadable, type ObservedRegion } from './observe.ts';

const { holds, fails, unknown } = conditionsOf('WorkersCurrent');

/** Judges whether one build takes all traffic, the release's if the spec names it. */
export function judgeWorkers({ spec }: Region, { workers }: ObservedRegion): JudgedCondition {
  if (isUnreadable(workers)) return unknown(workers.reason, workers.message);
  if (workers === null) return unknown('NoDeployment', 'Temporal knows no worker deployment of the name in the spec.');
  const { currentBuild, ramping } = workers;
  if (currentBuild === null) return fails('NoCurrentBuild', 'No build of the workers is current.');
  if (ramping?.percent === 0)
    return fails('RampStopped', `Build ${ramping.buildId} was stopped; ${currentBuild} does the work.`);
  if (ramping !== null) return fails('Ramping', `Build ${ramping.buildId} takes ${ramping.percent} % of the traffic.`);
  const expected = spec.release.buildId;
  if (expected !== undefined && expected !== currentBuild)
    return fails('OtherBuildCurrent', `Build ${currentBuild} is current; the release has ${expected}.`);
  return holds('BuildCurrent', `Build ${currentBuild} is current.`);
}
