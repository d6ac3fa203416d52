import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import { findSchemaProblem } from '#runtime/health.ts';

/**
 * Resolves when the database has the schema of this code: in a rollout new pods start beside the
 * migration and leave the work to the old ones. `onWaiting` gets the reason when it changes.
 */
export async function waitForSchema(pool: Pool, onWaiting: (reason: string) => void): Promise<void> {
  let reported: string | null = null;
  for (;;) {
    const reason = await findSchemaProblem(pool);
    if (reason === null) return;
    if (reason !== reported) onWaiting(reason);
    reported = reason;
    await wait(1_000);
  }
}
