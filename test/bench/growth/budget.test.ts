/** The budgets of tasks whose tables grow. */
import { expect, it } from 'vitest';
import { keepsBudget } from './tasks.ts';

it.each([
  ['the ratio to the smallest region', { ratio: 1.2 }, 12, 12.1],
  ['an absolute bound', { ms: 50 }, 50, 50.1],
])('a task keeps its budget up to %s, and not above', (_, budget, most, above) => {
  expect(keepsBudget(budget, most, 10)).toBe(true);
  expect(keepsBudget(budget, above, 10)).toBe(false);
});
