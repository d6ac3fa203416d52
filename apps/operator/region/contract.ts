import { conditionsOf } from '../controller/conditions.ts';
import type { Failure, JudgedCondition } from '../controller/contract.ts';
import type { Region } from '../resources.ts';
import { isUnreadable, type ObservedRegion } from './observe.ts';
import { isSchemaCurrent } from './rollout-plan.ts';
import { judgeWorkers } from './workers-condition.ts';

export interface ContractAction {
  kind: 'startContract';
  /** Name of the Job. */
  job: string;
  /** The contract migrations that it runs. */
  pending: string[];
}

/** Plans contract migrations: nothing while something needs the version before. */
export function planContract(region: Region, observed: ObservedRegion): ContractAction[] {
  const { contract, database } = observed;
  if (contract === null || isUnreadable(contract) || isUnreadable(database)) return [];
  if (contract.job.state !== 'absent' || findObstacles(region, observed).length > 0) return [];
  return [{ kind: 'startContract', job: contract.job.name, pending: database.pendingContract }];
}

/** Returns what contract migrations wait for. */
function findObstacles(region: Region, observed: ObservedRegion): string[] {
  const { database, workers, contract } = observed;
  if (isUnreadable(database) || contract === null || isUnreadable(contract)) return [];
  if (!isSchemaCurrent(database)) return ['The expand migrations.'];
  const { status, message } = judgeWorkers(region, observed);
  if (status !== 'True' || workers === null || isUnreadable(workers)) return [`WorkersCurrent: ${message}`];
  const { otherPods } = contract;
  const builds = workers.builds.filter(({ state }) => state === 'Draining' || state === 'Ramping');
  return [
    ...builds.map(({ buildId }) => `The open workflows of build ${buildId}.`),
    ...(otherPods.length === 0 ? [] : [`Pods of another image: ${otherPods.slice(0, 5).join(', ')}.`]),
  ];
}

const { holds, fails } = conditionsOf('SchemaCurrent');

/**
 * Judges a schema whose expand migrations are applied; null when no contract migration is pending.
 * One that waits is no fault. One whose Job failed is.
 */
export function judgeContract(
  region: Region,
  observed: ObservedRegion,
  failure: Failure | null,
): JudgedCondition | null {
  const { contract, database } = observed;
  if (isUnreadable(database) || database.pendingContract.length === 0) return null;
  const pending = `Contract migrations are pending: ${database.pendingContract.join(', ')}.`;
  const { cronJob, mode } = region.spec.migrations ?? {};
  if (mode !== 'Gate' || contract === null) {
    const command =
      cronJob === undefined
        ? '`npm run migrate -- --contract`'
        : `\`kubectl create job --from=cronjob/${cronJob} ${cronJob}-1\``;
    return holds('ContractManual', `${pending} Run ${command} when nothing needs the version before.`);
  }
  if (failure?.reason === 'ContractBlocked') return holds(failure.reason, `${pending} ${failure.message}`);
  if (isUnreadable(contract)) return holds('ContractBlocked', `${pending} ${contract.message}`);
  const { name, state } = contract.job;
  if (state === 'failed') return fails('ContractFailed', `${pending} Job ${name} failed.`);
  if (state === 'running') return holds('ContractRunning', `${pending} Job ${name} runs.`);
  if (state === 'succeeded')
    return holds('ContractBlocked', `${pending} Job ${name} has ended, and its image lacks them.`);
  const obstacles = findObstacles(region, observed);
  const waits = obstacles.length === 0 ? 'The operator starts them.' : `They wait. ${obstacles.join(' ')}`;
  return holds('ContractPending', `${pending} ${waits}`);
}
