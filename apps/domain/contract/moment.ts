/**
 * Returns the time of an ISO 8601 text with its offset. Null when there is no such time (31 February), or its year
 * in UTC is not 1 to 9999: ISO 8601 writes others in another form, which PostgreSQL does not read.
 */
export function parseMoment(text: string): Date | null {
  try {
    return momentAt(Temporal.Instant.from(text).epochMilliseconds);
  } catch {
    return null;
  }
}

/** Returns the time of a Unix time in ms; null outside the same years. */
export function momentAt(milliseconds: number): Date | null {
  const date = new Date(milliseconds);
  const year = date.getUTCFullYear(); // NaN beyond what a Date has
  return year >= 1 && year <= 9999 ? date : null;
}
