import { createConditions } from '../controller/conditions.ts';
import { type Failure, type ReportedCondition, readSeconds } from '../kube/custom-resource.ts';
import type { Region } from '../kube/resources.ts';
import { isUnreadable, type ObservedRegion } from './observe.ts';
import type { ObservedNamespace, TemporalAction } from './temporal-namespace.ts';

/**
 * Returns what is left to do so that Temporal's namespace is as the spec declares it. A field that
 * the spec leaves out is not touched.
 */
export function planTemporal(region: Region, { temporal }: ObservedRegion): TemporalAction[] {
  const { retention } = region.spec.temporal;
  if (isUnreadable(temporal)) return [];
  if (temporal !== null) return planSettings(region, temporal);
  return retention === undefined ? [] : [{ kind: 'createNamespace', retentionSeconds: readSeconds(retention) }];
}

function planSettings({ spec }: Region, found: ObservedNamespace): TemporalAction[] {
  const { retention } = spec.temporal;
  if (retention === undefined || readSeconds(retention) === found.retentionSeconds) return [];
  return [{ kind: 'setRetention', retentionSeconds: readSeconds(retention) }];
}

const { holds, fails, unknown } = createConditions('TemporalReady');

/** Evaluates whether Temporal answers for the namespace, which is as the spec declares it. */
export function evaluateTemporal(
  region: Region,
  { temporal }: ObservedRegion,
  failures: readonly Failure[],
): ReportedCondition {
  const failure = failures.find(({ action }) => action !== undefined && action in differences);
  const { namespace } = region.spec.temporal;
  if (isUnreadable(temporal)) return unknown(temporal.reason, temporal.message);
  if (failure !== undefined) return fails(failure.reason, failure.message);
  if (temporal === null) return fails('NamespaceMissing', `Temporal has no namespace ${namespace}.`);
  const [first] = planSettings(region, temporal);
  if (first !== undefined)
    return fails('TemporalDiffers', `The namespace differs from the spec: ${differences[first.kind]}.`);
  return holds('NamespaceAnswers', 'Temporal answers for the namespace, which is as the spec declares.');
}

const differences: Record<TemporalAction['kind'], string> = {
  createNamespace: 'it is missing',
  setRetention: 'its retention',
};
