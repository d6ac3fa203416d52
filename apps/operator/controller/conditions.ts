import type { Condition, CustomResource, Report, ReportedCondition } from '../kube/custom-resource.ts';
import type { Reason } from '../kube/reasons.ts';

/** Returns a condition: whether it holds (null: unknown), its reason in a word and a sentence. */
export function condition(type: string, holds: boolean | null, reason: Reason, message: string): ReportedCondition {
  return { type, status: holds === null ? 'Unknown' : holds ? 'True' : 'False', reason, message };
}

/** Returns functions that make conditions of one type. */
export const createConditions = (type: string) => ({
  holds: (reason: Reason, message: string) => condition(type, true, reason, message),
  fails: (reason: Reason, message: string) => condition(type, false, reason, message),
  unknown: (reason: Reason, message: string) => condition(type, null, reason, message),
});

/** Returns the first condition that is false, else the first that is unknown. */
export const findProblem = (conditions: readonly ReportedCondition[]): ReportedCondition | undefined =>
  conditions.find(({ status }) => status === 'False') ?? conditions.find(({ status }) => status === 'Unknown');

/**
 * Completes a report to a status: each condition keeps the time of its last change of status, and
 * names the generation of the object that it is about.
 */
export function completeStatus(
  resource: CustomResource,
  report: Report<CustomResource>,
  now: Date,
): Record<string, unknown> {
  const before = new Map(resource.status?.conditions?.map((one) => [one.type, one]));
  const { generation } = resource.metadata;
  const conditions = report.conditions.map((reported): Condition => {
    const old = before.get(reported.type);
    const lastTransitionTime = old?.status === reported.status ? old.lastTransitionTime : showTime(now);
    return { ...reported, observedGeneration: generation, lastTransitionTime };
  });
  return { ...report, observedGeneration: generation, conditions };
}

/** As the API server keeps times: whole seconds. */
const showTime = (time: Date): string => time.toISOString().replace(/\.\d{3}Z$/, 'Z');

/** Writes a word as specs and statuses do: `running` is `Running`. */
export const capitalize = <W extends string>(word: W): Capitalize<W> =>
  `${word.charAt(0).toUpperCase()}${word.slice(1)}` as Capitalize<W>;
