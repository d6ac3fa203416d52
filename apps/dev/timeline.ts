/** Runs one part of a start and notes when it began and how long it took. */
export type Timed = <T>(part: string, work: () => Promise<T>) => Promise<T>;

/** Notes where the time of a start goes: `lines` has one for each part that has ended. */
export function createTimeline(): { timed: Timed; lines(): string[] } {
  // Everything before this call is the loading of the program; `performance` counts from its start.
  const parts = [{ name: 'the program itself', fromMs: 0, tookMs: performance.now() }];
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`.padStart(7);
  return {
    async timed(name, work) {
      const fromMs = performance.now();
      const result = await work();
      parts.push({ name, fromMs, tookMs: performance.now() - fromMs });
      return result;
    },
    lines: () =>
      parts
        .toSorted((a, b) => a.fromMs - b.fromMs)
        .map(({ name, fromMs, tookMs }) => `  ${seconds(fromMs)} ${seconds(tookMs)}  ${name}`),
  };
}
