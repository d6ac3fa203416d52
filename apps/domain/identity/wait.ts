import { firstWaitSeconds, longestWaitSeconds } from './limits.ts';

/** A limit of failures, with the failures that count towards it. */
interface FailureLimit {
  /** Failures from which each attempt waits for the one before it. */
  limit: number;
  /** How long a failure counts. */
  windowMs: number;
  /** Times (ms) of the failures within the window, oldest first. */
  failuresMs: readonly number[];
}

/**
 * Returns the first time (ms) from `nowMs` on at which a limit admits an attempt, if nothing else
 * fails.
 *
 * That is when the wait since the last failure has ended, or earlier, when failures have left the
 * window: then the wait is shorter or the limit no longer reached. From then on the limit continues
 * to admit.
 */
export function findAdmission({ limit, windowMs, failuresMs }: FailureLimit, nowMs: number): number {
  const last = failuresMs.at(-1) ?? 0;
  let fromMs = nowMs;
  for (const [left, failureMs] of failuresMs.entries()) {
    const counted = failuresMs.length - left;
    if (counted < limit) break;
    const leavesMs = failureMs + windowMs;
    const admitsMs = Math.max(fromMs, last + waitMs(counted - limit));
    if (admitsMs < leavesMs) return admitsMs;
    fromMs = Math.max(fromMs, leavesMs);
  }
  return fromMs;
}

/** The first wait, doubled by each failure above the limit, up to the longest. */
const waitMs = (above: number) => Math.min(firstWaitSeconds * 2 ** Math.min(above, 20), longestWaitSeconds) * 1000;
