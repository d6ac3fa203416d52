import { backoffMs } from '#runtime/flow/backoff.ts';

interface WorkQueueOptions {
  /** Does the work of one key. What it throws makes the key wait and come again. */
  run: (key: string, signal: AbortSignal) => Promise<void>;
  /** Keys that are worked on at once. */
  concurrency: number;
  onError: (key: string, cause: unknown, retryInMs: number) => void;
  /** The first wait after a failure; each further one is twice as long, with jitter. */
  firstRetryMs?: number;
  longestRetryMs?: number;
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
export function createWorkQueue(options: WorkQueueOptions) {
  const { run, concurrency, onError, firstRetryMs = 1_000, longestRetryMs = 300_000, random = Math.random } = options;
  const waiting = new Set<string>();
  const running = new Map<string, Promise<void>>();
  const failures = new Map<string, number>();
  const timers = new Map<string, NodeJS.Timeout>();
  const stopping = new AbortController();

  function add(key: string): void {
    if (stopping.signal.aborted) return;
    clearTimeout(timers.get(key));
    timers.delete(key);
    waiting.add(key);
    startNext();
  }

  /** Adds a key after a while, unless it is added before. */
  function addAfter(key: string, waitMs: number): void {
    if (stopping.signal.aborted || waiting.has(key)) return;
    clearTimeout(timers.get(key));
    timers.set(key, setTimeout(add, waitMs, key).unref());
  }

  function startNext(): void {
    for (const key of waiting) {
      if (running.size >= concurrency) return;
      if (running.has(key)) continue;
      waiting.delete(key);
      running.set(key, runOnce(key));
    }
  }

  async function runOnce(key: string): Promise<void> {
    try {
      await run(key, stopping.signal);
      failures.delete(key);
    } catch (cause) {
      if (!stopping.signal.aborted) retryLater(key, cause);
    } finally {
      running.delete(key);
      if (!stopping.signal.aborted) startNext();
    }
  }

  function retryLater(key: string, cause: unknown): void {
    const count = failures.get(key) ?? 0;
    failures.set(key, count + 1);
    const waitMs = backoffMs(firstRetryMs, longestRetryMs, count) * (0.75 + random() / 2);
    onError(key, cause, waitMs);
    addAfter(key, waitMs);
  }

  return {
    add,
    addAfter,
    /** Drops the failures and timers of a key whose object is gone. */
    drop(key: string): void {
      clearTimeout(timers.get(key));
      timers.delete(key);
      failures.delete(key);
    },
    async stop(): Promise<void> {
      stopping.abort();
      for (const timer of timers.values()) clearTimeout(timer);
      timers.clear();
      waiting.clear();
      await Promise.all(running.values());
    },
  };
}

export type WorkQueue = ReturnType<typeof createWorkQueue>;
