import { condition, continueAsNew, defineQuery, defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';
import { deliverSlowQueue } from '../deliver-event/types.ts';
import type { RedeliverInput, RedeliveryActivities, RedeliveryEnd, RedeliveryProgress } from './types.ts';

/** Checks at once whether a stop was requested in the database; the next page does in any case. */
export const cancelSignal = defineSignal('cancel');
/** The progress so far. */
export const progressQuery = defineQuery<RedeliveryProgress>('progress');

// Only the service's database and Temporal are used, and a repeated page does nothing, so it is
// retried until it succeeds. On the slow queue it delays no event's first attempt.
const { redeliverPage } = proxyActivities<RedeliveryActivities>({
  startToCloseTimeout: '15s',
  retry: { initialInterval: '1s', maximumInterval: '10s' },
  taskQueue: deliverSlowQueue,
});

/** Sends the deliveries of a redelivery again page by page, at a constant rate. */
export async function redeliver(input: RedeliverInput): Promise<RedeliveryEnd> {
  const { organizationId, redeliveryId, pace, pagesPerRun } = input;
  let progress = input.progress ?? { state: 'requested', pages: input.page, seen: 0, queued: 0, retriesRequested: 0 };
  let wake = false;
  setHandler(cancelSignal, () => {
    wake = true;
  });
  setHandler(progressQuery, () => progress);

  for (let calls = 1; ; calls += 1) {
    const before = progress;
    progress = await redeliverPage({ organizationId, redeliveryId, page: before.pages, perPage: pace.perPage });
    if (isEnd(progress.state)) return progress.state;
    const pauseMs = pauseAfter(before, progress, pace);
    if (pauseMs > 0) await condition(() => wake, pauseMs);
    wake = false;
    if (calls === pagesPerRun) {
      await continueAsNew<typeof redeliver>({ ...input, page: progress.pages, progress });
    }
  }
}

/** Returns a page's time at this pace. One that an earlier run had carried out counts as full. */
function pauseAfter(
  before: RedeliveryProgress,
  after: RedeliveryProgress,
  { perPage, perSecond }: RedeliverInput['pace'],
) {
  const sent = Math.min(perPage, after.queued + after.retriesRequested - before.queued - before.retriesRequested);
  return Math.ceil((sent * 1_000) / perSecond);
}

function isEnd(state: RedeliveryProgress['state']): state is RedeliveryEnd {
  return state === 'done' || state === 'cancelled' || state === 'ended';
}
