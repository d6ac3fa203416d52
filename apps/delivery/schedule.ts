import { backoffMs } from '#runtime/flow/backoff.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** The waits after each failed attempt: 13 attempts in about 72 hours. */
export const defaultSchedule = '5s,30s,5m,15m,30m,1h,2h,4h,8h,12h,20h,24h';

/** Jitter: up to a tenth more, so that a receiver that recovers does not get everything at once. */
export const jitter = 0.1;

/** Returns the longest total of a schedule's waits, including jitter, in milliseconds. */
export const longestScheduleMs = (delaysMs: readonly number[]): number =>
  delaysMs.reduce((sum, delayMs) => sum + delayMs, 0) * (1 + jitter);

/**
 * Returns the wait after a failed attempt in milliseconds. `failures` came before it; lost attempts
 * may follow the schedule's last, with its last wait. `random` is 0 to 1.
 */
export function waitAfterFailureMs(delaysMs: readonly number[], failures: number, random: number): number {
  const delayMs = delaysMs[Math.min(failures, delaysMs.length - 1)] ?? 0;
  return Math.round(delayMs * (1 + jitter * random));
}

const longestErrorWaitMs = 10 * minuteMs;

/**
 * Returns the wait after an internal error in milliseconds, with jitter. It doubles after each
 * consecutive one (`before` came before it), because one may last for days. `away`: PostgreSQL did
 * not answer, which is often over soon. `random` is 0 to 1.
 */
export function waitAfterInternalErrorMs(kind: 'internal' | 'away', before: number, random: number): number {
  const firstMs = kind === 'away' ? 2_000 : 15_000;
  return Math.round(backoffMs(firstMs, longestErrorWaitMs, before) * (1 + jitter * random));
}

const units: Record<string, number> = { ms: 1, s: 1_000, m: minuteMs, h: hourMs };

/**
 * Parses a schedule such as `1s,2s,5m` (units ms, s, m, h) into milliseconds.
 *
 * @throws RangeError unless it has 1 to 50 positive waits of at most 48 hours.
 */
export function parseSchedule(text: string): number[] {
  const delays = text.split(',').map((part) => {
    const [, amount = '', unit = ''] = /^\s*(\d{1,9})(ms|s|m|h)\s*$/.exec(part) ?? [];
    return Number(amount) * (units[unit] ?? 0);
  });
  if (delays.length > 50 || !delays.every((delayMs) => delayMs > 0 && delayMs <= 48 * hourMs)) {
    throw new RangeError(
      'must be waits separated by commas, for example 5s,30s,5m,1h, each above zero and at most 48h',
    );
  }
  return delays;
}

/** The default schedule in milliseconds. */
export const defaultDelaysMs: readonly number[] = parseSchedule(defaultSchedule);
