const utcDay = () => new Date().toISOString().slice(0, 10);

/**
 * Runs an import with `today` and its reads, and returns the result. Runs both again when midnight
 * (UTC) passed meanwhile: outcomes cover the days before today, so they are as expected only on the
 * day of the import.
 */
export async function withinOneDay<T>(importAndRead: () => Promise<T>): Promise<T> {
  for (;;) {
    const day = utcDay();
    const result = await importAndRead();
    if (utcDay() === day) return result;
  }
}
