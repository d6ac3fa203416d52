import { execFile } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from './redis-server.ts';

const PROCESSES = 8;
const hammer = fileURLToPath(new URL('./hammer.ts', import.meta.url));

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
}, 20_000);
afterAll(() => server.stop());

interface Counts {
  admitted: number;
  rejected: number;
  byPod: number;
}

/** Runs eight processes against one key and adds up their counts. */
async function hammered(keyPrefix: string, limit: number, windowSeconds: number, durationMs: number): Promise<Counts> {
  const args = [hammer, server.url, keyPrefix, String(limit), String(windowSeconds), String(durationMs)];
  const runs = Array.from({ length: PROCESSES }, () => promisify(execFile)(process.execPath, args));
  const total: Counts = { admitted: 0, rejected: 0, byPod: 0 };
  for (const { stdout } of await Promise.all(runs)) {
    const counts = JSON.parse(stdout) as Counts;
    total.admitted += counts.admitted;
    total.rejected += counts.rejected;
    total.byPod += counts.byPod;
  }
  return total;
}

async function storedTimes(key: string): Promise<number[]> {
  const bytes = (await server.look.getBuffer(key)) ?? Buffer.alloc(0);
  return Array.from({ length: bytes.length / 8 }, (_, index) => bytes.readDoubleLE(index * 8));
}

/**
 * Returns all times at which Redis admitted calls of a key while `work` ran, in order. A time stays
 * stored for at least one window, so several reads per window miss none. Calls of one run share
 * their microsecond, so a time counts as often as one read showed it.
 */
async function admittedTimes(key: string, pollEveryMs: number, work: Promise<unknown>): Promise<number[]> {
  const seen = new Map<number, number>();
  let done = false;
  const finished = work.finally(() => {
    done = true;
  });
  for (let last = false; !last; ) {
    last = done;
    const times = await storedTimes(key);
    for (const time of new Set(times)) {
      seen.set(time, Math.max(seen.get(time) ?? 0, times.filter((other) => other === time).length));
    }
    if (!last) await wait(pollEveryMs);
  }
  await finished;
  return [...seen].flatMap(([time, count]) => Array.from({ length: count }, () => time)).sort((a, b) => a - b);
}

describe('eight processes at once on one key', () => {
  it('admit exactly 120 calls in a minute together', async () => {
    const counts = await hammered('minute:', 120, 60, 1_500);
    expect(counts).toMatchObject({ admitted: 120, byPod: 0 });
    expect(counts.rejected).toBeGreaterThan(0);
    expect(await storedTimes('minute:key')).toHaveLength(120);
  }, 180_000);

  it('never admit more calls than the limit in any trailing window by the clock of Redis', async () => {
    const [limit, windowUs] = [120, 3_000_000]; // far longer than a busy machine delays the reads
    const work = hammered('windows:', limit, windowUs / 1_000_000, 11_000);
    const times = await admittedTimes('windows:key', 40, work);
    const counts = await work;
    expect(counts.byPod).toBe(0);
    expect(times).toHaveLength(counts.admitted);
    expect(counts.admitted).toBeGreaterThan(3 * limit);
    for (let call = limit; call < times.length; call++) {
      expect(Number(times[call]) - Number(times[call - limit])).toBeGreaterThan(windowUs);
    }
  }, 180_000);
});
