import { createIntervalLoop } from './flow/interval-loop.ts';

export interface RejectionCount {
  fingerprint: Buffer;
  rejected: number;
  /** The IP address of the last one, or null when it is not known. */
  address: string | null;
}

/**
 * Counts rejected requests with a key, and passes the counts to `record` each second: one row per
 * key and minute.
 *
 * Such a request read nothing, so its row may be written after its response; writing each at once
 * would let a rejected caller load the database. A killed process loses at most the last second.
 * Counts whose flush fails are added to the next flush, so one minute's row then contains both.
 */
export function createRejectionCounter(options: {
  /** Adds the counts to the audit log. */
  record: (counts: readonly RejectionCount[]) => Promise<unknown>;
  onError: (cause: unknown) => void;
}) {
  const { record, onError } = options;
  let counts = new Map<string, RejectionCount>();

  function add(more: RejectionCount): RejectionCount {
    const id = more.fingerprint.toString('base64url');
    const count = counts.get(id);
    if (count === undefined) {
      counts.set(id, more);
      return more;
    }
    count.rejected += more.rejected;
    return count;
  }

  async function flush(): Promise<void> {
    if (counts.size === 0) return;
    const flushed = [...counts.values()];
    counts = new Map();
    try {
      await record(flushed);
    } catch (cause) {
      for (const count of flushed) add(count);
      throw cause;
    }
  }
  const loop = createIntervalLoop({ run: flush, everyMs: 1_000, onError });

  return {
    /** Counts one rejected request of a key. Unknown keys get no row. */
    count(fingerprint: Buffer, address: string | null): void {
      add({ fingerprint, rejected: 1, address }).address = address;
    },
    start: loop.start,
    /** Writes what is left. Can be called twice, and before `start`. */
    async stop(): Promise<void> {
      await loop.stop();
      await flush().catch(onError);
    },
  };
}

export type RejectionCounter = ReturnType<typeof createRejectionCounter>;
