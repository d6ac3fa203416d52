import { expect, it } from 'vitest';
import { restAfter } from '#delivery/poll.ts';

const longAgo = Number.POSITIVE_INFINITY;

it('a poll rests for 25 ms, and for 5 ms in the second after work was found', () => {
  expect(restAfter([1], longAgo)).toBe(25);
  expect(restAfter([1], 999)).toBe(5);
});

it('polls that all take long rest for five times as long as the shortest, half a second at most', () => {
  expect(restAfter([40], longAgo)).toBe(200);
  expect(restAfter([60, 45, 40, 50], 10)).toBe(200);
  expect(restAfter([1_000, 1_000, 1_000, 1_000], longAgo)).toBe(500);
});

it('a long poll among short ones does not rest longer, so no event waits for it', () => {
  expect(restAfter([1, 30], longAgo)).toBe(25);
  expect(restAfter([40, 30, 1, 50], 10)).toBe(5);
});
