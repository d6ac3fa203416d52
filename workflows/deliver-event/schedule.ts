import { postDeadlineMs } from '#delivery/times.ts';
import type { SlotQueue } from '#domain/db/statements/attempts.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** The waits after each failed attempt: 13 attempts in about 72 hours. */
export const defaultSchedule = '5s,30s,5m,15m,30m,1h,2h,4h,8h,12h,20h,24h';

/** Jitter: up to a tenth more, so that a receiver that recovers does not get everything at once. */
export const jitter = 0.1;

/** Returns the longest total of a schedule's waits, including jitter, in milliseconds. */
export const longestScheduleMs = (delaysMs: readonly number[]): number =>
  delaysMs.reduce((sum, delayMs) => sum + delayMs, 0) * (1 + jitter);

const internalErrorWaitMs = { first: 15_000, most: 10 * minuteMs };

/**
 * Returns the wait after an internal error in milliseconds: 15 s, doubled after each consecutive
 * one, at most 10 minutes, with jitter. An error may last for days, and each attempt is a row and a
 * dozen events of history. `before` errors were before it; `random` is 0 to 1.
 */
export function waitAfterInternalErrorMs(before: number, random: number): number {
  const waitMs = Math.min(internalErrorWaitMs.first * 2 ** before, internalErrorWaitMs.most);
  return Math.round(waitMs * (1 + jitter * random));
}

const slotWaitMs = { least: 1_000, most: minuteMs };
/** How long a hanging receiver holds a concurrency slot, with reads and writes around the post. */
const hungAttemptMs = postDeadlineMs + 1_000;

/**
 * Returns the wait of a delivery that found no free concurrency slot, in milliseconds: one second
 * while attempts have just begun, because they may end at once. After that the receiver counts as
 * hanging, and the delivery is tried after those before it, within a minute. A request for a slot
 * costs Temporal as much as an attempt: 20 deliveries that asked every second took a third of a
 * core. `queue` is null when it is not known.
 */
export function waitForSlotMs(queue: SlotQueue | null): number {
  const { least, most } = slotWaitMs;
  const underWayMs = queue?.underWayMs ?? 0;
  if (queue === null || underWayMs < least) return least;
  const attemptsBefore = 1 + Math.floor(queue.ahead / queue.slots);
  return Math.round(Math.min(Math.max(attemptsBefore * hungAttemptMs - underWayMs, least), most));
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
