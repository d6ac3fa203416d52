/**
 * Runs before each file of tests: those of a file fail when an app that they ran in a separate process
 * connected to another place than SECURITY.md lists for it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, inject } from 'vitest';

process.env.SOCKETS_FOLDER ??= makeFolder();

// Not before that line: `childEnvironment` reads the variable.
const { allowSettings, checkChildren } = await import('./socket-guard.ts');
allowSettings({
  DATABASE_URL: inject('databaseAdminUrl'),
  REDIS_URL: inject('redisUrl'),
  TEMPORAL_ADDRESS: inject('temporalAddress'),
});
afterAll(checkChildren);

/** Returns a folder for what the children of this process of Vitest connect to. */
function makeFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-sockets-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
