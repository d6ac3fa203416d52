/** A signal that comes sooner after the first is the same one. */
const repeatedWithinMs = 1_000;

/**
 * Calls `stop` at the first SIGINT, SIGTERM or SIGHUP. A later one ends the process at once, but not
 * one within a second of the first: Ctrl-C reaches a script twice, from the terminal and from npm,
 * which passes it on.
 */
export function onInterruption(stop: (signal: NodeJS.Signals) => void): void {
  let firstAt: number | null = null;
  const handle = (signal: NodeJS.Signals) => {
    if (firstAt === null) {
      firstAt = performance.now();
      stop(signal);
    } else if (performance.now() - firstAt > repeatedWithinMs) process.exit(1);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, handle);
}
