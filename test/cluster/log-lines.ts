/** The JSON lines of a log; lines that are none are left out. */
export function readLines<T>(log: string): T[] {
  return log.split('\n').flatMap((line) => {
    try {
      return line.startsWith('{') ? [JSON.parse(line) as T] : [];
    } catch {
      return [];
    }
  });
}
