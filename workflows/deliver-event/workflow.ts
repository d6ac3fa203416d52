import {
  ActivityFailure,
  condition,
  defineQuery,
  defineSignal,
  isCancellation,
  proxyActivities,
  setHandler,
} from '@temporalio/workflow';
import {
  type AttemptResult,
  type DeliverEventInput,
  type DeliveryActivities,
  type DeliveryEnd,
  deliverQueue,
  deliverSlowQueue,
} from './types.ts';

/** Makes the next attempt now instead of when it is due. */
export const retryNowSignal = defineSignal('retryNow');
/** Ends the workflow; whoever sends it has settled the delivery in the database first. */
export const cancelSignal = defineSignal('cancel');
/** What the workflow is at: `attempting`, or `waiting` with the attempts that failed so far. */
export const stateQuery = defineQuery<{ state: 'attempting' | 'waiting'; failed: number }>('state');

// The receiver has 10 s; the rest covers our own reads and writes. One try: an attempt that may have reached the receiver is never
// repeated unseen, it is closed as lost and the next one is an attempt of its own.
const options = { startToCloseTimeout: '20s', retry: { maximumAttempts: 1 } } as const;
const prompt = proxyActivities<DeliveryActivities>({ ...options, taskQueue: deliverQueue });
const slow = proxyActivities<DeliveryActivities>({ ...options, taskQueue: deliverSlowQueue });
// Writes to our own database only, so it is tried until it succeeds.
const { recordLostAttempt } = proxyActivities<DeliveryActivities>({
  startToCloseTimeout: '10s',
  retry: { maximumInterval: '10s' },
  taskQueue: deliverSlowQueue,
});

/** Jitter on each wait: up to a tenth more, so that a receiver that comes back does not meet everything at once. */
const jitter = 0.1;

/** Posts one event to one webhook until it is accepted, the delivery is settled elsewhere, or the schedule ends. */
export async function deliverEvent(input: DeliverEventInput): Promise<DeliveryEnd> {
  const { delaysMs, slow: isFailing, ...round } = input;
  let wake = false;
  let cancelled = false;
  let state: 'attempting' | 'waiting' = 'attempting';
  let failed = 0;
  setHandler(retryNowSignal, () => {
    wake = true;
  });
  setHandler(cancelSignal, () => {
    cancelled = true;
  });
  setHandler(stateQuery, () => ({ state, failed }));

  while (!cancelled) {
    const delayMs = delaysMs[failed];
    const nextDelayMs = delayMs === undefined ? null : Math.round(delayMs * (1 + jitter * Math.random()));
    const attemptInput = { ...round, nextDelayMs };
    state = 'attempting';
    // Forgotten before the attempt and not after it: an attempt that has failed is on record a moment before this code hears of it, and
    // whoever saw that record and asked for a retry must not be ignored.
    wake = false;
    const activities = failed === 0 && !isFailing ? prompt : slow;
    const result = await activities.attemptDelivery(attemptInput).catch((error: unknown) => {
      if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
      return recordLostAttempt(attemptInput);
    });
    if (!isToBeContinued(result)) return result.kind;
    if (result.kind === 'failed') failed += 1;
    state = 'waiting';
    await condition(() => wake || cancelled, result.waitMs);
  }
  return 'closed';
}

function isToBeContinued(result: AttemptResult): result is Extract<AttemptResult, { waitMs: number }> {
  return result.kind === 'failed' || result.kind === 'postponed';
}
