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

/**
 * Acquires a lock.
 *
 * @returns its release, or the pid of the process that holds it
 */
export function acquireLock(file) {
  mkdirSync(path.dirname(file), { recursive: true });
  for (;;) {
    const owner = readOwner(file);
    if (owner !== null && isRunning(owner)) return { holder: Number.parseInt(owner, 10) };
    if (owner !== null) removeStale(file);
    const release = create(file);
    if (release !== null) return { release };
  }
}

/** Blocks this process while another one holds the lock. */
export function waitForLock(file) {
  for (let owner = readOwner(file); owner !== null && isRunning(owner); owner = readOwner(file)) pause(200);
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
