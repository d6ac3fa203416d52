import pLimit from 'p-limit';
import { IdentityError } from './errors.ts';
import { busyRetrySeconds, strangersAtOnce, strangersWaiting } from './limits.ts';

/** Creates a queue that runs `concurrency` pieces of work at once and lets `maxWaiting` wait. */
export function createBoundedQueue({ concurrency, maxWaiting }: { concurrency: number; maxWaiting: number }) {
  const limit = pLimit(concurrency);
  return {
    /**
     * Runs `work` when its turn comes.
     *
     * @throws IdentityError `busy` at once, when too many wait; nothing was begun.
     */
    async run<T>(work: () => Promise<T>, now = new Date()): Promise<T> {
      if (limit.activeCount + limit.pendingCount < concurrency + maxWaiting) return limit(work);
      const retryAt = new Date(now.getTime() + busyRetrySeconds * 1000);
      const sentence = 'Too many people are signing in right now. Wait a few seconds, and try again.';
      throw new IdentityError('busy', sentence, retryAt);
    },
    /** Returns how many run and how many wait. */
    load: () => ({ running: limit.activeCount, waiting: limit.pendingCount }),
  };
}

/**
 * All costly work of this process for people without a session or a known browser: their sign-ins,
 * and the passwords that holders of a link choose. They cannot delay a known browser.
 */
export const strangersQueue = createBoundedQueue({ concurrency: strangersAtOnce, maxWaiting: strangersWaiting });
