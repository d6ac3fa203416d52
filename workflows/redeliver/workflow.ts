import { condition, continueAsNew, defineQuery, defineSignal, proxyActivities, setHandler } from '@temporalio/workflow';
import { deliverSlowQueue } from '../deliver-event/types.ts';
import type { RedeliverInput, RedeliveryActivities, RedeliveryEnd, RedeliveryProgress } from './types.ts';

/**
 * Checks at once whether a stop was requested. The request itself is in the database, where the
 * next page finds it also without this.
 */
export const cancelSignal = defineSignal('cancel');
/** How far it has come. */
export const progressQuery = defineQuery<RedeliveryProgress>('progress');

// It touches our database and Temporal only, and a page done twice is done once: tried until it
// works. The slow queue, so that no event's first attempt stands behind it.
const { redeliverPage } = proxyActivities<RedeliveryActivities>({
  startToCloseTimeout: '15s',
  retry: { initialInterval: '1s', maximumInterval: '10s' },
  taskQueue: deliverSlowQueue,
});

/**
 * Sends the deliveries of a redelivery again page by page, at a steady pace, until all are or it is
 * to stop.
 */
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

/**
 * As long as what the page sent may take at this pace; none when it only looked. A page that was
 * found done by an earlier run is waited for like a full one.
 */
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
