import type { Pool } from 'pg';
import { recordRefusalsSql } from '#domain/db/queries/activity.ts';

interface Count {
  fingerprint: Buffer;
  minute: Date;
  refused: number;
}

/**
 * Counts calls refused with 429, and adds the counts to the activity log each second: one line per key and minute.
 *
 * Such a call read nothing, so it is the one use whose line may come after its answer (design, section 5): writing each at once would let a
 * key over its limit load the database it was refused access to. When the process is killed, at most the last second is lost.
 * A flush that fails is kept and added to the next one.
 */
export function createRefusalCounter(options: {
  pool: Pool;
  onError: (cause: unknown) => void;
  flushEveryMs?: number;
}) {
  const { pool, onError, flushEveryMs = 1000 } = options;
  let counts = new Map<string, Count>();
  let timer: NodeJS.Timeout | undefined;
  let flushing: Promise<void> = Promise.resolve();

  function add(fingerprint: Buffer, minute: Date, refused: number): void {
    const id = `${fingerprint.toString('base64url')} ${minute.getTime()}`;
    const count = counts.get(id);
    if (count === undefined) counts.set(id, { fingerprint, minute, refused });
    else count.refused += refused;
  }

  async function flush(): Promise<void> {
    if (counts.size === 0) return;
    const taken = [...counts.values()];
    counts = new Map();
    const values = [
      taken.map((c) => c.fingerprint),
      taken.map((c) => c.minute.toISOString()),
      taken.map((c) => c.refused),
    ];
    try {
      await pool.query({ name: 'recordRefusals', text: recordRefusalsSql, values });
    } catch (cause) {
      for (const count of taken) add(count.fingerprint, count.minute, count.refused);
      onError(cause);
    }
  }

  return {
    /** Counts one refused call of a key, known or not; unknown keys get no line. */
    count(fingerprint: Buffer): void {
      add(fingerprint, new Date(Math.floor(Date.now() / 60_000) * 60_000), 1);
    },
    start(): void {
      timer ??= setInterval(() => {
        flushing = flushing.then(flush);
      }, flushEveryMs);
      timer.unref();
    },
    /** Writes what is left. Safe to call twice, and before `start`. */
    async stop(): Promise<void> {
      clearInterval(timer);
      timer = undefined;
      await flushing;
      await flush();
    },
  };
}

export type RefusalCounter = ReturnType<typeof createRefusalCounter>;
