import { backoffMs } from '#runtime/flow/backoff.ts';

interface WorkQueueOptions {
  /** Does the work of one key. What it throws makes the key wait and come again. */
  run: (key: string, signal: AbortSignal) => Promise<void>;
  /** Keys that are worked on at once. */
  concurrency: number;
  onError: (key: string, cause: unknown, retryInMs: number) => void;
  /** The first wait after a failure; each further one is twice as long, with jitter. */
  firstRetryMs?: number;
  longestRetryMs: number;
  /** A number from 0 to 1. */
  random?: () => number;
}

/**
 * A queue of keys. A key waits in it once, is worked on by one run at a time, and comes again when
 * it was added meanwhile. A key that failed waits longer each time; `add` shortens that wait,
 * because something changed.
 *
 * `stop` may be called twice: it aborts the runs under way and waits for them.
 */
export class WorkQueue {
  readonly #options: Required<WorkQueueOptions>;
  readonly #waiting = new Set<string>();
  readonly #running = new Map<string, Promise<void>>();
  readonly #failures = new Map<string, number>();
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #stopping = new AbortController();

  constructor(options: WorkQueueOptions) {
    this.#options = { firstRetryMs: 1_000, random: Math.random, ...options };
  }

  add(key: string): void {
    if (this.#isStopping) return;
    this.#clearTimer(key);
    this.#waiting.add(key);
    this.#startNext();
  }

  /** Adds a key after a while, unless it is added before. */
  addAfter(key: string, waitMs: number): void {
    if (this.#isStopping || this.#waiting.has(key)) return;
    this.#clearTimer(key);
    this.#timers.set(key, setTimeout(() => this.add(key), waitMs).unref());
  }

  /** Drops the failures and timers of a key whose object is gone. */
  drop(key: string): void {
    this.#clearTimer(key);
    this.#failures.delete(key);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const key of this.#timers.keys()) this.#clearTimer(key);
    this.#waiting.clear();
    await Promise.all(this.#running.values());
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  #clearTimer(key: string): void {
    clearTimeout(this.#timers.get(key));
    this.#timers.delete(key);
  }

  #startNext(): void {
    for (const key of this.#waiting) {
      if (this.#running.size >= this.#options.concurrency) return;
      if (this.#running.has(key)) continue;
      this.#waiting.delete(key);
      this.#running.set(key, this.#runOnce(key));
    }
  }

  async #runOnce(key: string): Promise<void> {
    try {
      await this.#options.run(key, this.#stopping.signal);
      this.#failures.delete(key);
    } catch (cause) {
      if (!this.#isStopping) this.#retryLater(key, cause);
    } finally {
      this.#running.delete(key);
      if (!this.#isStopping) this.#startNext();
    }
  }

  #retryLater(key: string, cause: unknown): void {
    const { firstRetryMs, longestRetryMs, random, onError } = this.#options;
    const count = this.#failures.get(key) ?? 0;
    this.#failures.set(key, count + 1);
    const waitMs = backoffMs(firstRetryMs, longestRetryMs, count) * (0.75 + random() / 2);
    onError(key, cause, waitMs);
    this.addAfter(key, waitMs);
  }
}
