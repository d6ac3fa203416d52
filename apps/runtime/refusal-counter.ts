import { createIntervalLoop } from './interval-loop.ts';

/** Refused requests of one key. */
export interface RefusalCount {
  fingerprint: Buffer;
  refused: number;
  /** The IP address of the last one, or null when it is not known. */
  address: string | null;
}

/**
 * Counts refused requests that bring a key, and hands the counts to `record` each second: one line
 * per key and minute.
 *
 * Such a request read nothing, so it is the one use whose line may come after its answer: writing
 * each at once would let a refused caller load the database. When the process is killed, at most
 * the last second is lost. A flush that fails is kept and added to the next one, whose minute then
 * holds both: the database says which minute it is.
 */
export function createRefusalCounter(options: {
  /** Adds the counts to the activity log. */
  record: (counts: readonly RefusalCount[]) => Promise<unknown>;
  onError: (cause: unknown) => void;
  flushEveryMs?: number;
}) {
  const { record, onError, flushEveryMs = 1000 } = options;
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
  const loop = createIntervalLoop({ run: flush, everyMs: flushEveryMs, onError });

  return {
    /** Counts one refused request of a key, known or not; unknown keys get no line. */
    count(fingerprint: Buffer, address: string | null): void {
      add({ fingerprint, refused: 1, address }).address = address;
    },
    start: loop.start,
    /** Writes what is left. Safe to call twice, and before `start`. */
    async stop(): Promise<void> {
      await loop.stop();
      await flush().catch(onError);
    },
  };
}

export type RefusalCounter = ReturnType<typeof createRefusalCounter>;
