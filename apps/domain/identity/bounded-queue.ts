import pLimit, { type LimitFunction } from 'p-limit';
import { IdentityError } from './errors.ts';
import { busyRetrySeconds, strangersAtOnce, strangersWaiting } from './limits.ts';

/**
 * Runs `concurrency` pieces of work at once and lets `maxWaiting` wait. A holder has one place at
 * most, running or waiting, so none fills the queue.
 */
export class BoundedQueue {
  readonly #limit: LimitFunction;
  readonly #size: number;
  readonly #holders = new Set<string>();

  constructor({ concurrency, maxWaiting }: { concurrency: number; maxWaiting: number }) {
    this.#limit = pLimit(concurrency);
    this.#size = concurrency + maxWaiting;
  }

  /**
   * Runs `work` when its turn comes.
   *
   * @param holder - whose work it is; null when it is not bounded by holder.
   * @throws IdentityError `busy` at once, when too many wait or its holder has a place; nothing
   * was begun.
   */
  async run<T>(work: () => Promise<T>, now = new Date(), holder: string | null = null): Promise<T> {
    if (holder !== null && this.#holders.has(holder)) throw busy('Your last input is still being checked.', now);
    const { running, waiting } = this.load();
    if (running + waiting >= this.#size) throw busy('Too many people are signing in right now.', now);
    if (holder === null) return this.#limit(work);
    this.#holders.add(holder);
    return this.#limit(work).finally(() => this.#holders.delete(holder));
  }

  /** Returns how many run and how many wait. */
  load(): { running: number; waiting: number } {
    return { running: this.#limit.activeCount, waiting: this.#limit.pendingCount };
  }
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
export const strangersQueue = new BoundedQueue({ concurrency: strangersAtOnce, maxWaiting: strangersWaiting });
