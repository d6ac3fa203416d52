import { expect, it } from 'vitest';
import { describeError } from '#runtime/log.ts';

it('the log describes each error of several, without their texts', () => {
  const errors = [new TypeError('hunter2'), Object.assign(new Error('hunter2'), { code: '42501' })];

  const described = describeError(new AggregateError(errors, 'hunter2'));

  expect(described).toMatchObject({ errors: [{ type: 'TypeError' }, { type: 'Error', code: '42501' }] });
  expect(JSON.stringify(described)).not.toContain('hunter2');
});
