import { expect, it } from 'vitest';
import { describeResult, runChaos } from './run.ts';

it('no delivery is lost and no secret leaks while the worker, the relay, Temporal, PostgreSQL and Redis are killed repeatedly', async () => {
  const lines: string[] = [];
  const result = await runChaos({ events: 30, webhooks: 10, seed: 5, report: (line) => lines.push(line) });

  expect(result.problems, lines.join('\n')).toEqual([]);
  console.log(describeResult(result).join('\n'));
  // Otherwise the run proved little: every kind of fault must have happened, and every kind of
  // receiver must have misbehaved.
  expect(Object.values(result.kills)).toEqual([3, 3, 3, 3, 3]);
  expect(result.claims).toBeGreaterThan(0);
  // After each of the 15 kills except PostgreSQL's, and each restart of Temporal, PostgreSQL and
  // Redis. Workers restart by themselves.
  expect(result.readings.map(({ difference }) => difference)).toEqual(Array(12 + 9).fill(0));
  expect(Object.keys(result.figures.causes)).toEqual(
    expect.arrayContaining([
      'accepted',
      'lost',
      'internal_error',
      'response_missing',
      'response_timeout',
      'answered_too_many',
    ]),
  );
  expect(result.figures).toMatchObject({ required: 300, delivered: 270, exhausted: 30, unrecorded: 0 });
  expect(result.workflows).toBeGreaterThanOrEqual(300);
  expect(Object.values(result.searched).every((bytes) => bytes > 0)).toBe(true);
}, 480_000);
