import type { ChildProcess } from 'node:child_process';

const running = new Set<ChildProcess>();

/**
 * Ends a child together with this process, except after SIGKILL. For programs and loads only:
 * servers are stopped in order.
 */
export function endWithUs<C extends ChildProcess>(child: C): C {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** Kills every child. They have no data to keep. */
export function endChildren(): void {
  for (const child of running) child.kill('SIGKILL');
}

process.on('exit', endChildren);
