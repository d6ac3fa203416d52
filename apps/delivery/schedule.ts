import { backoffMs } from '#runtime/flow/backoff.ts';

/** Jitter: up to a tenth more, so that a receiver that recovers does not get everything at once. */
export const jitter = 0.1;

/**
 * Returns the wait after a failed attempt in milliseconds. `failures` came before it; lost attempts
 * may follow the schedule's last, with its last wait. `random` is 0 to 1.
 */
export function waitAfterFailureMs(delaysMs: readonly number[], failures: number, random: number): number {
  const delayMs = delaysMs[Math.min(failures, delaysMs.length - 1)] ?? 0;
  return Math.round(delayMs * (1 + jitter * random));
}

/**
 * SQL of the same wait, in milliseconds, not rounded. The expressions are those of an array of the
 * schedule's delays in ms, of the failures before it, and of a number from 0 to 1.
 */
export const waitAfterFailureSql = (expressions: { delaysMs: string; failures: string; random: string }): string => {
  const { delaysMs, failures, random } = expressions;
  return `(${delaysMs})[least(${failures} + 1, cardinality(${delaysMs}))] * (1 + ${jitter} * ${random})`;
};

const longestErrorWaitMs = 600_000;

/**
 * Returns the wait after an internal error in milliseconds, with jitter. It doubles after each
 * consecutive one (`before` came before it), because one may last for days. `unavailable`: PostgreSQL did
 * not answer, which is often over soon. `random` is 0 to 1.
 */
export function waitAfterInternalErrorMs(kind: 'internal' | 'unavailable', before: number, random: number): number {
  const firstMs = kind === 'unavailable' ? 2_000 : 15_000;
  return Math.round(backoffMs(firstMs, longestErrorWaitMs, before) * (1 + jitter * random));
}
