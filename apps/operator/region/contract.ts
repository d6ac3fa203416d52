import { currentMigration } from '#domain/db/migrations/index.ts';
import type { RegionState } from '#domain/db/statements/region-state.ts';
import { conditionsOf } from '../controller/conditions.ts';
import type { Failure, JudgedCondition } from '../controller/contract.ts';
import type { Region } from '../resources.ts';
import { isUnreadable, type ObservedRegion } from './observe.ts';

export interface ContractAction {
  kind: 'startContract';
  /** Name of the Job. */
  job: string;
  /** The contract migrations that it runs. */
  pending: string[];
}

/** Plans contract migrations: nothing while something needs the version before. */
export function planContract(observed: ObservedRegion): ContractAction[] {
  const { contract, database } = observed;
  if (contract === null || isUnreadable(contract) || isUnreadable(database)) return [];
  if (contract.job.state !== 'absent' || findObstacles(observed).length > 0) return [];
  return [{ kind: 'startContract', job: contract.job.name, pending: database.pendingContract }];
}

/** Returns what contract migrations wait for. */
function findObstacles({ database, contract }: ObservedRegion): string[] {
  if (isUnreadable(database) || contract === null || isUnreadable(contract)) return [];
  if (!isSchemaCurrent(database)) return ['The expand migrations.'];
  const { otherPods } = contract;
  return otherPods.length === 0 ? [] : [`Pods of another image: ${otherPods.slice(0, 5).join(', ')}.`];
}

/** Whether every expand migration is applied. A pending contract migration is no failure. */
const isSchemaCurrent = ({ failedMigration, migrations }: RegionState): boolean =>
  failedMigration === null && migrations.includes(currentMigration);

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
  const obstacles = findObstacles(observed);
  const waits = obstacles.length === 0 ? 'The operator starts them.' : `They wait. ${obstacles.join(' ')}`;
  return holds('ContractPending', `${pending} ${waits}`);
}
