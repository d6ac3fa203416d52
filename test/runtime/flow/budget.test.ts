import { expect, it } from 'vitest';
import { Budget } from '#runtime/flow/budget.ts';

const client = { onEnd: () => {} };

it('waiting holders are admitted in turn, whatever the number of requests of each', async () => {
  const budget = new Budget<'organization'>({
    limits: { organization: 1, process: 1 },
    maxWaiting: { each: 100, all: 100 },
    waitMs: 60_000,
  });
  const order: string[] = [];
  const use = async (organization: string) => {
    const reservation = await budget.reserve({ organization }, 1, client);
    order.push(organization);
    await new Promise(setImmediate);
    reservation.free();
  };
  await Promise.all(['a', 'a', 'a', 'a', 'b', 'b', 'c'].map(use));
  expect(order.join('')).toBe('aabcaba');
  await Promise.all([use('a'), use('a'), use('c'), use('b')]);
  expect(order.slice(7).join('')).toBe('acba');
  expect(budget.state).toEqual({ reserved: 0, waiting: 0 });
});

it('a rejection without a queue names the limit that was reached', async () => {
  const budget = new Budget<'person'>({
    limits: { person: 2, process: 3 },
    maxWaiting: { each: 0, all: 0 },
    waitMs: 0,
  });
  const reserve = async (person: string) => budget.reserve({ person }, 1, client);
  await reserve('ada');
  await reserve('ada');
  await expect(reserve('ada')).rejects.toMatchObject({ level: 'person' });
  await reserve('bo');
  await expect(reserve('bo')).rejects.toMatchObject({ level: 'process' });
  await expect(reserve('cy')).rejects.toMatchObject({ level: 'process' });
});
