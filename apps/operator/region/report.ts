import { currentMigration, migrations } from '#domain/db/migrations/index.ts';
import type { RolloutProgress } from '#workflows/rollout/types.ts';
import { condition } from '../controller/conditions.ts';
import type { Failure, JudgedCondition, Report } from '../controller/contract.ts';
import type { Region } from '../resources.ts';
import { judgeAdmission, nameAdmission } from './admission.ts';
import { judgeContract } from './contract.ts';
import { judgeKeys } from './keys.ts';
import { isUnreadable, type ObservedRegion } from './observe.ts';
import { showSealed } from './sealing.ts';
import { judgeTemporal } from './temporal.ts';
import { judgeWorkers } from './workers-condition.ts';

/**
 * Returns the status of a Region. What could not be read is left out of the fields and makes its
 * condition Unknown, never False.
 */
export function reportRegion(region: Region, observed: ObservedRegion | null, failure: Failure | null): Report<Region> {
  if (observed === null) {
    const { reason = 'NotObserved', message = 'Not looked at yet.' } = failure ?? {};
    const parts = conditionTypes.map((type) => condition(type, null, reason, message));
    const others = ['Delivering', 'KeysFresh'].map((type) => condition(type, null, reason, message));
    return { schema: { expected: currentMigration }, conditions: [summarize(parts), ...parts, ...others] };
  }
  const parts = [
    judgeSchema(region, observed, failure),
    judgeTemporal(region, observed, failure),
    ...judgeReplay(region, observed),
    judgeWorkers(region, observed),
    judgeLedger(observed),
  ];
  return {
    ...showDatabase(observed),
    ...showWorkers(observed),
    ...showRollout(observed),
    ...showSecrets(observed),
    conditions: [
      summarize(parts),
      ...judgeProgress(observed),
      ...parts,
      judgeAdmission(observed),
      judgeKeys(region, observed, failure),
    ],
  };
}

const conditionTypes = ['SchemaCurrent', 'TemporalReady', 'WorkersCurrent', 'LedgerBalanced'] as const;

function showDatabase({ database }: ObservedRegion): Omit<Report<Region>, 'conditions'> {
  if (isUnreadable(database)) return { schema: { expected: currentMigration } };
  const { waiting, overdue, oldestDueAt, ledgerDifference, suspendedWebhooks, admission } = database;
  const { underWay } = admission;
  const { pendingContract } = database;
  const pending = pendingContract.length === 0 ? {} : { pending: pendingContract };
  const oldest = oldestDueAt === null ? {} : { oldestDueAt };
  return {
    schema: { applied: newestOf(database), expected: currentMigration, ...pending },
    deliveries: { state: nameAdmission(admission.state), underWay, waiting, overdue, ledgerDifference, ...oldest },
    suspendedWebhooks,
  };
}

function showSecrets(observed: ObservedRegion): Pick<Report<Region>, 'secrets'> {
  const { database } = observed;
  const peppers = isUnreadable(database) ? {} : { peppers: database.peppers };
  return { secrets: { ...showSealed(observed), ...peppers } };
}

function showWorkers({ workers }: ObservedRegion): Pick<Report<Region>, 'workers'> {
  if (workers === null || isUnreadable(workers)) return {};
  const { currentBuild, ramping, builds } = workers;
  const current = currentBuild === null ? {} : { currentBuild };
  const share = ramping === null ? {} : { rampingBuild: ramping.buildId, rampingPercent: Math.round(ramping.percent) };
  return { workers: { ...current, ...share, builds } };
}

const shownStates = { replaying: 'Replaying', ramping: 'Ramping', current: 'Current', held: 'Held' } as const;

const newestRollout = ({ rollout }: ObservedRegion): RolloutProgress | null =>
  rollout === null || isUnreadable(rollout) ? null : (rollout.newest?.progress ?? null);

function showRollout(observed: ObservedRegion): Pick<Report<Region>, 'rollout'> {
  const progress = newestRollout(observed);
  if (progress === null) return {};
  const { buildId: build, state, percentage: percent, replayed, failed } = progress;
  const counts = replayed === null || failed === null ? {} : { replayed, failed };
  return { rollout: { build, state: shownStates[state], percent, ...counts } };
}

