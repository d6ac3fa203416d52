import pLimit from 'p-limit';
import { busyRetrySeconds } from './limits.ts';
import { IdentityRefused } from './refused.ts';

/** Runs a few pieces of work at a time; a bounded number of others wait. */
export interface BoundedQueue {
  /**
   * Runs `work` when its turn comes.
   *
   * @throws IdentityRefused `busy` at once, when too many wait; nothing was begun.
   */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Returns how many run and how many wait. */
  load(): { running: number; waiting: number };
}

/** Creates a queue that runs `concurrency` at once and lets `maxWaiting` more wait. */
export function createBoundedQueue(options: {
  concurrency: number;
  maxWaiting: number;
  now?: () => Date;
}): BoundedQueue {
  const { concurrency, maxWaiting, now = () => new Date() } = options;
  const limit = pLimit(concurrency);
  return {
    run(work) {
      const isFull = limit.activeCount + limit.pendingCount >= concurrency + maxWaiting;
      return isFull ? Promise.reject(busy(now())) : limit(work);
    },
    load: () => ({ running: limit.activeCount, waiting: limit.pendingCount }),
  };
}

const busy = (now: Date) =>
  new IdentityRefused(
    'busy',
    'Too many people are signing in right now. Wait a few seconds, and try again.',
    new Date(now.getTime() + busyRetrySeconds * 1000),
  );
