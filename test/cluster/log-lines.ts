/** Parses the JSON lines of a log and skips other lines. */
export function readLines<T>(log: string): T[] {
  return log.split('\n').flatMap((line) => {
    try {
      return line.startsWith('{') ? [JSON.parse(line) as T] : [];
    } catch {
      return [];
    }
  });
}
