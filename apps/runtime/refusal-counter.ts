import { createIntervalLoop } from './flow/interval-loop.ts';

/** Refused requests of one key. */
export interface RefusalCount {
  fingerprint: Buffer;
  refused: number;
  /** The IP address of the last one, or null when it is not known. */
  address: string | null;
}

/**
 * Counts refused requests with a key, and passes the counts to `record` each second: one row per
 * key and minute.
 *
 * Such a request read nothing, so its row may be written after its answer; writing each at once
 * would let a refused caller load the database. A killed process loses at most the last second.
 * Counts whose flush fails are added to the next flush, so one minute's row then contains both.
 */
export function createRefusalCounter(options: {
  /** Adds the counts to the audit log. */
  record: (counts: readonly RefusalCount[]) => Promise<unknown>;
  onError: (cause: unknown) => void;
}) {
  const { record, onError } = options;
  let counts = new Map<string, RefusalCount>();

  function add(more: RefusalCount): RefusalCount {
    const id = more.fingerprint.toString('base64url');
    const count = counts.get(id);
    if (count === undefined) {
      counts.set(id, more);
      return more;
    }
    count.refused += more.refused;
    return count;
  }

  async function flush(): Promise<void> {
    if (counts.size === 0) return;
    const taken = [...counts.values()];
    counts = new Map();
    try {
      await record(taken);
    } catch (cause) {
      for (const count of taken) add(count);
      throw cause;
    }
  }
  const loop = createIntervalLoop({ run: flush, everyMs: 1_000, onError });

  return {
    /** Counts one refused request of a key. Unknown keys get no row. */
    count(fingerprint: Buffer, address: string | null): void {
      add({ fingerprint, refused: 1, address }).address = address;
    },
    start: loop.start,
    /** Writes what is left. Can be called twice, and before `start`. */
    async stop(): Promise<void> {
      await loop.stop();
      await flush().catch(onError);
    },
  };
}

export type RefusalCounter = ReturnType<typeof createRefusalCounter>;
