import { currentMigration, migrationNames } from '#domain/db/schema-version.ts';
import { isBalanced, ledgerFaults } from '#domain/webhooks/ledger.ts';
import { capitalize, condition, createConditions, findProblem } from '../controller/conditions.ts';
import type { Failure, Report, ReportedCondition } from '../kube/custom-resource.ts';
import type { Region } from '../kube/resources.ts';
import { evaluateSwitch } from './delivery-switch.ts';
import { isUnreadable, type ObservedRegion } from './observe.ts';
import { evaluateKeys, showSealed } from './sealing.ts';
import { evaluateTemporal } from './temporal.ts';

/**
 * Returns the status of a Region. What could not be read is left out of the fields and makes its
 * condition Unknown, never False.
 */
export function reportRegion(
  region: Region,
  observed: ObservedRegion | null,
  failures: readonly Failure[],
): Report<Region> {
  if (observed === null) {
    const { reason = 'NotObserved', message = 'Not looked at yet.' } = failures[0] ?? {};
    const conditions = types.map((type) => condition(type, null, reason, message));
    return { schema: { expected: currentMigration }, conditions };
  }
  const { database } = observed;
  const parts = [evaluateSchema(observed), evaluateTemporal(region, observed, failures), evaluateLedger(observed)];
  return {
    ...showDatabase(observed),
    secrets: { sealed: showSealed(observed), peppers: isUnreadable(database) ? undefined : database.peppers },
    conditions: [summarize(parts), ...parts, evaluateSwitch(observed, failures), evaluateKeys(observed, failures)],
  };
}

/** The conditions that every Region has. */
const types = ['Ready', 'SchemaCurrent', 'TemporalReady', 'LedgerBalanced', 'Delivering', 'KeysFresh'];

function showDatabase({ database }: ObservedRegion): Omit<Report<Region>, 'conditions'> {
  if (isUnreadable(database)) return { schema: { expected: currentMigration } };
  const { waiting, overdue, oldestDueAt, ledger, suspendedWebhooks, deliverySwitch } = database;
  const state = capitalize(deliverySwitch.state);
  const { underWay } = deliverySwitch;
  return {
    schema: { applied: getNewestMigration(database), expected: currentMigration },
    deliveries: {
      state,
      underWay,
      waiting,
      overdue,
      ledgerDifference: ledger.difference,
      oldestDueAt: oldestDueAt ?? undefined,
    },
    suspendedWebhooks,
  };
}

const getNewestMigration = ({ migrations }: { migrations: string[] }): string => migrations.at(-1) ?? 'none';

/** Ready: the first condition that does not hold says why. */
function summarize(parts: readonly ReportedCondition[]): ReportedCondition {
  const message = 'Schema, Temporal and ledger are as they should be.';
  return { ...(findProblem(parts) ?? condition('Ready', true, 'AllConditionsHold', message)), type: 'Ready' };
}

const schema = createConditions('SchemaCurrent');

function evaluateSchema({ database }: ObservedRegion): ReportedCondition {
  if (isUnreadable(database)) {
    const { reason, message } = database;
    return reason === 'NotMigrated' ? schema.fails(reason, message) : schema.unknown(reason, message);
  }
  const newest = getNewestMigration(database);
  const { failedMigration } = database;
  if (failedMigration !== null) {
    const names = failedMigration.names.join(', ');
    const code = failedMigration.code === null ? '' : ` with the error code ${failedMigration.code}`;
    const message = `Migrations failed${code}: ${names}. The newest one applied is ${newest}.`;
    return schema.fails('MigrationFailed', message);
  }
  if (!database.migrations.includes(currentMigration)) {
    const message = `The newest migration is ${newest}; this version needs ${currentMigration}.`;
    return schema.fails('MigrationsPending', message);
  }
  const unknown = database.migrations.findLast((applied) => !migrationNames.some((name) => name === applied));
  if (unknown !== undefined)
    return schema.holds('NewerThanOperator', `Migration ${unknown} is applied; this operator does not know it.`);
  return schema.holds('MigrationsApplied', `The newest migration is ${newest}.`);
}

const balance = createConditions('LedgerBalanced');

function evaluateLedger({ database }: ObservedRegion): ReportedCondition {
  if (isUnreadable(database)) return balance.unknown(database.reason, database.message);
  const { ledger } = database;
  if (isBalanced(ledger))
    return balance.holds('NoDifference', 'Every delivery that events required is settled or open.');
  const shown = ledgerFaults.map((name) => `${name} ${ledger[name]}`).join(', ');
  return balance.fails('LedgerDifference', `The ledger does not add up: ${shown}. \`orgctl ledger\` lists where.`);
}
