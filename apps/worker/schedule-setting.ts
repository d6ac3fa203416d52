import { jitter } from '#delivery/schedule.ts';
import { hourMs } from '#domain/contract/durations.ts';

/** The waits after each failed attempt: 13 attempts in about 72 hours. */
export const defaultSchedule = '5s,30s,5m,15m,30m,1h,2h,4h,8h,12h,20h,24h';

const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: hourMs };
const longestWaitMs = 48 * hourMs;

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
  if (delays.length > 50 || !delays.every((delayMs) => delayMs > 0 && delayMs <= longestWaitMs)) {
    throw new RangeError(
      'must be waits separated by commas, for example 5s,30s,5m,1h, each above zero and at most 48h',
    );
  }
  return delays;
}

export const defaultDelaysMs: readonly number[] = parseSchedule(defaultSchedule);

/** Returns the longest total of a schedule's waits, including jitter, in milliseconds. */
export const longestScheduleMs = (delaysMs: readonly number[]): number =>
  delaysMs.reduce((sum, delayMs) => sum + delayMs, 0) * (1 + jitter);
