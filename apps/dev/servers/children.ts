/** The processes that this one has started, of which an interrupted start leaves none. */
import type { ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

const killAfterMs = 10_000;
const running = new Set<ChildProcess>();
let isStopping = false;

/** Makes every later start of a process fail, so that the steps of a start end soon. */
export function stopLaunching(): void {
  isStopping = true;
}

/**
 * Starts a process and remembers it until it ends.
 *
 * @throws Error after `stopLaunching`.
 */
export function startTracked<Child extends ChildProcess>(start: () => Child): Child {
  if (isStopping) throw new Error('the start was interrupted');
  const child = start();
  running.add(child);
  for (const end of ['exit', 'error']) child.once(end, () => running.delete(child));
  return child;
}

/** Ends the processes that still run, in order by SIGINT and after 10 s by SIGKILL. */
export async function stopProcesses(): Promise<void> {
  stopLaunching();
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    for (const child of running) child.kill(signal);
    const endsAt = performance.now() + killAfterMs;
    while (running.size > 0 && performance.now() < endsAt) await sleep(10);
  }
}
