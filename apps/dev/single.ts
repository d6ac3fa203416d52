import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isAlive, ServerUnavailableError } from './servers/process.ts';

/**
 * Locks a state folder, so that a second `npm start` on it does not stop the first one's apps.
 * Returns a function that releases the lock.
 *
 * @throws ServerUnavailableError when another live process holds it.
 */
export function holdState(folder: string): () => Promise<void> {
  const file = path.join(folder, 'npm-start.pid');
  const holder = existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0;
  if (holder > 0 && holder !== process.pid && isAlive(holder) && isNpmStart(holder)) {
    throw new ServerUnavailableError(
      `Another npm start (process ${holder}) runs this stack: use that one, stop it with Ctrl-C, or give this ` +
        'one its own ORG_API_STATE and ORG_API_PORT.',
    );
  }
  writeFileSync(file, String(process.pid));
  return async () => rmSync(file, { force: true });
}

/** A pid is used again after its process ended; on Linux the command line identifies the process. */
function isNpmStart(pid: number): boolean {
  if (process.platform !== 'linux') return true;
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(path.join('apps', 'dev', 'main.ts'));
  } catch {
    return false;
  }
}
