import {
  ActivityFailure,
  condition,
  defineQuery,
  defineSignal,
  isCancellation,
  patched,
  proxyActivities,
  proxyLocalActivities,
  proxySinks,
  setHandler,
  sleep,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import { priorityOfRetry } from './priority.ts';
import { stateAttribute } from './search-attributes.ts';
import {
  type AttemptInput,
  type AttemptResult,
  type DeliverEventInput,
  type DeliveryActivities,
  type DeliveryEnd,
  type DeliverySinks,
  deliverQueue,
  deliverSlowQueue,
} from './types.ts';

/**
 * Makes the next attempt now instead of when it is due. With a time (Unix, ms) it means only a wait that began before it: whoever saw a delivery late may
 * be overtaken by its attempt, and must not hurry the wait that follows.
 */
export const retryNowSignal = defineSignal<[waitingSinceBeforeMs?: number]>('retryNow');
/** Ends the workflow; whoever sends it has settled the delivery in the database first. */
export const cancelSignal = defineSignal('cancel');
/** What the workflow is at: `attempting`, or `waiting` with the attempts that failed so far. */
export const stateQuery = defineQuery<{ state: 'attempting' | 'waiting'; failed: number }>('state');

// The receiver has 10 s; the rest covers our own reads and writes. One try: an attempt that may have reached the receiver is never
// repeated unseen, it is closed as lost and the next one is an attempt of its own.
const attemptTimeoutMs = 20_000;
const options = { startToCloseTimeout: attemptTimeoutMs, retry: { maximumAttempts: 1 } } as const;
const prompt = proxyActivities<DeliveryActivities>({ ...options, taskQueue: deliverQueue });
// In the worker that has the first task, as part of it: most deliveries end with their first attempt, and this spares them a task of the server's. A worker that dies in
// the middle of it leaves a task that another repeats; `onlyAsFirst` keeps that from posting again unseen.
const local = proxyLocalActivities<DeliveryActivities>(options);
const slow = proxyActivities<DeliveryActivities>({
  ...options,
  taskQueue: deliverSlowQueue,
  priority: priorityOfRetry,
});
// Writes to our own database only, so it is tried until it succeeds.
const { recordLostAttempt } = proxyActivities<DeliveryActivities>({
  startToCloseTimeout: '10s',
  retry: { maximumInterval: '10s' },
  taskQueue: deliverSlowQueue,
  priority: priorityOfRetry,
});
const { delivery } = proxySinks<DeliverySinks>();

/** Jitter on each wait: up to a tenth more, so that a receiver that comes back does not meet everything at once. */
const jitter = 0.1;

/** Posts one event to one webhook until it is accepted, the delivery is settled elsewhere, or the schedule ends. */
export async function deliverEvent(input: DeliverEventInput): Promise<DeliveryEnd> {
  const { delaysMs, slow: isFailing, type = null, begunAtMs = null, firstAttempt, ...round } = input;
  const shown = showState();
  let wake = false;
  let cancelled = false;
  let waitingSinceMs: number | null = null;
  let failed = 0;
  setHandler(retryNowSignal, (waitingSinceBeforeMs) => {
    const isMeant = waitingSinceBeforeMs === undefined || (waitingSinceMs ?? Infinity) < waitingSinceBeforeMs;
    if (isMeant) wake = true;
  });
  setHandler(cancelSignal, () => {
    cancelled = true;
  });
  setHandler(stateQuery, () => ({ state: waitingSinceMs === null ? 'attempting' : 'waiting', failed }));
  const ended = (end: DeliveryEnd): DeliveryEnd => {
    shown.ended(end);
    delivery.ended({ ...round, type, begunAtMs, end, failed });
    return end;
  };

  let isFirst = true;
  while (!cancelled) {
    const delayMs = delaysMs[failed];
    const nextDelayMs = delayMs === undefined ? null : Math.round(delayMs * (1 + jitter * Math.random()));
    const attemptInput = { ...round, nextDelayMs };
    waitingSinceMs = null;
    // Forgotten before the attempt and not after it: an attempt that has failed is on record a moment before this code hears of it, and
    // whoever saw that record and asked for a retry must not be ignored.
    wake = false;
    const isLocal = isFirst && firstAttempt === 'local' && !isFailing;
    isFirst = false;
    const result = isLocal
      ? await attempt(local, { ...attemptInput, onlyAsFirst: true })
      : await attempt(failed === 0 && !isFailing ? prompt : slow, attemptInput);
    if (!isToBeContinued(result)) return ended(result.kind);
    if (result.kind === 'failed') failed += 1;
    waitingSinceMs = Date.now();
    shown.waiting();
    await condition(() => wake || cancelled, result.waitMs);
  }
  return ended('closed');
}

/**
 * One attempt, wherever these activities are made. One that ended without a word is closed as lost; one that somebody made before, and was not heard of, is theirs
 * for as long as an attempt may take, and then lost.
 */
async function attempt(activities: DeliveryActivities, input: AttemptInput): Promise<AttemptResult> {
  const result = await activities.attemptDelivery(input).catch((error: unknown) => {
    if (!(error instanceof ActivityFailure) || isCancellation(error)) throw error;
    return null;
  });
  if (result !== null && result.kind !== 'begun') return result;
  const { onlyAsFirst, ...lost } = input;
  for (;;) {
    const closed = await recordLostAttempt(result === null ? lost : { ...lost, lostAfterMs: attemptTimeoutMs });
    if (closed.kind !== 'underWay') return closed;
    await sleep(closed.waitMs);
  }
}

/**
 * Shows the state as a search attribute, if the workflow was started with one: a server that does not know the attribute would refuse the workflow's every step.
 *
 * Each change goes with a command that is sent anyway, so none costs a task of its own, and there are two of them at most: `waiting` once, at the first
 * failure, although attempts follow it (the query tells more), and the end.
 */
function showState() {
  const isShown = workflowInfo().typedSearchAttributes.get(stateAttribute) !== undefined;
  let isWaiting = false;
  const show = (value: 'waiting' | DeliveryEnd) => upsertSearchAttributes([{ key: stateAttribute, value }]);
  return {
    waiting(): void {
      if (!isShown || isWaiting) return;
      isWaiting = true;
      // A worker of the version before may have carried this workflow over its first failure, without this command.
      if (patched('waiting-is-shown')) show('waiting');
    },
    /** Nothing follows it in a history, so no version needs a mark to go by, which would cost every delivery an event. */
    ended(end: DeliveryEnd): void {
      if (isShown) show(end);
    },
  };
}

function isToBeContinued(result: AttemptResult): result is Extract<AttemptResult, { waitMs: number }> {
  return result.kind === 'failed' || result.kind === 'postponed';
}
