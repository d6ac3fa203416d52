import { condition } from '../controller/conditions.ts';
import type { Failure, JudgedCondition } from '../controller/contract.ts';
import type { Region } from '../resources.ts';
import { isUnreadable, type ObservedRegion } from './observe.ts';
import { judgeSealing } from './sealing.ts';

/**
 * Judges whether an older key or pepper is no longer needed. What is false comes before what is
 * unknown. The region is Ready either way.
 */
export function judgeKeys(region: Region, observed: ObservedRegion, failure: Failure | null): JudgedCondition {
  const sealing = judgeSealing(region, observed, failure);
  const peppers = judgePeppers(region, observed);
  if (peppers === null) return sealing;
  const problem = findWorst([sealing, peppers]);
  return problem ?? { ...sealing, message: `${sealing.message} ${peppers.message}` };
}

const findWorst = (conditions: readonly JudgedCondition[]): JudgedCondition | undefined =>
  conditions.find(({ status }) => status === 'False') ?? conditions.find(({ status }) => status === 'Unknown');

/** Null without `peppers` in the spec. */
function judgePeppers({ spec: { peppers } }: Region, { database }: ObservedRegion): JudgedCondition | null {
  const type = 'KeysFresh';
  if (peppers === undefined) return null;
  if (isUnreadable(database)) return condition(type, null, database.reason, database.message);
  const { newest } = peppers;
  const old = database.peppers.filter(({ version }) => version !== newest);
  if (old.length === 0)
    return condition(type, true, 'NewestKeySeals', `No active API key needs another pepper than version ${newest}.`);
  const shown = old.map(({ version, count }) => `version ${version}: ${count}`).join(', ');
  return condition(
    type,
    false,
    'OldPepperVerifies',
    `Active API keys need other peppers than version ${newest}. ${shown}.`,
  );
}
