/** How many large bodies are read and sent at once: of a key, of an organization and of a process. */
import { expect, it } from 'vitest';
import { newResponse, setupReader } from './setup-reader.ts';

it.each([
  { of: 'one key', admitted: 24, keyCounts: [1], each: 30 },
  { of: 'three keys of one organization', admitted: 48, keyCounts: [3], each: 20 },
  { of: 'eight keys of four organizations', admitted: 128, keyCounts: [2, 2, 2, 2], each: 20 },
])('of the large responses of $of, $admitted are sent at once, and each that ends admits one', async (attack) => {
  const { keys, read, bodyReader } = await setupReader(attack.keyCounts);
  const sent: (() => void)[] = [];
  const reads = keys.flatMap((key) =>
    Array.from({ length: attack.each }, async () => {
      const response = newResponse();
      await read(key, response, null);
      sent.push(() => response.markEnded());
    }),
  );
  /** Waits until so many were read, all others wait for one of them to end, and nothing else is in progress. */
  const until = async (count: number) => {
    const rest = reads.length - count;
    await expect.poll(() => [sent.length, bodyReader.state.waiting], { timeout: 30_000 }).toEqual([count, rest]);
  };
  await until(attack.admitted);
  for (const ended of [1, 2, 3]) {
    sent[ended]?.();
    await until(attack.admitted + ended);
  }
  for (let n = 0; n < reads.length; n += 1) {
    await expect.poll(() => sent.length, { timeout: 30_000 }).toBeGreaterThan(n);
    sent[n]?.();
  }
  await Promise.all(reads);
  expect(bodyReader.state).toEqual({ smallBytes: 0, largeBytes: 0, waiting: 0 });
});
