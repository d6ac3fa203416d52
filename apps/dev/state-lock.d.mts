/** See state-lock.mjs. `holder` is the pid of the process that holds the lock. */
export type Lock = { unlock: () => void; holder?: never } | { holder: number; unlock?: never };
export function acquireLock(file: string): Lock;
export function provideOnce(
  file: string,
  options: { isThere: () => boolean; provide: () => boolean | Promise<boolean>; onWait?: () => void },
): Promise<boolean>;
export function identify(pid: number): string | null;
export function isRunning(owner: string): boolean;
