import fc from 'fast-check';
import { expect, it } from 'vitest';
import { PodWindows } from '../../../apps/api/limiter/limiter.ts';

const windowMs = 1_000;
const gapMs = fc.oneof(fc.nat(2), fc.nat(300), fc.constantFrom(windowMs, windowMs + 1), fc.nat(2_500));

it('a pod’s window counts and waits exactly like a plain list of times, of which a full one drops the oldest', () => {
  const steps = fc.array(gapMs, { maxLength: 150 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), steps, (limit, gaps) => {
      const windows = new PodWindows(limit, windowMs);
      let times: number[] = [];
      let nowMs = 0;
      for (const gap of gaps) {
        nowMs += gap;
        times = times.filter((time) => nowMs - time <= windowMs);
        expect(windows.left('key', nowMs)).toBe(limit - times.length);
        times = [...times, nowMs].slice(-limit);
        windows.count('key', nowMs);
        expect(windows.left('key', nowMs)).toBe(limit - times.length);
        const afterMs = windows.waitMs('key', nowMs);
        expect(afterMs).toBe((times[0] ?? 0) + windowMs - nowMs);
      }
    }),
    { numRuns: 500 },
  );
});

it('a pod’s windows drop the keys that are no longer in use, and no others', () => {
  const windows = new PodWindows(3, windowMs);
  for (let key = 0; key < 5_000; key++) windows.count(`once ${key}`, key / 10);
  expect(windows.size).toBe(5_000);
  for (let nowMs = 500; nowMs <= 3_000; nowMs += 500) windows.count('busy', nowMs);
  expect(windows.size).toBe(1);
  expect(windows.left('busy', 3_000)).toBe(0);
});
