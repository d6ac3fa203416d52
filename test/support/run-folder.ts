/**
 * Temporary folders with servers, which are stopped and deleted even when a run is interrupted.
 * - Servers are detached, so a killed run leaves them running. The folder's name contains the
 * machine and the pid of its creator: the next run removes what a killed run left.
 * - Vitest exits a millisecond after Ctrl-C, too soon for an orderly stop. The servers are then
 * killed, because their data is not needed.
 */
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { discardCluster } from '../../apps/dev/servers/postgres-cluster.ts';
import { stopLeftOver } from '../../apps/dev/servers/server-program.ts';
import { isAlive } from '../../apps/dev/state-lock.mjs';

/** The folder that has room in memory on Linux; it need not exist. */
export const memoryFolder = '/dev/shm';

const prefix = `org-api-test-${hostname().replace(/[^\w-]/g, '_')}-`;
const killDeadlineMs = 3_000;

/** Creates a folder for servers, whose state is in {@link stateOf} it. */
export function makeRunFolder(parent: string = tmpdir()): string {
  const folder = mkdtempSync(path.join(parent, `${prefix}${process.pid}-`));
  chmodSync(folder, 0o711); // PostgreSQL's account passes through when this process is root
  return folder;
}

export const stateOf = (folder: string) => path.join(folder, 'state');

/** Stops the servers of a folder and deletes it, including data elsewhere. */
export async function removeRunFolder(folder: string): Promise<void> {
  for (const server of ['redis', 'temporal']) await stopLeftOver(path.join(stateOf(folder), server));
  await discardCluster(stateOf(folder));
  rmSync(folder, { recursive: true, force: true });
}

/**
 * The same immediately, at exit: kills the servers. A folder whose data is elsewhere is left for
 * the next run.
 */
export function removeRunFolderNow(folder: string, pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process has ended.
    }
  }
  const endsAt = performance.now() + killDeadlineMs;
  const clock = new Int32Array(new SharedArrayBuffer(4));
  while (pids.some(isAlive) && performance.now() < endsAt) Atomics.wait(clock, 0, 0, 10);
  if (existsSync(path.join(stateOf(folder), 'postgres'))) {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 }); // PostgreSQL's children end a moment later
  }
}

/** Ends and deletes what killed runs have left in memory and in the temporary folder. */
export async function removeDeadRunFolders(report: (line: string) => void): Promise<void> {
  for (const parent of new Set([memoryFolder, tmpdir()])) {
    for (const name of existsSync(parent) ? readdirSync(parent) : []) {
      const pid = name.startsWith(prefix) ? Number.parseInt(name.slice(prefix.length), 10) : 0;
      if (!pid || isAlive(pid)) continue;
      report(`ending the servers that a killed test run left in ${name}`);
      await removeRunFolder(path.join(parent, name)).catch((error: Error) => report(`that failed: ${error.message}`));
    }
  }
}
