import pLimit from 'p-limit';
import { busyRetrySeconds } from './limits.ts';
import { IdentityRefused } from './refused.ts';

/** Runs work a few at a time; the rest waits, up to a number. */
export interface BoundedQueue {
  /**
   * Runs `work` as soon as its turn comes.
   *
   * @throws IdentityRefused `busy` at once, when too much waits already; nothing was begun.
   */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** How much runs and how much waits now. */
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
