import { expect, it } from 'vitest';
import { backoffMs } from '#runtime/flow/backoff.ts';
import { BoundedMap } from '#runtime/flow/bounded-map.ts';
import { once } from '#runtime/flow/once.ts';

it('a bounded map drops the entry that was set longest ago, and counts a replaced one as new', () => {
  const map = new BoundedMap<string, number>(2);
  map.set('a', 1).set('b', 2).set('a', 3).set('c', 4);
  expect([...map]).toEqual([
    ['a', 3],
    ['c', 4],
  ]);
  map.set('c', 5);
  expect([...map.keys()]).toEqual(['a', 'c']);
});

it('a wait doubles after each failure, up to the longest, however many come', () => {
  expect([0, 1, 2, 3, 4, 5_000].map((failures) => backoffMs(250, 2_000, failures))).toEqual([
    250, 500, 1_000, 2_000, 2_000, 2_000,
  ]);
});

it('an action that may be asked for twice runs once', async () => {
  let runs = 0;
  const action = once(async () => (runs += 1));
  expect(await Promise.all([action(), action()])).toEqual([1, 1]);
  expect(runs).toBe(1);
});
