import type { Database } from '#domain/db/database.ts';
import { pooled } from '#domain/db/driver/errors.ts';
import { describeFailure, findCode } from './database-failure.ts';
import { StartupError } from './errors.ts';

/**
 * Connects to the database of an app that starts. Any other failure passes: the database may come later.
 *
 * @param setting - the one that names the database.
 * @throws StartupError when a pooler is between; the database is closed then.
 */
export async function rejectPooler(database: Database, setting: string): Promise<void> {
  try {
    (await database.pool.connect()).release();
  } catch (error) {
    if (findCode(error) !== pooled) return;
    await database.close();
    throw new StartupError(describeFailure(error, setting));
  }
}
