/**
 * Temporary folders with servers, which are stopped and deleted even when a run is interrupted.
 * - Servers are detached, so a killed run leaves them running. The folder's name contains the
 * machine and the pid of its creator: the next run removes what a killed run left.
 * - Vitest exits a millisecond after Ctrl-C, too soon for an orderly stop. The servers are then
 * killed, because their data is not needed.
 */
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statfsSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';
import { getDataFolders } from '../../apps/dev/servers/postgres-cluster.ts';
import { findNoted } from '../../apps/dev/servers/process.ts';
import { stopLeftOver } from '../../apps/dev/servers/server-program.ts';
import { identify } from '../../apps/dev/state-lock.mjs';

/** The folder that has room in memory on Linux; it need not exist. */
const memoryFolder = '/dev/shm';

const prefix = `org-api-test-${hostname().replace(/[^\w-]/g, '_')}-`;
const killDeadlineMs = 3_000;
/** What this process does at its exit, by folder. */
const abandons = new Map<string, () => void>();

/** Creates a folder for servers, whose state is in {@link getStateFolder} it. */
export function makeRunFolder(parent: string = tmpdir()): string {
  const folder = mkdtempSync(path.join(parent, `${prefix}${process.pid}-`));
  chmodSync(folder, 0o711); // PostgreSQL's account passes through when this process is root
  const abandon = () => removeNow(folder);
  process.once('exit', abandon);
  abandons.set(folder, abandon);
  return folder;
}

/** Returns the folder in memory when so many GiB of it are free, else the temporary folder. */
export function findRoom(sizeGib: number): string {
  try {
    const { bavail, bsize } = statfsSync(memoryFolder);
    accessSync(memoryFolder, constants.W_OK);
    return bavail * bsize >= sizeGib * 1024 ** 3 ? memoryFolder : tmpdir();
  } catch {
    return tmpdir();
  }
}

export const getStateFolder = (folder: string) => path.join(folder, 'state');

/** Stops the servers of a folder and deletes it, including data elsewhere. Safe to call twice. */
export async function removeRunFolder(folder: string): Promise<void> {
  const { servers, elsewhere } = listServers(folder);
  for (const server of servers) await stopLeftOver(server);
  for (const one of [elsewhere, folder]) rmSync(one, { recursive: true, force: true });
  process.off('exit', abandons.get(folder) ?? (() => {}));
  abandons.delete(folder);
}

/** The same immediately, at exit: kills the servers. */
function removeNow(folder: string): void {
  const { servers, elsewhere } = listServers(folder);
  const pids = servers.map((server) => findNoted(path.join(server, 'server.pid'))).filter((pid) => pid !== null);
  for (const pid of pids) process.kill(pid, 'SIGKILL');
  const endsAt = performance.now() + killDeadlineMs;
  const clock = new Int32Array(new SharedArrayBuffer(4));
  while (pids.some(identify) && performance.now() < endsAt) Atomics.wait(clock, 0, 0, 10);
  // PostgreSQL's children end a moment later.
  for (const one of [elsewhere, folder]) rmSync(one, { recursive: true, force: true, maxRetries: 5 });
}

/** Returns the folders of a run's servers; that of PostgreSQL may be elsewhere. */
function listServers(folder: string): { servers: string[]; elsewhere: string } {
  const state = getStateFolder(existsSync(folder) ? realpathSync(folder) : folder);
  const { inState, elsewhere } = getDataFolders(state);
  return { servers: [path.join(state, 'redis'), path.join(state, 'temporal'), inState, elsewhere], elsewhere };
}

/** Ends and deletes what killed runs have left in memory and in the temporary folder. */
export async function removeDeadRunFolders(report: (line: string) => void): Promise<void> {
  for (const parent of new Set([memoryFolder, tmpdir()])) {
    for (const name of existsSync(parent) ? readdirSync(parent) : []) {
      const pid = name.startsWith(prefix) ? Number.parseInt(name.slice(prefix.length), 10) : 0;
      if (!pid || identify(pid) !== null) continue;
      report(`ending the servers that a killed test run left in ${name}`);
      await removeRunFolder(path.join(parent, name)).catch((error: Error) => report(`that failed: ${error.message}`));
    }
  }
}
