import { IntervalLoop } from './flow/interval-loop.ts';

/** The rejected calls of a key that are not recorded yet. */
export interface RejectedCalls {
  fingerprint: Buffer;
  count: number;
  /** The IP address of the last one, or null when it is not known or not recorded. */
  address: string | null;
}

/**
 * Counts rejected calls with a key, and passes the counts to `record` each second: one row per key
 * and minute.
 *
 * Such a call read nothing, so its row may be written after its response; writing each at once
 * would let a rejected caller load the database. A killed process loses at most the last second.
 * Counts whose flush fails are added to the next flush, so one minute's row then contains both.
 */
export class RejectedCallCounter {
  readonly #record: (calls: readonly RejectedCalls[]) => Promise<unknown>;
  readonly #onError: (cause: unknown) => void;
  readonly #loop: IntervalLoop;
  #calls = new Map<string, RejectedCalls>();

  constructor(options: {
    /** Adds the counts to the audit log. */
    record: (calls: readonly RejectedCalls[]) => Promise<unknown>;
    onError: (cause: unknown) => void;
  }) {
    this.#record = options.record;
    this.#onError = options.onError;
    this.#loop = new IntervalLoop({ run: () => this.#flush(), everyMs: 1_000, onError: options.onError });
  }

  /** Counts one call. Unknown keys get no row. */
  count(fingerprint: Buffer, address: string | null = null): void {
    this.#add({ fingerprint, count: 1, address }).address = address;
  }

  start(): Promise<void> {
    return this.#loop.start();
  }

  /** Writes what is left. Can be called twice, and before `start`. */
  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.#flush().catch(this.#onError);
  }

  #add(more: RejectedCalls): RejectedCalls {
    const id = more.fingerprint.toString('base64url');
    const calls = this.#calls.get(id);
    if (calls === undefined) {
      this.#calls.set(id, more);
      return more;
    }
    calls.count += more.count;
    return calls;
  }

  async #flush(): Promise<void> {
    if (this.#calls.size === 0) return;
    const flushed = [...this.#calls.values()];
    this.#calls = new Map();
    try {
      await this.#record(flushed);
    } catch (cause) {
      for (const calls of flushed) this.#add(calls);
      throw cause;
    }
  }
}
