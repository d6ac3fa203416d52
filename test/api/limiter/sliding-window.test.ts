import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RedisServer, startRedis } from './redis-server.ts';

const file = new URL('../../../apps/runtime/sliding-window.lua', import.meta.url);
const source = readFileSync(file, 'utf8');
/** The same script, with the clock as two more arguments instead of Redis's clock. */
const withClock = source.replace("redis.call('TIME')", '{ARGV[3], ARGV[4]}');
const START_US = 1_767_225_600_000_000;

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis();
}, 20_000);
afterAll(() => server.stop());

interface Reply {
  left: number;
  waitUs: number;
}

/** Calls of several keys at one moment of the given clock, in one run. */
async function callAt(nowUs: number, keys: string[], limit: number, windowUs: number): Promise<Reply[]> {
  const clock = [Math.floor(nowUs / 1_000_000), nowUs % 1_000_000];
  const args = [...keys, limit, windowUs, ...clock];
  const reply = (await server.look.eval(withClock, keys.length, ...args)) as number[];
  return keys.map((_, index) => ({ left: Number(reply[2 * index]), waitUs: Number(reply[2 * index + 1]) }));
}

/**
 * The window in the contract's words, without regard to memory: counts all admitted times again for
 * each call.
 */
function plainModel(limit: number, windowUs: number) {
  const admitted: number[] = [];
  return (nowUs: number): Reply => {
    const counted = admitted.filter((time) => nowUs - time <= windowUs);
    const left = limit - counted.length - 1;
    if (left >= 0) admitted.push(nowUs);
    return { left, waitUs: (counted[0] ?? nowUs) + windowUs - nowUs };
  };
}

async function storedTimes(key: string): Promise<number[]> {
  const bytes = (await server.look.getBuffer(key)) ?? Buffer.alloc(0);
  return Array.from({ length: bytes.length / 8 }, (_, index) => bytes.readDoubleLE(index * 8));
}

describe('sliding-window.lua', () => {
  it('runs unchanged with a test clock, except for the line that reads the time', () => {
    expect(source.split("redis.call('TIME')")).toHaveLength(2);
  });

  it('decides thousands of random arrivals exactly like a plain model, to the microsecond', async () => {
    const windowUs = 1_000;
    const gapUs = fc.oneof(
      fc.nat(3),
      fc.nat(400),
      fc.constantFrom(windowUs - 1, windowUs, windowUs + 1),
      fc.nat(3_000),
    );
    const arrivals = fc.array(fc.record({ gapUs, key: fc.constantFrom('a', 'b') }), { minLength: 1, maxLength: 120 });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 6 }), arrivals, async (limit, calls) => {
        const prefix = `model:${run++}:`;
        const models = { a: plainModel(limit, windowUs), b: plainModel(limit, windowUs) };
        let nowUs = START_US;
        const got: Promise<Reply[]>[] = [];
        const expected: Reply[][] = [];
        for (const { gapUs, key } of calls) {
          nowUs += gapUs;
          got.push(callAt(nowUs, [prefix + key], limit, windowUs));
          expected.push([models[key as 'a' | 'b'](nowUs)]);
        }
        expect(await Promise.all(got)).toEqual(expected);
      }),
      { numRuns: 80 },
    );
  }, 30_000);

  it('rejects the 121st call while the first is exactly 60,000,000 microseconds old, and admits it one microsecond later', async () => {
    for (let call = 0; call < 120; call++) await callAt(START_US + call, ['edge'], 120, 60_000_000);
    expect(await callAt(START_US + 60_000_000, ['edge'], 120, 60_000_000)).toEqual([{ left: -1, waitUs: 0 }]);
    expect(await callAt(START_US + 60_000_001, ['edge'], 120, 60_000_000)).toEqual([{ left: 0, waitUs: 0 }]);
    expect(await callAt(START_US + 60_000_001, ['edge'], 120, 60_000_000)).toEqual([{ left: -1, waitUs: 0 }]);
  });

  it('decides several calls of one run in order, also of the same key', async () => {
    const responses = await callAt(START_US, ['many', 'other', 'many', 'many'], 2, 1_000);
    expect(responses.map((response) => response.left)).toEqual([1, 1, 0, -1]);
  });

  it('writes nothing for a rejected call', async () => {
    await callAt(START_US, ['full'], 1, 60_000_000);
    const before = await server.look.getBuffer('full');
    await server.look.pexpire('full', 30_000);
    await callAt(START_US + 5, ['full'], 1, 60_000_000);
    expect(await server.look.getBuffer('full')).toEqual(before);
    expect(await server.look.pttl('full')).toBeLessThanOrEqual(30_000);
  });

  it('keeps a full key of 120 times within 1,536 bytes of Redis memory', async () => {
    const key = `limit:us:${createHash('sha256').update('a key').digest('base64url')}`;
    for (let call = 0; call < 200; call++) await callAt(START_US + call * 400_000, [key], 120, 60_000_000);
    expect(await storedTimes(key)).toHaveLength(120);
    const bytes = Number(await server.look.memory('USAGE', key));
    console.log(`one full key takes ${bytes} bytes of Redis memory`);
    expect(bytes).toBeLessThanOrEqual(1_536);
  });

  it('lets an idle key expire', async () => {
    await callAt(START_US, ['idle'], 120, 60_000_000);
    const ttlMs = await server.look.pttl('idle');
    expect(ttlMs).toBeGreaterThan(60_000);
    expect(ttlMs).toBeLessThanOrEqual(61_000);
  });

  it('keeps times in order when the clock steps back by an hour, and frees the key at most one window later', async () => {
    const hourUs = 3_600_000_000;
    for (let call = 0; call < 3; call++) await callAt(START_US + call, ['back'], 3, 1_000);
    const steppedUs = START_US - hourUs;
    expect(await callAt(steppedUs, ['back'], 3, 1_000)).toEqual([{ left: -1, waitUs: 998 }]);
    expect(await storedTimes('back')).toEqual([steppedUs - 2, steppedUs - 1, steppedUs]);
    expect(await callAt(steppedUs + 998, ['back'], 3, 1_000)).toEqual([{ left: -1, waitUs: 0 }]);
    expect((await callAt(steppedUs + 999, ['back'], 3, 1_000))[0]?.left).toBe(0);
  });

  it('reports the real wait after the limit was lowered', async () => {
    for (let call = 0; call < 5; call++) await callAt(START_US + call * 100, ['lowered'], 5, 1_000);
    expect(await callAt(START_US + 500, ['lowered'], 2, 1_000)).toEqual([{ left: -1, waitUs: 800 }]);
    expect((await callAt(START_US + 1_301, ['lowered'], 2, 1_000))[0]?.left).toBe(0);
  });
});