const newestOf = ({ migrations }: { migrations: string[] }): string => migrations.at(-1) ?? 'none';

/** Ready: the first condition that does not hold says why. */
function summarize(parts: readonly JudgedCondition[]): JudgedCondition {
  const problem = parts.find(({ status }) => status === 'False') ?? parts.find(({ status }) => status === 'Unknown');
  if (problem === undefined)
    return condition('Ready', true, 'AllConditionsHold', 'Schema, Temporal, workers and ledger are as they should be.');
  return condition('Ready', problem.status === 'Unknown' ? null : false, problem.reason, problem.message);
}

function judgeSchema(region: Region, observed: ObservedRegion, failure: Failure | null): JudgedCondition {
  const type = 'SchemaCurrent';
  const { database } = observed;
  if (isUnreadable(database))
    return condition(type, database.reason === 'NotMigrated' ? false : null, database.reason, database.message);
  const newest = newestOf(database);
  const { failedMigration } = database;
  if (failedMigration !== null) {
    const names = failedMigration.names.join(', ');
    const code = failedMigration.code === null ? '' : ` with the error code ${failedMigration.code}`;
    const message = `Migrations failed${code}: ${names}. The newest one applied is ${newest}.`;
    return condition(type, false, 'MigrationFailed', message);
  }
  if (!database.migrations.includes(currentMigration))
    return condition(
      type,
      false,
      'MigrationsPending',
      `The newest migration is ${newest}; this version needs ${currentMigration}.`,
    );
  const contract = judgeContract(region, observed, failure);
  if (contract !== null) return contract;
  const unknown = database.migrations.findLast((applied) => !migrations.some(({ name }) => name === applied));
  if (unknown !== undefined)
    return condition(
      type,
      true,
      'NewerThanOperator',
      `Migration ${unknown} is applied; this operator does not know it.`,
    );
  return condition(type, true, 'MigrationsApplied', `The newest migration is ${newest}.`);
}

/** Whether the release's build replays histories; none when the workers roll themselves out. */
function judgeReplay({ spec }: Region, observed: ObservedRegion): JudgedCondition[] {
  const type = 'ReplayVerified';
  const { rollout } = observed;
  if (rollout === null) return [];
  if (isUnreadable(rollout)) return [condition(type, null, rollout.reason, rollout.message)];
  const progress = newestRollout(observed);
  const { buildId } = spec.release;
  if (progress === null || progress.buildId !== buildId)
    return [condition(type, null, 'NotReplayed', `Build ${buildId} has not replayed histories.`)];
  const { replayed, failed, message } = progress;
  if (replayed === null || failed === null) return [condition(type, null, 'Replaying', message)];
  if (failed > 0) return [condition(type, false, 'ReplayFailed', message)];
  return [condition(type, true, 'HistoriesReplayed', `${replayed} histories replay with build ${buildId}.`)];
}

/** Whether a rollout is under way. */
function judgeProgress(observed: ObservedRegion): JudgedCondition[] {
  const type = 'Progressing';
  const { rollout } = observed;
  if (rollout === null) return [];
  if (isUnreadable(rollout)) return [condition(type, null, rollout.reason, rollout.message)];
  const progress = newestRollout(observed);
  if (progress === null) return [condition(type, false, 'NoRollout', 'No rollout has started.')];
  const { state, reason, message } = progress;
  if (reason !== null) return [condition(type, false, reason, message)];
  if (state === 'current') return [condition(type, false, 'RolloutComplete', message)];
  return [condition(type, true, state === 'ramping' ? 'Ramping' : 'Replaying', message)];
}

function judgeLedger({ database }: ObservedRegion): JudgedCondition {
  const type = 'LedgerBalanced';
  if (isUnreadable(database)) return condition(type, null, database.reason, database.message);
  const { ledgerDifference } = database;
  if (ledgerDifference !== 0)
    return condition(
      type,
      false,
      'LedgerDifference',
      `The ledger differs by ${ledgerDifference}; \`orgctl ledger\` lists where.`,
    );
  return condition(type, true, 'NoDifference', 'Every delivery that events required is settled or open.');
}
