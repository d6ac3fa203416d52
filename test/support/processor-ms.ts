/**
 * Returns the processor time of this process for work in milliseconds, for ratios between two kinds
 * of work. Waits for a processor do not count. It is the least of some runs: compilation, garbage
 * collection and full caches of the machine only add to a run, and slow work is slow in each.
 */
export async function measureProcessorMs(work: () => unknown, runs = 3): Promise<number> {
  const times: number[] = [];
  for (let n = 0; n < runs; n += 1) {
    const before = process.cpuUsage();
    await work();
    const { user, system } = process.cpuUsage(before);
    times.push((user + system) / 1_000);
  }
  return Math.min(...times);
}
