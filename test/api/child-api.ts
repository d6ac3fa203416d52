import { type ChildApp, startApp } from '#test/child-app.ts';
import type { TestDatabase } from '#test/database.ts';
import { apiEnvironment } from '#test/setup.ts';

/** Starts an API on a test's database in a separate process; resolves when it listens. */
export const startChildApi = (database: TestDatabase, settings: Record<string, string> = {}): Promise<ChildApp> =>
  startApp('api', apiEnvironment(database, settings));
