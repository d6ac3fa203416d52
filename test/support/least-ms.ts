/** Returns the shortest of three runs of work in milliseconds, for ratios between two kinds of work. */
export async function measureLeastMs(work: () => unknown): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < 3; n += 1) {
    const startedAt = performance.now();
    await work();
    times.push(performance.now() - startedAt);
  }
  return Math.min(...times);
}
