import { expect, it } from 'vitest';
import { Pace } from './pace.ts';

it('a load keeps its rate while answers are quick, and takes less of a machine that is slow, but never nothing', () => {
  const pace = new Pace();
  const answers = (count: number, durationMs: number) => {
    for (let made = 0; made < count; made += 1) pace.answered(durationMs);
    return pace.share;
  };
  expect(answers(100, 6)).toBe(1);
  expect(answers(100, 250)).toBeCloseTo(0.1, 2);
  expect(answers(1, 10_000)).toBe(1 / 20);
  expect(answers(200, 6)).toBe(1);
});
