import { setTimeout as wait } from 'node:timers/promises';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { parseRedisUrl } from '#runtime/settings/redis.ts';
import { type LimitDecision, Limiter, type LimiterOptions } from '../../../apps/api/limiter/limiter.ts';
import { waitUntilRedisDecides } from './redis-decides.ts';
import { type RedisServer, startRedis } from './redis-server.ts';

let server: RedisServer;
let prefixes = 0;
const open: Limiter[] = [];

beforeAll(async () => {
  server = await startRedis();
}, 20_000);
afterAll(() => server.stop());
afterEach(async () => {
  for (const limiter of open.splice(0)) await limiter.stop();
});

/**
 * Starts a limiter with a unique key prefix in Redis. The long timeout prevents a busy machine from
 * looking like a lost Redis.
 */
async function startLimiter(
  options: Partial<LimiterOptions> & { limit: number; windowSeconds: number },
): Promise<Limiter> {
  const limiter = new Limiter({
    redis: parseRedisUrl(server.url),
    keyPrefix: `test:${prefixes++}:`,
    commandTimeoutMs: 5_000,
    ...options,
  });
  open.push(limiter);
  await limiter.start();
  if (options.redis !== null) await waitUntilRedisDecides(limiter);
  return limiter;
}

/**
 * A call with the times (ms) before it was made and after it was answered. Redis counted it between
 * them.
 */
interface Timed {
  decision: LimitDecision;
  fromMs: number;
  toMs: number;
}
async function timed(limiter: Limiter, fingerprint = 'key'): Promise<Timed> {
  const fromMs = performance.now();
  const decision = await limiter.decide(fingerprint);
  return { decision, fromMs, toMs: performance.now() };
}

async function untilRejected(limiter: Limiter, pauseMs: number): Promise<LimitDecision> {
  for (;;) {
    const decision = await limiter.decide('key');
    if (!decision.admitted) return decision;
    await wait(pauseMs);
  }
}

/**
 * Asserts what holds for any times between `fromMs` and `toMs`: no window certainly contains more
 * than `limit` admitted calls, and no call was rejected when fewer than `limit` calls can have been
 * in its window.
 */
function expectExact(calls: Timed[], limit: number, windowMs: number): void {
  const admitted = calls.filter((call) => call.decision.admitted);
  for (const call of calls) {
    const surely = admitted.filter((other) => other.fromMs >= call.toMs - windowMs && other.toMs <= call.fromMs);
    const perhaps = admitted.filter(
      (other) => other !== call && other.toMs >= call.fromMs - windowMs && other.fromMs <= call.toMs,
    );
    if (call.decision.admitted) expect(surely.length).toBeLessThan(limit);
    else expect(perhaps.length).toBeGreaterThanOrEqual(limit);
  }
}

