import {
  condition,
  defineQuery,
  defineSignal,
  isCancellation,
  makeContinueAsNewFunc,
  proxyActivities,
  proxyLocalActivities,
  proxySinks,
  setHandler,
  sleep,
  TemporalFailure,
  workflowInfo,
} from '@temporalio/workflow';
import { priorityOfRetry } from './priority.ts';
import { jitter } from './schedule.ts';
import {
  type AttemptInput,
  type AttemptResult,
  attemptTimeoutMs,
  type DeliverEventInput,
  type DeliveryActivities,
  type DeliveryEnd,
  type DeliveryProgress,
  type DeliverySinks,
  deliverSlowQueue,
  type LostAttemptInput,
  roundOf,
} from './types.ts';

/**
 * Makes the next attempt now and not when it is due. With a time (Unix, ms) it only ends a wait
 * that began before it: since the delivery was found late, an attempt may have been made.
 */
export const retryNowSignal = defineSignal<[waitingSinceBeforeMs?: number]>('retryNow');
/** Ends the workflow; the sender has settled the delivery in the database first. */
export const cancelSignal = defineSignal('cancel');
/** The state of the workflow: `attempting`, or `waiting` with the number of failed attempts. */
export const stateQuery = defineQuery<{ state: 'attempting' | 'waiting'; failed: number }>('state');

// One try: an attempt that may have reached the receiver is never repeated without a record.
const options = { startToCloseTimeout: attemptTimeoutMs, retry: { maximumAttempts: 1 } } as const;
// Runs within the first task, in the worker that has it: most deliveries end with their first
// attempt, and this saves a task of the server. If the worker dies, another one repeats it;
// `onlyAsFirst` prevents a second post without a record.
const local = proxyLocalActivities<DeliveryActivities>(options);
const slow = proxyActivities<DeliveryActivities>({
  ...options,
  taskQueue: deliverSlowQueue,
  priority: priorityOfRetry,
});
// Writes to the service's database only, so it is retried until it succeeds.
const { recordLostAttempt } = proxyActivities<DeliveryActivities>({
  startToCloseTimeout: '10s',
  retry: { maximumInterval: '2s' }, // continues soon after the database is back
  taskQueue: deliverSlowQueue,
  priority: priorityOfRetry,
});
/** Where an attempt is made. Only a round's first is local; others must not delay those. */
const queues = { local, slow };
const { delivery } = proxySinks<DeliverySinks>();

/** Posts one event until it is accepted, settled elsewhere, or the schedule ends. */
export async function deliverEvent(input: DeliverEventInput): Promise<DeliveryEnd> {
  const { delaysMs, slow: isFailing, type, begunAtMs } = input;
  const round = roundOf(input);
  let wake = false;
  let cancelled = false;
  let waitingSinceMs: number | null = null;
  let progress = input.progress ?? { failed: 0, internalErrors: 0, lostLast: 0 };
  setHandler(retryNowSignal, (waitingSinceBeforeMs) => {
    const isMeant = waitingSinceBeforeMs === undefined || (waitingSinceMs ?? Infinity) < waitingSinceBeforeMs;
    if (isMeant) wake = true;
  });
  setHandler(cancelSignal, () => {
    cancelled = true;
  });
  setHandler(stateQuery, () => ({
    state: waitingSinceMs === null ? 'attempting' : 'waiting',
    failed: progress.failed,
  }));
  const ended = (end: DeliveryEnd): DeliveryEnd => {
    delivery.ended({ ...round, type, begunAtMs, end, failed: progress.failed });
    return end;
  };

  let isFirst = input.progress === undefined;
  while (!cancelled) {
    const delayMs = delaysMs[progress.failed];
    const nextDelayMs = delayMs === undefined ? null : Math.round(delayMs * (1 + jitter * Math.random()));
    waitingSinceMs = null;
    // Reset before the attempt: it is recorded a moment before this code knows of it, and a retry
    // that was requested because of that record must not be ignored.
    wake = false;
    const where = isFirst && !isFailing ? 'local' : 'slow';
    isFirst = false;
    const result = await attempt(where, { ...round, nextDelayMs }, progress);
    if (!isToBeContinued(result)) return ended(result.kind);
    progress = progressAfter(result, progress);
    waitingSinceMs = Date.now();
    await condition(() => wake || cancelled, result.waitMs);
    if (!cancelled && isLong(input)) await continueAsNew(input, progress);
  }
  return ended('closed');
}

/**
 * Makes one attempt. One without a result (its worker died, or the round's first had begun before)
 * may still be in progress, so it is closed as lost only when it has expired.
 */
async function attempt(
  where: keyof typeof queues,
  input: Omit<AttemptInput, 'internalErrors'>,
  { internalErrors, lostLast }: DeliveryProgress,
): Promise<AttemptResult> {
  const onlyAsFirst = where === 'local' ? { onlyAsFirst: true } : {};
  const attempted = queues[where].attemptDelivery({ ...input, ...onlyAsFirst, internalErrors });
  const result = await attempted.catch((error: unknown) => {
    // A local activity's failure is thrown without an ActivityFailure around it.
    if (!(error instanceof TemporalFailure) || isCancellation(error)) throw error;
    return null;
  });
  if (result !== null && result.kind !== 'begun') return result;
  const lost: LostAttemptInput = { ...input, lostLast };
  for (;;) {
    const closed = await recordLostAttempt(lost);
    if (closed.kind !== 'underWay') return closed;
    await sleep(closed.waitMs);
  }
}

/** Only a failed attempt counts in the schedule; it ends a series of internal errors. */
function progressAfter(
  result: ToBeContinued,
  { failed, internalErrors, lostLast }: DeliveryProgress,
): DeliveryProgress {
  if (result.kind === 'failed') return { failed: failed + 1, internalErrors: 0, lostLast };
  return {
    failed,
    internalErrors: internalErrors + (result.because === 'internalError' ? 1 : 0),
    lostLast: lostLast + (result.because === 'lost' ? 1 : 0),
  };
}

/**
 * Returns whether to continue as a new run. Temporal ends a workflow at 51,200 events, and each
 * worker that takes over a workflow replays it from the start.
 */
function isLong({ eventsPerRun = Number.POSITIVE_INFINITY }: DeliverEventInput): boolean {
  const { continueAsNewSuggested, historyLength } = workflowInfo();
  return continueAsNewSuggested || historyLength >= eventsPerRun;
}

/** Continues as a new run under the same id. No signal is lost: Temporal then repeats the task. */
function continueAsNew(input: DeliverEventInput, progress: DeliveryProgress): Promise<never> {
  return makeContinueAsNewFunc<typeof deliverEvent>()({ ...input, progress });
}

type ToBeContinued = Extract<AttemptResult, { waitMs: number }>;

function isToBeContinued(result: AttemptResult): result is ToBeContinued {
  return result.kind === 'failed' || result.kind === 'postponed';
}
