/**
 * Server processes of the embedded stack: started detached, found by pid, stopped by pid.
 *
 * - Ctrl-C in a terminal signals the whole foreground group, and the apps need the servers while
 *   they drain.
 * - A pid belongs to org-api only if the process's command line contains its folder: pids are used
 *   again. `/proc/<pid>/cwd` and `exe` cannot be read by Docker's root for another user's process.
 * - A zombie counts as gone. Where pid 1 reaps no processes (many containers), a killed server
 *   stays one, and signal 0 still reaches it.
 */
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { StartRefused } from '#runtime/errors.ts';
import { startTracked } from './children.ts';
import { programEnvironment } from './program-environment.ts';

/** A server that cannot be had. The message says what happened, why, and what to do next. */
export class ServerUnavailableError extends StartRefused {
  override name = 'ServerUnavailableError';
}

/** Reports one line of progress to the caller. */
export type Report = (line: string) => void;

/** A system account that a server runs as. */
export interface Account {
  uid: number;
  gid: number;
  name: string;
}

const LOG_LIMIT_BYTES = 5_000_000;

/**
 * Starts a server in a separate session, which may outlive this process, and appends its output to
 * `logFile`. `env` is its whole environment. Without `account` it runs as this process's user.
 * `listens` resolves when the process says by its own channel that it listens (`hasChannel`; see
 * `runApp`): no other process can.
 */
export async function spawnDetached(options: {
  command: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  logFile: string;
  account?: Account | null;
  hasChannel?: boolean;
}) {
  const { command, args, cwd, env, logFile, account, hasChannel = false } = options;
  const log = openLog(logFile);
  const child = startTracked(() =>
    spawn(command, args, {
      cwd,
      env,
      detached: true,
      stdio: ['ignore', log, log, ...(hasChannel ? (['ipc'] as const) : [])],
      ...(account && { uid: account.uid, gid: account.gid }),
    }),
  );
  closeSync(log);
  child.unref();
  const listens = new Promise<true>((resolve) => {
    child.once('message', () => {
      child.disconnect();
      resolve(true);
    });
  });
  let ended = false;
  /** Describes how it ended; never rejects. */
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
  return { pid: child.pid, exited, hasExited: () => ended, listens };
}

/** One earlier log is kept, so that a stack that runs for months does not fill a disk. */
function openLog(file: string): number {
  if (fileSize(file) > LOG_LIMIT_BYTES) renameSync(file, `${file}.1`);
  return openSync(file, 'a', 0o600);
}

/**
 * Waits until all have settled, so that none is still starting when the rest is stopped.
 *
 * @throws the first failure in the order of the list.
 */
export async function allOrFirstFailure<T extends readonly Promise<unknown>[]>(
  steps: readonly [...T],
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(steps);
  return Promise.all(steps) as Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }>;
}

/** Returns whether a process runs under this pid. Another user's counts, a zombie does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  if (process.platform !== 'linux') return true;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.charAt(stat.lastIndexOf(')') + 2) !== 'Z'; // the name before it may contain parentheses
  } catch {
    return false;
  }
}

/** Returns whether `pid` is alive and has `folder` on its command line. */
export function isServerOf(pid: number, folder: string): boolean {
  if (!isAlive(pid)) return false;
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(folder);
    return execFileSync('ps', ['-ww', '-o', 'command=', '-p', String(pid)], {
      encoding: 'utf8',
      env: programEnvironment(),
    }).includes(folder);
  } catch {
    return false;
  }
}

/** Signals, and how long each may take. */
export type StopSignals = readonly (readonly [signal: NodeJS.Signals, deadlineMs: number])[];

/**
 * Stops the server of `folder` under `pid` by each signal in turn, for its milliseconds.
 *
 * @throws ServerUnavailableError when it survives the last signal.
 */
export async function stopServer(pid: number, folder: string, signals: StopSignals): Promise<void> {
  for (const [signal, deadlineMs] of signals) {
    if (!isServerOf(pid, folder)) return;
    try {
      process.kill(pid, signal);
      process.kill(pid, 'SIGCONT'); // a server that a test paused handles no signal before it continues
    } catch {
      // It ended meanwhile, or belongs to another user. The wait below decides.
    }
    if (await becomesTrue(() => !isAlive(pid), deadlineMs)) return;
  }
  throw new ServerUnavailableError(`Process ${pid} of ${folder} does not stop: end it by hand (kill -9 ${pid}).`);
}

/** Asks every `everyMs` until `condition` holds. Returns false after `deadlineMs`. */
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

/** Creates a folder of the state with its parents. */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (cause) {
    const { message } = cause as Error;
    throw new ServerUnavailableError(
      `The state folder ${folder} cannot be created (${message}): make its parent writable, or move the state folder.`,
      { cause },
    );
  }
}

/** Returns the last error after a byte of a log, else its last line, else nothing. */
export function readLastComplaint(logFile: string, fromByte: number): string {
  const lines = readFileSync(logFile).subarray(fromByte).toString('utf8').trim().split('\n');
  const complaint =
    lines.findLast((line) => /\b(FATAL|PANIC|ERROR)\b|fatal|error|did not start/i.test(line)) ?? lines.at(-1) ?? '';
  return complaint.trim();
}

const noteFile = 'server.json';

/** Notes what is known of a folder's server, so that a later start finds it, also after a kill. */
export function writeNote(folder: string, note: object): void {
  replaceFile(path.join(folder, noteFile), JSON.stringify(note));
}

/** Returns the last note of a folder's server, or null. */
export function readNote<Note>(folder: string): Note | null {
  try {
    return JSON.parse(readFileSync(path.join(folder, noteFile), 'utf8')) as Note;
  } catch {
    return null;
  }
}

/** Replaces a file in one step, so that neither a kill nor a second writer leaves half of it. */
export function replaceFile(file: string, text: string): void {
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, text, { mode: 0o600, flag: 'wx' });
  renameSync(draft, file);
}

/** Returns the size of a file in bytes, 0 when there is none. */
export function fileSize(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** Returns the time since a `performance.now()` for a progress line, for example `1.8 s`. */
export function secondsSince(startedAt: number): string {
  return `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
}
