import type { Condition, CustomResource, JudgedCondition, Report } from './contract.ts';
import type { Reason } from './reasons.ts';

/** Returns a condition: whether it holds (null: unknown), its reason in a word and a sentence. */
export function condition(type: string, holds: boolean | null, reason: Reason, message: string): JudgedCondition {
  return { type, status: holds === null ? 'Unknown' : holds ? 'True' : 'False', reason, message };
}

/**
 * Completes a report to a status: each condition keeps the time of its last change of status, and
 * names the generation that it was judged for.
 */
export function completeStatus<R extends CustomResource>(
  resource: CustomResource,
  report: Report<R>,
  now: Date,
): Record<string, unknown> {
  const before = new Map(resource.status?.conditions?.map((one) => [one.type, one]));
  const { generation } = resource.metadata;
  const conditions = report.conditions.map((judged): Condition => {
    const old = before.get(judged.type);
    const lastTransitionTime = old?.status === judged.status ? old.lastTransitionTime : toSeconds(now);
    return { ...judged, observedGeneration: generation, lastTransitionTime };
  });
  return { ...report, observedGeneration: generation, conditions };
}

/** As the API server keeps times: whole seconds. */
const toSeconds = (time: Date): string => time.toISOString().replace(/\.\d{3}Z$/, 'Z');
