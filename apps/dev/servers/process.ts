/**
 * Processes of a development stack: servers, apps, and programs that prepare something.
 *
 * - Each is detached: Ctrl-C in a terminal signals the whole foreground group, and the apps need the
 *   servers while they drain. What still runs at the end is stopped in reverse order.
 * - A file notes the pid of a process and when that process started (`identify`), so that a later
 *   start stops what a killed one has left, and no other process: pids are used again.
 * - A zombie counts as gone: where pid 1 reaps no processes (many containers), a killed server stays
 *   one.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once as event } from 'node:events';
import { closeSync, existsSync, fstatSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { StartupError } from '#runtime/errors.ts';
import { once } from '#runtime/flow/once.ts';
import { identify, isRunning } from '../state-lock.mjs';

/** Reports one line of progress to the caller. */
export type Report = (line: string) => void;

/** A system account that a server runs as. */
export interface Account {
  uid: number;
  gid: number;
  name: string;
}

/** How a program is started. `env` is its whole environment. */
export interface Launch {
  command: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  /** The account that it runs as; without it, this process's user. */
  account?: Account | null;
  /** Whether the process says by a channel of its own that it listens (`runApp`): no other can. */
  hasChannel?: boolean;
}

/** In order, then by force. For PostgreSQL, SIGINT ends sessions and SIGTERM waits for them. */
const stopSignals = [
  ['SIGINT', 30_000],
  ['SIGKILL', 5_000],
] as const;

/** Stops of the processes that this one has started and that still run, in that order. */
const running = new Set<() => Promise<void>>();
/** Whether every later start of a process fails. */
export let isEnding = false;

/** Makes every later start of a process fail, so that the steps of npm start end soon. */
export function stopLaunching(): void {
  isEnding = true;
}

/** Stops the processes that still run, the last one first. */
export async function stopProcesses(report: Report): Promise<void> {
  stopLaunching();
  for (const stop of [...running].reverse()) await stop().catch((error: Error) => report(error.message));
}

/**
 * Starts a process, which `stopProcesses` stops.
 *
 * @throws Error after `stopLaunching`, and when there is no such program.
 */
export async function startTracked(start: () => ChildProcess) {
  if (isEnding) throw new Error('the start was interrupted');
  const child = start();
  const owner = identify(child.pid ?? 0) ?? `${child.pid} ended`;
  const stop = once(() => stopProcess(owner));
  running.add(stop);
  /** Describes how it ended; never rejects. */
  const exited = new Promise<string>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ? `ended by ${signal}` : `exit code ${code}`));
    child.once('error', ({ message }) => resolve(message));
  });
  void exited.then(() => running.delete(stop));
  let listens = false;
  child.once('message', () => {
    listens = true;
    child.disconnect();
  });
  await event(child, 'spawn');
  const hasExited = () => child.exitCode !== null || child.signalCode !== null;
  return { pid: child.pid as number, owner, exited, hasExited, listens: () => listens, stop };
}

export type StartedProcess = Awaited<ReturnType<typeof spawnDetached>>;

/**
 * Starts a program in a separate session, which may outlive this process, with its output in a log.
 * `noteFile` notes it, so that a later start finds it, also after a kill.
 */
export async function spawnDetached(launch: Launch, logFile: string, noteFile?: string) {
  const { command, args, cwd, env, account, hasChannel = false } = launch;
  const log = openSync(logFile, 'a', 0o600);
  const logStart = fstatSync(log).size;
  try {
    const started = await startTracked(() => {
      const stdio = ['ignore', log, log, ...(hasChannel ? (['ipc'] as const) : [])] as const;
      const child = spawn(command, args, { cwd, env, detached: true, stdio: [...stdio], ...account });
      child.unref();
      return child;
    });
    if (noteFile !== undefined) replaceFile(noteFile, started.owner);
    return { ...started, readComplaint: () => readLastComplaint(logFile, logStart) };
  } finally {
    closeSync(log);
  }
}

/** Runs a program to its end. Returns its complaint when it fails, else null. */
export async function runProgram(launch: Launch, logFile: string): Promise<string | null> {
  const { exited, readComplaint } = await spawnDetached(launch, logFile);
  const staying = setInterval(() => {}, 1_000); // the program does not keep this process running
  const exit = await exited.finally(() => clearInterval(staying));
  return exit === 'exit code 0' ? null : readComplaint() || exit;
}

async function stopProcess(owner: string): Promise<void> {
  const pid = Number.parseInt(owner, 10);
  for (const [signal, deadlineMs] of stopSignals) {
    if (!isRunning(owner)) return;
    try {
      process.kill(pid, signal);
      process.kill(pid, 'SIGCONT'); // a server that a test paused handles no signal before it continues
    } catch {
      // It ended meanwhile, or belongs to another user. The wait below decides.
    }
    if (await becomesTrue(() => !isRunning(owner), deadlineMs)) return;
  }
  throw new StartupError(`Process ${pid} does not stop: end it by hand (kill -9 ${pid}).`);
}

/** Returns the pid of the process that a file notes, or null when it does not run. @throws StartupError */
export function findNoted(file: string): number | null {
  const owner = readNote(file);
  return owner !== null && isRunning(owner) ? Number.parseInt(owner, 10) : null;
}

/** Stops the process that a file notes. @throws StartupError also when it does not end */
export async function stopNoted(file: string): Promise<void> {
  const owner = readNote(file);
  if (owner !== null) await stopProcess(owner);
}

/** An unreadable note is no sign that its process has ended: it is a StartupError. */
const readNote = (file: string): string | null =>
  existsSync(file) ? readState(file, /^\d+ \S/, 'find its process (ps -ef), end it (kill)') : null;

/**
 * Waits until all have settled, so that none is still starting when the rest is stopped.
 *
 * @throws the first failure in the order of the list.
 */
export async function allOrFirstFailure<T extends readonly unknown[] | []>(steps: T) {
  await Promise.allSettled(steps);
  return Promise.all(steps);
}

/**
 * Reads a file of state that has this form.
 *
 * @throws StartupError, with what to do before the file is deleted, when it cannot be read or has another form.
 */
export function readState(file: string, form: RegExp, remedy: string): string {
  try {
    const text = readFileSync(file, 'utf8');
    if (form.test(text)) return text;
    throw new Error(`it says ${JSON.stringify(text.slice(0, 40))}`);
  } catch (cause) {
    const message = `${file} cannot be read (${(cause as Error).message}): ${remedy}, delete the file, and try again.`;
    throw new StartupError(message, { cause });
  }
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

/** Replaces a file in one step, so that neither a kill nor a second writer leaves half of it. */
export function replaceFile(file: string, text: string): void {
  const draft = `${file}.${randomUUID()}`;
  writeFileSync(draft, text, { mode: 0o600, flag: 'wx' });
  renameSync(draft, file);
}

/** Returns the time since a `performance.now()` for a progress line, for example `1.8 s`. */
export function secondsSince(startedAt: number): string {
  return `${((performance.now() - startedAt) / 1000).toFixed(1)} s`;
}
