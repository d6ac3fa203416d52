import { setTimeout as wait } from 'node:timers/promises';
import type { Database } from '#domain/db/database.ts';
import { readLedger } from '#domain/webhooks/ledger.ts';

/** The ledger at one moment of a run, in deliveries. */
export interface LedgerReading {
  /** `temporal was killed (fault 3)`, or `temporal is up again (fault 3)`. */
  when: string;
  /** Must be 0 at every moment: otherwise deliveries were lost or invented. */
  difference: number;
  /** Due for more than a minute. Allowed during faults, and not afterwards. */
  overdue: number;
}

/** Time for old connections to notice that PostgreSQL was killed. */
const deadlineMs = 20_000;

/**
 * Reads the ledger, and retries until PostgreSQL answers.
 * @throws the last error when that takes longer than 20 s.
 */
export async function readLedgerNow(database: Database, when: string): Promise<LedgerReading> {
  const giveUpAt = performance.now() + deadlineMs;
  for (;;) {
    try {
      const { difference, overdue } = await readLedger(database);
      return { when, difference, overdue };
    } catch (error) {
      if (performance.now() > giveUpAt) throw error;
      await wait(100);
    }
  }
}

/** `21 times, difference 0 each time, overdue at most 0`. */
export function describeReadings(readings: readonly LedgerReading[]): string {
  const wrong = readings.filter(({ difference }) => difference !== 0).length;
  const late = Math.max(0, ...readings.map(({ overdue }) => overdue));
  const differences = wrong === 0 ? 'difference 0 each time' : `a difference ${wrong} times`;
  return `${readings.length} times, ${differences}, overdue at most ${late}`;
}