describe('the limiter with Redis', () => {
  it('admits 120 of 200 parallel calls, counts down, and rejects the others within the minute', async () => {
    const limiter = await startLimiter({ limit: 120, windowSeconds: 60 });
    const decisions = await Promise.all(Array.from({ length: 200 }, () => limiter.decide('key')));
    const admitted = decisions.filter((decision) => decision.admitted);
    expect(admitted.map((decision) => decision.left)).toEqual(Array.from({ length: 120 }, (_, call) => 119 - call));
    for (const decision of decisions) expect(decision).toMatchObject({ decidedBy: 'redis', resetSeconds: 60 });
    expect(decisions.slice(120).every((decision) => !decision.admitted && decision.left === 0)).toBe(true);
  });

  it('asks Redis again after a rejection, and counts each key separately', async () => {
    const limiter = await startLimiter({ limit: 3, windowSeconds: 60 });
    for (let call = 0; call < 4; call++) await limiter.decide('key');
    expect(await limiter.decide('key')).toEqual({ admitted: false, left: 0, resetSeconds: 60, decidedBy: 'redis' });
    expect(await limiter.decide('other')).toEqual({ admitted: true, left: 2, resetSeconds: 60, decidedBy: 'redis' });
  });

  it('stores the same compact fingerprint for bytes and for text', async () => {
    const limiter = await startLimiter({ limit: 3, windowSeconds: 60, keyPrefix: 'limit:us:' });
    const fingerprint = Buffer.alloc(32, 255);
    await limiter.decide(fingerprint);
    expect((await limiter.decide(fingerprint.toString('base64url'))).left).toBe(1);
    expect(await server.look.exists(`limit:us:${fingerprint.toString('base64url')}`)).toBe(1);
  });

  it('is exact for random arrivals at two pods that share a key', async () => {
    const [limit, windowMs] = [5, 200];
    const gaps = fc.array(fc.oneof(fc.constant(0), fc.nat(8), fc.nat(60), fc.integer({ min: 195, max: 206 })), {
      minLength: 20,
      maxLength: 60,
    });
    const callWith = async (gapsMs: number[]) => {
      const shared = { limit, windowSeconds: windowMs / 1_000, keyPrefix: `arrivals:${prefixes++}:` };
      const limiters = [await startLimiter(shared), await startLimiter(shared)];
      const calls: Promise<Timed>[] = [];
      for (const [index, gapMs] of gapsMs.entries()) {
        if (gapMs > 0) await wait(gapMs);
        calls.push(timed(limiters[index % 2] as Limiter));
      }
      expectExact(await Promise.all(calls), limit, windowMs);
    };
    // Five keys at once: each mostly waits.
    const ofKeys = fc.array(gaps, { minLength: 5, maxLength: 5 });
    const property = fc.asyncProperty(ofKeys, async (all) => void (await Promise.all(all.map(callWith))));
    await fc.assert(property, { numRuns: 1, endOnFailure: true });
  }, 30_000);

  it('admits a single caller that waits for resetSeconds after a rejection', async () => {
    const lone = async (windowSeconds: number, pauseMs: number) => {
      const limiter = await startLimiter({ limit: 4, windowSeconds });
      for (const asksAgain of [false, true, false]) {
        const first = await untilRejected(limiter, pauseMs);
        const rejected = asksAgain ? await limiter.decide('key') : first; // rejected calls meanwhile change nothing
        expect(rejected).toMatchObject({ admitted: false, decidedBy: 'redis' });
        await wait(rejected.resetSeconds * 1_000 + 1); // Node's timers may fire a fraction of a millisecond early
        expect(await limiter.decide('key')).toMatchObject({ admitted: true });
      }
    };
    await Promise.all([lone(1, 0), lone(1, 30), lone(1.01, 5), lone(0.5, 40), lone(0.999, 1), lone(1.5, 200)]);
  }, 30_000);
});

describe('the limiter without Redis', () => {
  it('counts in the process, reports it once, and keeps the announced wait on its own clock', async () => {
    const modeChanges: string[] = [];
    let nowMs = 0;
    const limiter = await startLimiter({
      redis: null,
      limit: 120,
      windowSeconds: 60,
      now: () => nowMs,
      onModeChange: (mode, reason) => modeChanges.push(`${mode}: ${reason}`),
    });
    expect(modeChanges).toEqual(['process: no Redis is configured']);
    for (let call = 0; call < 120; call++) {
      expect(await limiter.decide('key')).toMatchObject({ admitted: true, left: 119 - call, decidedBy: 'process' });
      nowMs += 10;
    }
    const rejected = await limiter.decide('key');
    expect(rejected).toEqual({ admitted: false, left: 0, resetSeconds: 59, decidedBy: 'process' });
    nowMs += rejected.resetSeconds * 1_000;
    expect(await limiter.decide('key')).toMatchObject({ admitted: true });
  });

  it('can be stopped before it is started, and twice', async () => {
    const limiter = new Limiter({
      redis: parseRedisUrl(server.url),
      limit: 1,
      windowSeconds: 60,
      keyPrefix: 'stop:',
    });
    await limiter.stop();
    await limiter.stop();
    expect(await limiter.decide('key')).toMatchObject({ admitted: true, decidedBy: 'process' });
    expect(await limiter.decide('key')).toMatchObject({ admitted: false, decidedBy: 'process' });
  });
});
