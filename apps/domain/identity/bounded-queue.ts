import pLimit from 'p-limit';
import { IdentityError } from './errors.ts';
import { busyRetrySeconds, strangersAtOnce, strangersWaiting } from './limits.ts';

/**
 * Creates a queue that runs `concurrency` pieces of work at once and lets `maxWaiting` wait. A
 * holder has one place at most, running or waiting, so none fills the queue.
 */
export function createBoundedQueue({ concurrency, maxWaiting }: { concurrency: number; maxWaiting: number }) {
  const limit = pLimit(concurrency);
  const holders = new Set<string>();
  return {
    /**
     * Runs `work` when its turn comes.
     *
     * @param holder - whose work it is; null when it is not bounded by holder.
     * @throws IdentityError `busy` at once, when too many wait or its holder has a place; nothing
     * was begun.
     */
    async run<T>(work: () => Promise<T>, now = new Date(), holder: string | null = null): Promise<T> {
      if (holder !== null && holders.has(holder)) throw busy('Your last input is still being checked.', now);
      if (limit.activeCount + limit.pendingCount >= concurrency + maxWaiting)
        throw busy('Too many people are signing in right now.', now);
      if (holder === null) return limit(work);
      holders.add(holder);
      return limit(work).finally(() => holders.delete(holder));
    },
    /** Returns how many run and how many wait. */
    load: () => ({ running: limit.activeCount, waiting: limit.pendingCount }),
  };
}

const busy = (sentence: string, now: Date) =>
  new IdentityError(
    'busy',
    `${sentence} Wait a few seconds, and try again.`,
    new Date(now.getTime() + busyRetrySeconds * 1000),
  );

/**
 * All costly work of this process for people without a session or a known browser: their sign-ins,
 * and the passwords that holders of a link choose. They cannot delay a known browser.
 */
export const strangersQueue = createBoundedQueue({ concurrency: strangersAtOnce, maxWaiting: strangersWaiting });
