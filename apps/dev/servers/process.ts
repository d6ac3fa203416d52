/**
 * Server processes of the embedded stack: spawned detached, found again by pid, stopped by pid.
 *
 * Decisions (2026-11-20):
 * - Detached, in a session of their own: Ctrl-C in a terminal goes to the whole foreground group,
 *   and a server that stops with us leaves the drain nothing to write to (design section 2).
 * - A pid names a process of org-api only while that process's command line holds our folder. Pids
 * are
 *   used again, above all in containers, and `/proc/<pid>/cwd` and `exe`, which look better suited,
 *   cannot be read by Docker's root for another user's process.
 * - A zombie counts as gone. Where pid 1 reaps no one (many containers), a killed server stays one
 *   for ever, and signal 0 still reaches it.
 */
import { execFileSync, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';

/**
 * A server that cannot be had. The message is one sentence for the person at the terminal: what
 * happened, why, what to do next.
 */
export class ServerUnavailableError extends Error {
  override name = 'ServerUnavailableError';
}

/** A system account that a server runs as. */
export interface Account {
  uid: number;
  gid: number;
  name: string;
}

/** A child of org-api; `exited` resolves once with how it ended, in words, and never rejects. */
export interface Detached {
  pid: number;
  exited: Promise<string>;
  hasExited(): boolean;
}

const LOG_LIMIT_BYTES = 5_000_000;

/**
 * Starts a server in a session of its own, with its output appended to `logFile`; this process may
 * end without it. `account` null runs it as ourselves; `env` is its whole environment, null gives
 * it ours. Throws when the program cannot be run at all.
 */
export async function spawnDetached(options: {
  command: string;
  args: string[];
  cwd: string;
  env: Record<string, string> | null;
  logFile: string;
  account: Account | null;
}): Promise<Detached> {
  const { command, args, cwd, env, logFile, account } = options;
  const log = openLog(logFile);
  const child = spawn(command, args, {
    cwd,
    ...(env && { env }),
    detached: true,
    stdio: ['ignore', log, log],
    ...(account && { uid: account.uid, gid: account.gid }),
  });
  closeSync(log);
  child.unref();
  let ended = false;
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => {
      ended = true;
      resolve(signal ? `ended by ${signal}` : `exit code ${code}`);
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve);
    child.once('error', reject);
  });
  if (child.pid === undefined) throw new Error(`${command} has no pid`);
  return { pid: child.pid, exited, hasExited: () => ended };
}

/**
 * One earlier log is kept beside the current one, so that a stack of months does not fill a disk.
 */
function openLog(file: string): number {
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > LOG_LIMIT_BYTES) renameSync(file, `${file}.1`);
  return openSync(file, 'a', 0o600);
}

/**
 * Waits until all have settled, so that nothing starts after the stop of the rest.
 *
 * @throws the first failure in the order of the list.
 */
export async function allOrFirstFailure<T extends readonly Promise<unknown>[]>(
  steps: readonly [...T],
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(steps);
  return Promise.all(steps) as Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }>;
}

/** Whether a process runs under this pid: another user's counts, a zombie does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  if (process.platform !== 'linux') return true;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.charAt(stat.lastIndexOf(')') + 2) !== 'Z'; // the name before it may itself hold parentheses
  } catch {
    return false;
  }
}

/**
 * Whether `pid` is alive and was started with `folder` on its command line, that is, by us for this
 * folder.
 */
export function isServerOf(pid: number, folder: string): boolean {
  if (!isAlive(pid)) return false;
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(folder);
    return execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], { encoding: 'utf8' }).includes(folder);
  } catch {
    return false;
  }
}

/**
 * Stops the server of `folder` under `pid`: each signal in turn, with its patience in milliseconds,
 * until the process is gone. Resolves at once when it is gone already; throws {@link
 * ServerUnavailableError} when it outlives the last signal.
 */
export async function stopServer(
  pid: number,
  folder: string,
  signals: readonly (readonly [signal: NodeJS.Signals, patienceMs: number])[],
): Promise<void> {
  for (const [signal, patienceMs] of signals) {
    if (!isServerOf(pid, folder)) return;
    try {
      process.kill(pid, signal);
      process.kill(pid, 'SIGCONT'); // a server that a test paused would hear the signal only when it goes on
    } catch {
      // It ended between the look and the signal, or is not ours to stop: the wait below tells
      // which.
    }
    if (await becomesTrue(() => !isAlive(pid), patienceMs)) return;
  }
  throw new ServerUnavailableError(`Process ${pid} of ${folder} does not stop: end it by hand (kill -9 ${pid}).`);
}

/**
 * Asks every `everyMs` until `condition` holds; false when it still does not after `deadlineMs`.
 */
export async function becomesTrue(
  condition: () => boolean | Promise<boolean>,
  deadlineMs: number,
  everyMs = 25,
): Promise<boolean> {
  const endsAt = performance.now() + deadlineMs;
  for (;;) {
    if (await condition()) return true;
    if (performance.now() >= endsAt) return false;
    await wait(everyMs);
  }
}

/**
 * Makes a folder of the state with its parents, or throws {@link ServerUnavailableError} with the
 * remedy.
 */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (cause) {
    const { message } = cause as Error;
    throw new ServerUnavailableError(
      `The state folder ${folder} cannot be made (${message}): make its parent writable, or move the state folder.`,
      { cause },
    );
  }
}

/**
 * What a server last complained about after byte `fromByte` of its log, or its last line; one line,
 * empty when it said nothing.
 */
export function readLastComplaint(logFile: string, fromByte: number): string {
  const lines = readFileSync(logFile).subarray(fromByte).toString('utf8').trim().split('\n');
  const complaint = lines.findLast((line) => /\b(FATAL|PANIC|ERROR)\b|fatal|error/i.test(line)) ?? lines.at(-1) ?? '';
  return complaint.trim();
}

/** Size of a file in bytes, 0 when there is none. */
export function fileSize(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** The time since `startedAt` (a `performance.now()`), for a progress line: `1.8 s`. */
export function secondsSince(startedAt: number): string {
  return `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
}
