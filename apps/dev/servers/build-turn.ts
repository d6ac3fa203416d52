import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { isAlive } from './process.ts';

/** No build takes longer. The pid of an older lock belongs to another machine or process. */
const lostAfterMs = 600_000;

/**
 * Takes the build lock, a file with the builder's pid: of several processes that need a program,
 * one builds it for minutes and the others wait.
 *
 * @returns a function that releases the lock, or null while another process holds it.
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

/** Blocks this process until the lock is free. */
export function waitForBuild(lock: string): void {
  const pause = new Int32Array(new SharedArrayBuffer(4));
  while (isBuilding(lock)) Atomics.wait(pause, 0, 0, 500);
}

/** Returns whether a live process holds the lock. */
export function isBuilding(lock: string): boolean {
  const heldMs = statSync(lock, { throwIfNoEntry: false })?.mtimeMs;
  if (heldMs === undefined || Date.now() - heldMs > lostAfterMs) return false;
  try {
    const pid = Number(readFileSync(lock, 'utf8'));
    return pid === 0 || isAlive(pid); // 0: created, and not written yet
  } catch {
    return false; // released meanwhile
  }
}
