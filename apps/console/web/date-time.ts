/** A moment as a field of type `datetime-local` sends it: without a zone. */
export const dateTimePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?$/;

/** A time zone's name, as browsers know them. */
export const timeZonePattern = /^[\w+/-]{1,64}$/;

/**
 * What a person typed as a moment of their zone; null when it is no moment that PostgreSQL knows. A
 * zone that nobody knows is UTC.
 */
export function parseDateTime(text: string, zone: string): Date | null {
  if (!dateTimePattern.test(text)) return null;
  try {
    return withinYears(
      Temporal.PlainDateTime.from(text)
        .toZonedDateTime(zone || 'UTC')
        .toInstant(),
    );
  } catch {
    return zone === '' || zone === 'UTC' ? null : parseDateTime(text, 'UTC');
  }
}

/**
 * Whether a text in ISO 8601, with its zone, is a moment that PostgreSQL knows: there is no 31
 * February and no year 0.
 */
export function isTimestamp(text: string): boolean {
  try {
    return withinYears(Temporal.Instant.from(text)) !== null;
  } catch {
    return false;
  }
}

/** Null outside the years 1 to 9999 in UTC, beyond which ISO 8601 has other forms. */
function withinYears(instant: Temporal.Instant): Date | null {
  const moment = new Date(instant.epochMilliseconds);
  const year = moment.getUTCFullYear();
  return year >= 1 && year <= 9999 ? moment : null;
}
