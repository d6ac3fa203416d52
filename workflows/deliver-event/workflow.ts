import {
  isCancellation,
  makeContinueAsNewFunc,
  proxyActivities,
  proxyLocalActivities,
  sleep,
  TemporalFailure,
  workflowInfo,
} from '@temporalio/workflow';
import { attemptTimeoutMs, type DeliverEventInput, type DeliveryActivities, type NextStep } from './types.ts';

// One try each: the workflow itself asks again, and the table knows whether it may.
const options = { startToCloseTimeout: attemptTimeoutMs, retry: { maximumAttempts: 1 } } as const;
// Runs within the first task, in the process that has it. Most deliveries end with their first
// attempt, and this saves the server a task.
const local = proxyLocalActivities<DeliveryActivities>(options);
const remote = proxyActivities<DeliveryActivities>(options);

/**
 * The wait after an activity that failed: it had an internal error, or did not end in time because
 * its process died. A process that dies within a first task fails no activity: Temporal gives the
 * task to another process after `workflowTaskTimeout`, which asks for the attempt again.
 */
const failedAttemptWaitMs = 15_000;

/**
 * Makes attempts of one run of a delivery until there is nothing more to do. It owns the waits
 * between them, and nothing else: whether one may be made, and how the run continues, is decided in
 * the table each time.
 */
export async function deliverEvent(input: DeliverEventInput): Promise<void> {
  const { isDegraded, internalErrors: errorsBefore, eventsPerExecution, ...run } = input;
  let internalErrors = errorsBefore ?? 0;
  let isFirst = errorsBefore === undefined;
  for (;;) {
    const { attemptDelivery } = isFirst && !isDegraded ? local : remote;
    const next = await attemptDelivery({ ...run, internalErrors }).catch(afterFailedAttempt);
    if (next.kind === 'end') return;
    isFirst = false;
    internalErrors = next.isInternalError ? internalErrors + 1 : 0;
    await sleep(next.waitMs);
    if (isLong(eventsPerExecution)) await continueAsNew({ ...input, internalErrors });
  }
}

/** @throws `error` when the execution itself was cancelled, or the code is wrong. */
function afterFailedAttempt(error: unknown): NextStep {
  // A local activity's failure is thrown without an ActivityFailure around it.
  if (!(error instanceof TemporalFailure) || isCancellation(error)) throw error;
  return { kind: 'wait', waitMs: failedAttemptWaitMs, isInternalError: true };
}

/**
 * Returns whether to continue as a new execution. Temporal ends one at 51,200 events, and each
 * worker that takes it over replays it from the start.
 */
function isLong(eventsPerExecution = Number.POSITIVE_INFINITY): boolean {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return continueAsNewSuggested || historyLength >= eventsPerExecution;
}

const continueAsNew = (input: DeliverEventInput): Promise<never> => makeContinueAsNewFunc<typeof deliverEvent>()(input);
