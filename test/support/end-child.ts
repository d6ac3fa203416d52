import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/** Ends a child. Resolves with its exit code, also when it has ended before; null after a signal. */
export async function endChild(child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }
  return child.exitCode;
}
