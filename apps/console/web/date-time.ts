import { z } from 'zod';
import { momentAt } from '#domain/contract/moment.ts';

/** The value of a `datetime-local` field: a date and time without a zone. */
const dateTimePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/;

/** The field of a query or form that names the zone of typed times. Empty is UTC. */
export const timeZoneField = z.string().max(64).default('').catch('unknown');

/**
 * Returns the zone of a name that browsers give: an IANA name or an offset (`+02:00`), which ICU
 * also writes `GMT+02:00`. Empty is UTC. Null: the zone is unknown here.
 */
export function findTimeZone(name: string): string | null {
  const zone = name.replace(/^GMT(?=[+-]\d\d)/, '') || 'UTC';
  try {
    return new Temporal.ZonedDateTime(0n, zone).timeZoneId;
  } catch {
    return null;
  }
}

/**
 * Parses a date and time in a zone; null when the zone is unknown, or PostgreSQL has no such time.
 *
 * @param edge - of a range. A time that occurs twice, as summer time ends, is the earlier one at the
 * begin and the later one at the end, so that the range loses neither.
 */
export function parseDateTime(text: string, zone: string, edge: 'from' | 'until'): Date | null {
  const timeZone = findTimeZone(zone);
  if (timeZone === null || !dateTimePattern.test(text)) return null;
  try {
    const disambiguation = edge === 'from' ? 'earlier' : 'later';
    return momentAt(Temporal.PlainDateTime.from(text).toZonedDateTime(timeZone, { disambiguation }).epochMilliseconds);
  } catch {
    return null;
  }
}

/** Returns a time in a zone with its offset, to the second: `2026-11-29T15:04:05-05:00`. */
export const formatLocalTime = (at: Date, timeZone: string): string =>
  Temporal.Instant.fromEpochMilliseconds(at.getTime())
    .toZonedDateTimeISO(timeZone)
    .toString({ smallestUnit: 'second', timeZoneName: 'never' });

/** Returns what is wrong with a date and time, as a sentence; null when it can be parsed. */
export function dateTimeProblem(text: string, zone: string): string | null {
  if (findTimeZone(zone) === null) return `The time zone “${zone}” is unknown. Enter the time in UTC.`;
  return parseDateTime(text, zone, 'from') === null ? 'Enter a date and a time.' : null;
}
