import type { CustomObjectsApi } from '@kubernetes/client-node';
import { statusOf } from '../kube/client.ts';
import type { RecordEvent } from '../kube/events.ts';
import { applyStatus } from '../kube/objects.ts';
import { completeStatus } from './conditions.ts';
import { type AnyController, type CustomResource, type Failure, ReconcileFailed } from './contract.ts';

export interface ReconcileOptions {
  controller: AnyController;
  api: CustomObjectsApi;
  recordEvent: RecordEvent;
  onAction: (kind: string) => void;
  onStatus: () => void;
  now?: () => Date;
}

/**
 * Makes one pass over an object: observes, carries out what `plan` returns, and writes the status.
 *
 * @returns whether it carried out an action; then there may be more to do.
 * @throws what ended the pass, after the status that says so was written.
 */
export async function reconcile(
  resource: CustomResource,
  signal: AbortSignal,
  options: ReconcileOptions,
): Promise<boolean> {
  const { controller } = options;
  let observed: unknown = null;
  let count = 0;
  try {
    observed = await controller.observe(resource, signal);
    const actions = controller.plan(resource, observed);
    for (const action of actions) {
      signal.throwIfAborted();
      await controller.execute(action, resource, signal);
      count += 1;
      options.onAction(action.kind);
      const note = controller.describe(action);
      if (note !== null) await options.recordEvent(resource, 'Normal', note);
    }
    if (count > 0) observed = await controller.observe(resource, signal);
  } catch (cause) {
    signal.throwIfAborted();
    const failure = failureOf(cause);
    if (isNew(resource, failure))
      await options.recordEvent(resource, 'Warning', { reason: failure.reason, message: failure.message });
    await writeStatus(resource, observed, failure, options);
    throw cause;
  }
  await writeStatus(resource, observed, null, options);
  return count > 0;
}

async function writeStatus(
  resource: CustomResource,
  observed: unknown,
  failure: Failure | null,
  { controller, api, recordEvent, onStatus, now = () => new Date() }: ReconcileOptions,
): Promise<void> {
  const report = controller.report(resource, observed, failure);
  const status = completeStatus(resource, report, now());
  try {
    if (!(await applyStatus(api, controller.kind, resource, status))) return;
    onStatus();
    const warning = report.conditions.find(({ reason }) => controller.warnings?.includes(reason));
    if (warning !== undefined && isNew(resource, warning)) await recordEvent(resource, 'Warning', warning);
  } catch (cause) {
    // It was deleted meanwhile: the last finalizer went, for example.
    if (statusOf(cause) !== 404 && statusOf(cause) !== 409) throw cause;
  }
}

function failureOf(cause: unknown): Failure {
  if (cause instanceof ReconcileFailed) return { reason: cause.reason, message: cause.message };
  const status = statusOf(cause);
  if (status !== undefined)
    return {
      reason: 'ApiServerRefused',
      message: `The API server answered ${status}; the operator's log says to what.`,
    };
  return { reason: 'InternalError', message: 'The operator failed; its log says why.' };
}

/** Whether no condition has said so yet: one Event for each failure, not for each retry. */
const isNew = ({ status }: CustomResource, { reason }: Pick<Failure, 'reason'>): boolean =>
  status?.conditions?.every((one) => one.reason !== reason) ?? true;
