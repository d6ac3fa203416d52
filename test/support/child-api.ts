import { type ChildApp, startApp } from './child-app.ts';
import type { TestDatabase } from './database.ts';
import { apiEnvironment } from './setup.ts';

/** Starts an API on a test's database in a separate process; resolves when it listens. */
export const startChildApi = (database: TestDatabase, settings: Record<string, string> = {}): Promise<ChildApp> =>
  startApp('api', apiEnvironment(database, settings));
