import type { ChildProcess } from 'node:child_process';

const running = new Set<ChildProcess>();

/**
 * Has a child end with this process, whichever way that ends (but SIGKILL). Programs and loads
 * only: servers are stopped in order.
 */
export function endWithUs<C extends ChildProcess>(child: C): C {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

/** Ends every child at once. They hold nothing that is worth keeping. */
export function endChildren(): void {
  for (const child of running) child.kill('SIGKILL');
}

process.on('exit', endChildren);
