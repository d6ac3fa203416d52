/** The value of a `datetime-local` field: a date and time without a zone. */
const dateTimePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/;

/** A time zone's name, as browsers know them. */
export const timeZonePattern = /^[\w+/-]{1,64}$/;

/**
 * Parses a date and time in a zone; null when PostgreSQL has no such time. An unknown zone counts
 * as UTC.
 *
 * @param edge - of a range. A time that occurs twice, as summer time ends, is the earlier one at the
 * begin and the later one at the end, so that the range loses neither.
 */
export function parseDateTime(text: string, zone: string, edge: 'from' | 'until'): Date | null {
  if (!dateTimePattern.test(text)) return null;
  try {
    return withinYears(
      Temporal.PlainDateTime.from(text)
        .toZonedDateTime(zone || 'UTC', { disambiguation: edge === 'from' ? 'earlier' : 'later' })
        .toInstant(),
    );
  } catch {
    return zone === '' || zone === 'UTC' ? null : parseDateTime(text, 'UTC', edge);
  }
}

/** Returns whether an ISO 8601 text with a zone is a time that PostgreSQL knows: no 31 February. */
export function isTimestamp(text: string): boolean {
  try {
    return withinYears(Temporal.Instant.from(text)) !== null;
  } catch {
    return false;
  }
}

/** Null outside the years 1 to 9999 in UTC, beyond which ISO 8601 has other forms. */
function withinYears(instant: Temporal.Instant): Date | null {
  const date = new Date(instant.epochMilliseconds);
  const year = date.getUTCFullYear();
  return year >= 1 && year <= 9999 ? date : null;
}
