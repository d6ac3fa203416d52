import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import { isSchemaCurrent } from '#domain/db/schema-version.ts';

/**
 * Resolves when the database has the schema of this code: in a rollout new pods start beside the
 * migration and leave the work to the old ones. `onWaiting` gets the reason when it changes.
 */
export async function waitForSchema(pool: Pool, onWaiting: (reason: string) => void): Promise<void> {
  let reported: string | null = null;
  for (;;) {
    const reason = await findReason(pool);
    if (reason === null) return;
    if (reason !== reported) onWaiting(reason);
    reported = reason;
    await wait(1_000);
  }
}

async function findReason(pool: Pool): Promise<string | null> {
  try {
    const isCurrent = await isSchemaCurrent(pool);
    return isCurrent ? null : 'the database’s schema is older than this version; run the migrations';
  } catch (cause) {
    const { code } = cause as { code?: string };
    return `the database cannot be asked for its schema (${code ?? 'no answer'})`;
  }
}
