/**
 * Locks between the processes of one machine: a file that names its owner, created exclusively. The
 * only implementation, so plain JavaScript: install.mjs needs it before anything is installed.
 *
 * - An owner is a pid with the time at which that process started, because pids are used again. A
 *   lock without a running owner is stale, so a killed process needs no clean-up.
 * - A link appears with its content and only where there is no file, as with the flag `wx`, which
 *   would show an empty file for a moment.
 * - A stale lock is removed by a process that holds a second lock and has looked again, so that none
 *   removes the new lock of another. That second lock is of the same kind.
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * Acquires a lock.
 *
 * @returns its release, or the pid of the process that holds it
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
    const release = create(file);
    if (release !== null) return { release };
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
    const { release } = acquireLock(file);
    if (release === undefined) {
      if (waits === 0) onWait();
      await wait(200);
      continue;
    }
    try {
      return isThere() || (await provide());
    } finally {
      release();
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
  const guard = acquireLock(`${file}.stale`);
  if (guard.release === undefined) return pause(5);
  try {
    const owner = readOwner(file);
    if (owner !== null && !isRunning(owner)) rmSync(file, { force: true });
  } finally {
    guard.release();
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

const isRunning = (owner) => owner === identify(Number.parseInt(owner, 10));

/** Returns the pid and start of a process, for example `812 4711`; null for none or a zombie. */
function identify(pid) {
  const found = process.platform === 'linux' ? lookInProc(pid) : askPs(pid);
  return found === null || found.state.startsWith('Z') ? null : `${pid} ${found.startedAt}`;
}

function lookInProc(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // the name before may contain anything
    return { state: fields[0], startedAt: fields[19] };
  } catch {
    return null;
  }
}

function askPs(pid) {
  try {
    const printed = execFileSync('ps', ['-o', 'state=,lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      env: { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const [state, ...startedAt] = printed.trim().split(/\s+/);
    return { state, startedAt: startedAt.join(' ') };
  } catch {
    return null;
  }
}

function pause(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
