import { AsyncLocalStorage } from 'node:async_hooks';

const signals = new AsyncLocalStorage<AbortSignal>();

/**
 * Runs work whose statements and requests are not needed after the signal: those that run are ended,
 * and no further one begins. Then the work fails with the signal's reason, or because a connection was
 * closed.
 */
export const runWithSignal = <Result>(signal: AbortSignal, work: () => Result): Result => signals.run(signal, work);

/** Returns the signal of the work that runs; undefined: it has none. */
export const findSignal = (): AbortSignal | undefined => signals.getStore();
