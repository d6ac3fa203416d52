/** A background part that repeats one piece of work. */
export interface IntervalLoop {
  /** Starts the first run at once; resolves when it has ended. */
  start(): Promise<void>;
  /** Starts a run at once, or right after the current one. Does nothing unless started. */
  runNow(): void;
  /** Aborts the signal and waits for the current run. Can be called twice, and before `start`. */
  stop(): Promise<void>;
}

/**
 * Repeats `run` until it is stopped. A run starts `everyMs` after the end of the one before, or of
 * its error, which `onError` gets. `stop` aborts the signal. The timer does not keep the process
 * alive.
 */
export function createIntervalLoop(options: {
  run: (signal: AbortSignal) => unknown;
  everyMs: number;
  onError: (cause: unknown) => void;
}): IntervalLoop {
  const { run, everyMs, onError } = options;
  let stopping: AbortController | null = null;
  let timer: NodeJS.Timeout | undefined;
  let current: Promise<void> | null = null;
  let isRunWanted = false;

  async function runOnce(signal: AbortSignal): Promise<void> {
    isRunWanted = false;
    try {
      await run(signal);
    } catch (cause) {
      onError(cause);
    }
  }

  function begin(): Promise<void> {
    const signal = stopping?.signal;
    if (signal === undefined) return Promise.resolve();
    clearTimeout(timer);
    current ??= runOnce(signal).then(() => {
      current = null;
      if (stopping === null) return;
      if (isRunWanted) void begin();
      else timer = setTimeout(begin, everyMs).unref();
    });
    return current;
  }

  return {
    start() {
      stopping ??= new AbortController();
      return begin();
    },
    runNow() {
      if (current === null) void begin();
      else isRunWanted = true;
    },
    async stop() {
      stopping?.abort();
      stopping = null;
      clearTimeout(timer);
      await current;
    },
  };
}
