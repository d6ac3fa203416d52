/** The processes that this one has started, of which an interrupted start leaves none. */
import { type ChildProcess, type ExecFileOptions, execFile } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

const endSignals = ['SIGINT', 'SIGKILL'] as const;
const killAfterMs = 10_000;

const running = new Map<ChildProcess, Promise<void>>();
let isRefusing = false;

/** Makes every later start of a process fail, so that the steps of a start end soon. */
export function refuseProcesses(): void {
  isRefusing = true;
}

/**
 * Starts a process and remembers it until it ends.
 *
 * @throws Error after `refuseProcesses`.
 */
export function startTracked<Child extends ChildProcess>(start: () => Child): Child {
  if (isRefusing) throw new Error('the start was interrupted');
  const child = start();
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  running.set(
    child,
    ended.then(() => void running.delete(child)),
  );
  return child;
}

/**
 * Runs a program to its end.
 *
 * @throws the error of `execFile`, with `stderr`, when the program fails.
 */
export async function runProgram(
  command: string,
  args: string[],
  options: ExecFileOptions & { env: Record<string, string> },
): Promise<void> {
  let ended: Promise<unknown> = Promise.resolve();
  startTracked(() => {
    const run = promisify(execFile)(command, args, options);
    ended = run;
    return run.child;
  });
  await ended;
}

/** Ends the processes that still run, in order by SIGINT and after 10 s by SIGKILL. */
export async function stopProcesses(): Promise<void> {
  refuseProcesses();
  for (const signal of endSignals) {
    if (running.size === 0) return;
    for (const child of running.keys()) child.kill(signal);
    const ended = new AbortController();
    const late = sleep(killAfterMs, undefined, { signal: ended.signal }).catch(() => {});
    await Promise.race([Promise.all(running.values()), late]);
    ended.abort();
  }
}
