/**
 * Returns the wait before another try in milliseconds: `firstMs`, twice as long after each further
 * failure, `longestMs` at most.
 *
 * @param failures - how many tries in a row have failed before the one that failed last.
 */
export const backoffMs = (firstMs: number, longestMs: number, failures: number): number =>
  Math.min(firstMs * 2 ** Math.max(0, failures), longestMs);
