/**
 * Locks between the processes of one machine: a file that names its owner. Plain JavaScript, because
 * install.mjs needs it before anything is installed.
 *
 * - An owner is a pid with the time at which that process started, because pids are used again. A
 *   lock without a running owner is stale, so a killed process needs no clean-up.
 * - The file appears as a link, with its content: the flag `wx` would show an empty file for a moment.
 * - A stale lock is removed under a second lock, after another look, so that none removes the new
 *   lock of another process.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * Acquires a lock.
 *
 * @returns what unlocks it, or the pid of the process that holds it
 * @throws Error with the remedy when its folder cannot be written.
 */
export function acquireLock(file) {
  try {
    mkdirSync(path.dirname(file), { recursive: true });
    return tryToAcquire(file);
  } catch (error) {
    throw new Error(`${file} cannot be written (${error.message}): make its folder writable.`, { cause: error });
  }
}

function tryToAcquire(file) {
  for (;;) {
    const owner = readOwner(file);
    if (owner !== null && isRunning(owner)) return { holder: Number.parseInt(owner, 10) };
    if (owner !== null) removeStale(file);
    const unlock = create(file);
    if (unlock !== null) return { unlock };
  }
}

/**
 * Ensures that something slow to install or build is there for all processes of a machine: one
 * provides it under the lock, and the others wait and look again.
 *
 * @returns whether it is there; false when `provide` says that it failed.
 */
export async function provideOnce(file, { isThere, provide, onWait = () => {} }) {
  for (let waits = 0; !isThere(); waits += 1) {
    const { unlock } = acquireLock(file);
    if (unlock === undefined) {
      if (waits === 0) onWait();
      await wait(200);
      continue;
    }
    try {
      return isThere() || (await provide());
    } finally {
      unlock();
    }
  }
  return true;
}

/** Creates the file. Returns the function that removes it, or null when it exists. */
function create(file) {
  const owner = identify(process.pid);
  if (owner === null) throw new Error('This system does not say when a process started (ps).');
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, owner, { flag: 'wx', mode: 0o600 });
  try {
    linkSync(draft, file);
  } catch (error) {
    if (error.code === 'EEXIST') return null;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  return () => {
    if (readOwner(file) === owner) rmSync(file, { force: true }); // else its folder was deleted meanwhile
  };
}

function removeStale(file) {
  const { unlock } = tryToAcquire(`${file}.stale`);
  if (unlock === undefined) return;
  try {
    const owner = readOwner(file);
    if (owner !== null && !isRunning(owner)) rmSync(file, { force: true });
  } finally {
    unlock();
  }
}

function readOwner(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (error.code === 'ENOENT') return null;
    throw error;
  }
}

/** Returns whether the process runs that `identify` named, and not another one with its pid. */
export const isRunning = (owner) => owner === identify(Number.parseInt(owner, 10));

/** Returns the pid and start of a process, also another user's, for example `812 4711`; null for none or a zombie. */
export function identify(pid) {
  try {
    const [state, ...startedAt] = process.platform === 'linux' ? lookInProc(pid) : askPs(pid);
    return state.startsWith('Z') ? null : `${pid} ${startedAt.join(' ')}`;
  } catch {
    return null;
  }
}

function lookInProc(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // the name before may contain anything
  return [fields[0], fields[19]];
}

function askPs(pid) {
  const env = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' };
  const args = ['-o', 'state=,lstart=', '-p', String(pid)];
  return execFileSync('ps', args, { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'ignore'] })
    .trim()
    .split(/\s+/);
}
