import { expect, it } from 'vitest';
import { Pace } from './pace.ts';

it('a load keeps its rate while answers are quick, and takes less of a machine that is slow, but never nothing', () => {
  const pace = new Pace();
  const respond = (count: number, durationMs: number) => {
    for (let made = 0; made < count; made += 1) pace.answered(durationMs);
    return pace.share;
  };
  expect(respond(100, 6)).toBe(1);
  expect(respond(100, 250)).toBeCloseTo(0.1, 2);
  expect(respond(1, 10_000)).toBe(1 / 20);
  expect(respond(200, 6)).toBe(1);
});
