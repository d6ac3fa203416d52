import { setTimeout as wait } from 'node:timers/promises';
import type { Pool } from 'pg';
import { currentMigration } from '#domain/db/migrations/index.ts';
import { schemaIsCurrentSql } from '#domain/db/statements/schema-version.ts';

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

/** The errors before the first migration: no such table or schema, or no right to it yet. */
const notMigrated = new Set(['42P01', '3F000', '42501']);
const tooOld = 'the database’s schema is older than this version; run the migrations';

async function findReason(pool: Pool): Promise<string | null> {
  try {
    const { rows } = await pool.query<{ current: boolean }>(schemaIsCurrentSql, [currentMigration]);
    return rows[0]?.current === true ? null : tooOld;
  } catch (cause) {
    const { code } = cause as { code?: string };
    if (notMigrated.has(code ?? '')) return tooOld;
    return `the database cannot be asked for its schema (${code ?? 'no answer'})`;
  }
}
