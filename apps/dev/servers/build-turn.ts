import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isAlive } from './process.ts';

/**
 * No build of org-api takes longer; a lock that is older was left by a process on another machine,
 * or one whose pid is another's now.
 */
const lostAfterMs = 600_000;

/**
 * Building a program takes minutes: of several processes that need it, one builds and the others
 * wait. The lock is a file that holds the builder's pid.
 *
 * @returns how to let the turn go, or null while another process has it.
 */
export function takeBuildTurn(lock: string): (() => void) | null {
  mkdirSync(path.dirname(lock), { recursive: true });
  if (!isBuilding(lock)) rmSync(lock, { recursive: true, force: true });
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return null;
    throw error;
  }
  const release = () => rmSync(lock, { force: true });
  process.once('exit', release);
  return () => {
    process.off('exit', release);
    release();
  };
}

/** Waits, without giving way to anything else in this process, until no one has the turn. */
export function waitForBuild(lock: string): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  while (isBuilding(lock)) Atomics.wait(pause, 0, 0, 500);
}

/** Whether a process that is alive has the turn. */
export function isBuilding(lock: string): boolean {
  const heldMs = statSync(lock, { throwIfNoEntry: false })?.mtimeMs;
  if (heldMs === undefined || Date.now() - heldMs > lostAfterMs) return false;
  try {
    const pid = Number(readFileSync(lock, 'utf8'));
    return pid === 0 || isAlive(pid); // 0: made, and not written yet
  } catch {
    return false; // let go meanwhile
  }
}
