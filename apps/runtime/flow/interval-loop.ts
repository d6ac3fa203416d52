interface IntervalLoopOptions {
  run: (signal: AbortSignal) => unknown;
  everyMs: number;
  onError: (cause: unknown) => void;
}

/**
 * Repeats `run` until it is stopped. A run starts `everyMs` after the end of the one before, or of
 * its error, which `onError` gets. `stop` aborts the signal. The timer does not keep the process
 * alive.
 */
export class IntervalLoop {
  readonly #options: IntervalLoopOptions;
  #stopping: AbortController | null = null;
  #timer: NodeJS.Timeout | undefined;
  #current: Promise<void> | null = null;
  #isRunWanted = false;

  constructor(options: IntervalLoopOptions) {
    this.#options = options;
  }

  /** Starts the first run at once; resolves when it has ended. */
  start(): Promise<void> {
    this.#stopping ??= new AbortController();
    return this.#begin();
  }

  /** Starts a run at once, or right after the current one. Does nothing unless started. */
  runNow(): void {
    if (this.#current === null) void this.#begin();
    else this.#isRunWanted = true;
  }

  /** Aborts the signal and waits for the current run. Can be called twice, and before `start`. */
  async stop(): Promise<void> {
    this.#stopping?.abort();
    this.#stopping = null;
    clearTimeout(this.#timer);
    await this.#current;
  }

  #begin(): Promise<void> {
    const signal = this.#stopping?.signal;
    if (signal === undefined) return Promise.resolve();
    clearTimeout(this.#timer);
    this.#current ??= this.#run(signal).then(() => {
      this.#current = null;
      if (this.#stopping === null) return;
      if (this.#isRunWanted) void this.#begin();
      else this.#timer = setTimeout(() => this.#begin(), this.#options.everyMs).unref();
    });
    return this.#current;
  }

  async #run(signal: AbortSignal): Promise<void> {
    this.#isRunWanted = false;
    try {
      await this.#options.run(signal);
    } catch (cause) {
      this.#options.onError(cause);
    }
  }
}
