import { describe, expect, it } from 'vitest';
import { startWith } from './started.ts';

describe('what is started together', () => {
  it('is stopped in reverse order, also what was still starting when the rest stopped', async () => {
    const stops: string[] = [];
    const started = new AsyncDisposableStack();
    const server = (name: string) => ({ stop: async () => void stops.push(name) });
    await startWith(started, async () => server('first'));
    const { promise, resolve } = Promise.withResolvers<ReturnType<typeof server>>();
    const second = startWith(started, () => promise);
    const disposed = started.disposeAsync();
    resolve(server('second'));
    await Promise.all([second, disposed]);
    expect(stops).toEqual(['second', 'first']);
  });

  it('takes what fails to start as stopped', async () => {
    const started = new AsyncDisposableStack();
    await expect(startWith(started, () => Promise.reject(new Error('no port')))).rejects.toThrow('no port');
    await started.disposeAsync();
  });

  it('starts nothing when the rest is stopped already', async () => {
    const started = new AsyncDisposableStack();
    await started.disposeAsync();
    let begins = 0;
    const start = async () => {
      begins += 1;
      return null;
    };
    await expect(startWith(started, start)).rejects.toThrow(ReferenceError);
    expect(begins).toBe(0);
  });
});
