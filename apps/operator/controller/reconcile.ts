import type { CustomObjectsApi } from '@kubernetes/client-node';
import { DomainError } from '#domain/contract/domain-error.ts';
import { SecretNotUnsealedError } from '#domain/webhooks/seal.ts';
import { describeConflicts, findStatus, listConflicts } from '../kube/client.ts';
import {
  type AnyController,
  type CustomResource,
  type Failure,
  ReconcileError,
  type Report,
  type ReportedCondition,
} from '../kube/custom-resource.ts';
import type { RecordEvent } from '../kube/events.ts';
import { customObjects, keepForeignFields } from '../kube/objects.ts';
import { type Reason, reasons } from '../kube/reasons.ts';
import { capitalize, completeStatus, condition } from './conditions.ts';

export interface ReconcileOptions {
  controller: AnyController;
  api: CustomObjectsApi;
  recordEvent: RecordEvent;
  onAction: (kind: string) => void;
  onStatus: () => void;
}

/**
 * Makes one pass over an object: observes, carries out what `plan` returns, and writes the status.
 * No action follows one that failed, unless the controller's actions are independent.
 *
 * @returns whether it carried out an action; then there may be more to do.
 * @throws what failed, after the status that says so was written; an AggregateError of several.
 */
export async function reconcile(
  resource: CustomResource,
  signal: AbortSignal,
  options: ReconcileOptions,
): Promise<boolean> {
  const { controller } = options;
  let observed: unknown = null;
  let count = 0;
  const failed: { cause: unknown; action?: string }[] = [];
  try {
    observed = await controller.observe(resource, signal);
    for (const action of controller.plan(resource, observed)) {
      signal.throwIfAborted();
      try {
        await controller.execute(action, resource, signal);
      } catch (cause) {
        failed.push({ cause, action: action.kind });
        if (!controller.areActionsIndependent) break;
        continue;
      }
      count += 1;
      options.onAction(action.kind);
      const note = controller.describe(action);
      if (note !== null) await options.recordEvent(resource, 'Normal', note);
    }
    if (count > 0) observed = await controller.observe(resource, signal);
  } catch (cause) {
    failed.push({ cause });
  }
  if (failed.length > 0) signal.throwIfAborted();
  const failures = failed.map(({ cause, action }) => ({ ...describeFailure(cause), action }));
  for (const { reason, message } of failures)
    if (isNew(resource, { reason })) await options.recordEvent(resource, 'Warning', { reason, message });
  await writeStatus(resource, observed, failures, options);
  if (failed.length > 0) throw joinCauses(failed.map(({ cause }) => cause));
  return count > 0;
}

const joinCauses = (causes: readonly unknown[]): unknown =>
  causes.length > 1 ? new AggregateError(causes, 'several actions failed') : causes[0];

async function writeStatus(
  resource: CustomResource,
  observed: unknown,
  failures: readonly Failure[],
  options: ReconcileOptions,
): Promise<void> {
  const { controller, recordEvent } = options;
  const report = controller.report(resource, observed, failures);
  try {
    const conflict = await applyReport(resource, report, options);
    const warning = report.conditions.find(({ reason }) => controller.warnings?.includes(reason));
    for (const note of [conflict, warning])
      if (note !== undefined && isNew(resource, note)) await recordEvent(resource, 'Warning', note);
  } catch (cause) {
    // It was deleted meanwhile: the last finalizer went, for example.
    if (findStatus(cause) !== 404 && findStatus(cause) !== 409) throw cause;
  }
}

/**
 * Applies a report as the status. Fields of other managers stay as they are. Returns the condition
 * that names them, if there are any.
 */
async function applyReport(
  resource: CustomResource,
  report: Report<CustomResource>,
  { controller, api, onStatus }: ReconcileOptions,
): Promise<ReportedCondition | undefined> {
  const now = new Date();
  const apply = async (status: Record<string, unknown>) => {
    if (await customObjects(api, controller.kind).applyStatus(resource, status)) onStatus();
  };
  try {
    await apply(completeStatus(resource, report, now));
    return undefined;
  } catch (cause) {
    const conflicts = listConflicts(cause);
    if (conflicts.length === 0) throw cause;
    const conflict = condition('StatusApplied', false, 'FieldConflict', describeConflicts(conflicts));
    const status = completeStatus(resource, { ...report, conditions: [...report.conditions, conflict] }, now);
    await apply(keepForeignFields(resource, status, conflicts));
    return conflict;
  }
}

function describeFailure(cause: unknown): Failure {
  if (cause instanceof ReconcileError) return { reason: cause.reason, message: cause.message };
  if (cause instanceof DomainError) return { reason: getReason(cause), message: cause.message };
  if (cause instanceof SecretNotUnsealedError) return { reason: 'SecretNotUnsealed', message: cause.message };
  const status = findStatus(cause);
  if (status === undefined) return { reason: 'InternalError', message: 'The operator failed; its log says why.' };
  return {
    reason: 'ApiServerRejected',
    message: `The API server answered ${status}; the operator's log says to what.`,
  };
}

/** Names an error of the domain: `url_invalid` is `UrlInvalid`. Without such a reason: `Rejected`. */
function getReason({ reason: rejection }: DomainError): Reason {
  const name = rejection.split('_').map(capitalize).join('');
  return reasons.find((reason) => reason === name) ?? 'Rejected';
}

/** Whether no condition has said so yet: one Event for each failure, not for each retry. */
const isNew = ({ status }: CustomResource, { reason }: Pick<Failure, 'reason'>): boolean =>
  status?.conditions?.every((one) => one.reason !== reason) ?? true;
