/**
 * Server processes of the embedded stack: started detached, found by pid, stopped by pid.
 *
 * - Ctrl-C in a terminal signals the whole foreground group, and the apps need the servers while
 *   they drain.
 * - A pid belongs to org-api only if the process's command line contains its folder: pids are used
 *   again. `/proc/<pid>/cwd` and `exe` cannot be read by Docker's root for another user's process.
 * - A zombie counts as gone: where pid 1 reaps no processes (many containers), a killed server stays
 *   one.
 */
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { StartupError } from '#runtime/errors.ts';
import { isAlive } from '../state-lock.mjs';
import { startTracked } from './children.ts';
import { programEnvironment } from './program-environment.ts';

/** A server that cannot be had. The message says what happened, why, and what to do next. */
export class ServerUnavailableError extends StartupError {
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

/**
 * Starts a program in a separate session, which may outlive this process, and appends its output to
 * `logFile`. `env` is its whole environment. Without `account` it runs as this process's user.
 * `listens` says whether the process has said by its own channel that it listens (`hasChannel`; see
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
  const log = openSync(logFile, 'a', 0o600);
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
  let listens = false;
  child.once('message', () => {
    listens = true;
    child.disconnect();
  });
  /** Describes how it ended; never rejects. */
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ? `ended by ${signal}` : `exit code ${code}`));
  });
  await once(child, 'spawn');
  const hasExited = () => child.exitCode !== null || child.signalCode !== null;
  return { pid: child.pid as number, exited, hasExited, listens: () => listens };
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

/** Returns whether `pid` runs and has `folder` on its command line, which a zombie has lost. */
export function isServerOf(pid: number, folder: string): boolean {
  try {
    if (process.platform === 'linux') return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').includes(folder);
    return execFileSync('ps', ['-ww', '-o', 'command=', '-p', `${pid}`], { env: programEnvironment() }).includes(
      folder,
    );
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

/** Runs a program as `spawnDetached` starts it. Returns its complaint when it fails, else null. */
export async function runProgram(options: Parameters<typeof spawnDetached>[0]): Promise<string | null> {
  const logStart = fileSize(options.logFile);
  const { exited } = await spawnDetached(options);
  const staying = setInterval(() => {}, 1_000); // the program does not keep this process running
  const exit = await exited.finally(() => clearInterval(staying));
  return exit === 'exit code 0' ? null : readLastComplaint(options.logFile, logStart) || exit;
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

/** Returns the last error after a byte of a log, else its last line, else nothing. */
export function readLastComplaint(logFile: string, fromByte: number): string {
  const lines = readFileSync(logFile).subarray(fromByte).toString('utf8').trim().split('\n');
  return (lines.findLast((line) => /fatal|panic|error|did not start/i.test(line)) ?? lines.at(-1) ?? '').trim();
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
