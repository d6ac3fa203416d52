import { describe, expect, it, vi } from 'vitest';
import { WorkQueue } from '../../apps/operator/controller/work-queue.ts';

describe('the work queue', () => {
  it('works on one key once at a time, and again when it was added meanwhile', async () => {
    const gate = Promise.withResolvers<void>();
    let atOnce = 0;
    let most = 0;
    const runs: string[] = [];
    const queue = new WorkQueue({
      concurrency: 4,
      longestRetryMs: 1_000,
      onError: () => {},
      run: async (key) => {
        runs.push(key);
        atOnce += 1;
        most = Math.max(most, atOnce);
        await gate.promise;
        atOnce -= 1;
      },
    });

    for (let times = 0; times < 3; times += 1) queue.add('a');
    gate.resolve();
    await vi.waitFor(() => expect(runs).toEqual(['a', 'a']), { timeout: 30_000 });
    await queue.stop();

    expect(most).toBe(1);
  });

  it('works on no more keys at once than it may', async () => {
    let atOnce = 0;
    let most = 0;
    let done = 0;
    const queue = new WorkQueue({
      concurrency: 2,
      longestRetryMs: 1_000,
      onError: () => {},
      run: async () => {
        atOnce += 1;
        most = Math.max(most, atOnce);
        await new Promise(setImmediate);
        atOnce -= 1;
        done += 1;
      },
    });

    for (const key of ['a', 'b', 'c', 'd', 'e']) queue.add(key);
    await vi.waitFor(() => expect(done).toBe(5), { timeout: 30_000 });
    await queue.stop();

    expect(most).toBe(2);
  });

  it('waits twice as long after each failure of a key, up to a bound', async () => {
    const waits: number[] = [];
    const queue = new WorkQueue({
      concurrency: 1,
      firstRetryMs: 1,
      longestRetryMs: 4,
      random: () => 0.5,
      onError: (_, __, retryInMs) => waits.push(retryInMs),
      run: () => Promise.reject(new Error('rejected')),
    });

    queue.add('a');
    await vi.waitFor(() => expect(waits.length).toBeGreaterThan(4), { timeout: 30_000 });
    await queue.stop();

    expect(waits.slice(0, 5)).toEqual([1, 2, 4, 4, 4]);
  });

  it('aborts the runs under way when it stops, and waits for them', async () => {
    let hasEnded = false;
    const queue = new WorkQueue({
      concurrency: 1,
      longestRetryMs: 1_000,
      onError: () => {},
      run: async (_, signal) => {
        await new Promise((resolve) => signal.addEventListener('abort', resolve));
        hasEnded = true;
      },
    });
    queue.add('a');

    await queue.stop();

    expect(hasEnded).toBe(true);
  });
});
