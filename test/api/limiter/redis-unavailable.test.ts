import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { parseRedisUrl } from '#runtime/settings/redis.ts';
import { startTcpProxy } from '#test/tcp-proxy.ts';
import { type LimitDecision, Limiter, type LimiterOptions } from '../../../apps/api/limiter/limiter.ts';
import { getFreePort } from '../../../apps/dev/servers/ports.ts';
import { waitUntilRedisDecides } from './redis-decides.ts';
import { type RedisServer, startRedis } from './redis-server.ts';

/**
 * Longer than in production, because the machine of a test run is busy. Only the Redis that the
 * test stops may cause a timeout.
 */
const TIMEOUT_MS = 500;
/**
 * Maximum duration of a call without Redis: far above the timeout, for a busy machine, and far
 * below a hang.
 */
const SETTLED_WITHIN_MS = 3_000;

let server: RedisServer;
let limiter: Limiter | undefined;
let modeChanges: string[] = [];

beforeEach(async () => {
  server = await startRedis();
  modeChanges = [];
}, 20_000);
afterEach(async () => {
  await limiter?.stop();
  await server.stop();
});

/** Starts the limiter. Unless `isThere` is false, it resolves when Redis decides; `modeChanges` are those after it. */
async function started({ isThere = true, ...options }: Partial<LimiterOptions> & { isThere?: boolean } = {}) {
  limiter = new Limiter({
    redis: parseRedisUrl(server.url),
    limit: 120,
    windowSeconds: 60,
    keyPrefix: 'limit:us:',
    commandTimeoutMs: TIMEOUT_MS,
    onModeChange: (mode, reason) => modeChanges.push(`${mode}: ${reason}`),
    ...options,
  });
  await limiter.start();
  if (isThere) {
    await waitUntilRedisDecides(limiter);
    modeChanges = [];
  }
  return limiter;
}

/** Makes several calls at once; throws when they are not all answered in time. */
async function burst(limiter: Limiter, calls: number, key = 'key'): Promise<LimitDecision[]> {
  const decisions = Promise.all(Array.from({ length: calls }, () => limiter.decide(key)));
  const hung = wait(SETTLED_WITHIN_MS, null, { ref: false });
  const settled = await Promise.race([decisions, hung]);
  if (settled === null) throw new Error(`A call hung: not all were answered within ${SETTLED_WITHIN_MS} ms`);
  return settled;
}
const admitted = (decisions: LimitDecision[]) => decisions.filter((decision) => decision.admitted).length;
const patient = { timeout: 10_000, interval: 10 };
const mode = (limiter: Limiter, wanted: string) => expect.poll(() => limiter.mode, patient).toBe(wanted);

describe('the limiter while Redis is unavailable', () => {
  it('admits exactly 120 calls through a pause of Redis (SIGSTOP), and then Redis decides again', async () => {
    const limiter = await started();
    expect(admitted(await burst(limiter, 50))).toBe(50);
    server.pause();
    expect(admitted(await burst(limiter, 200))).toBe(70);
    expect(limiter.mode).toBe('process');
    expect((await burst(limiter, 1, 'other'))[0]).toMatchObject({ admitted: true, left: 119, decidedBy: 'process' });
    server.resume();
    await mode(limiter, 'redis');
    expect(admitted(await burst(limiter, 200))).toBe(0);
    expect(admitted(await burst(limiter, 200, 'other'))).toBe(119);
    expect((await burst(limiter, 1, 'third'))[0]).toMatchObject({ admitted: true, left: 119, decidedBy: 'redis' });
    expect(modeChanges).toEqual([
      expect.stringMatching(/^process: Redis did not answer within/),
      'redis: Redis answers',
    ]);
  }, 30_000);

  it('does not wait for Redis again after one missed reply', async () => {
    const limiter = await started();
    server.pause();
    await burst(limiter, 1);
    expect(limiter.mode).toBe('process');
    let settled = false;
    void limiter.decide('key').then(() => {
      settled = true;
    });
    await Promise.resolve(); // decided without any timer or socket
    await Promise.resolve();
    expect(settled).toBe(true);
    server.resume();
  }, 30_000);

  it('admits a call one timeout after the announced wait when the call was rejected during a pause of Redis', async () => {
    const limiter = await started({ limit: 4, windowSeconds: 2 });
    server.pause();
    const decisions = await burst(limiter, 6);
    expect(admitted(decisions)).toBe(4);
    const rejected = decisions.at(-1) as LimitDecision;
    const waited = wait(rejected.resetSeconds * 1_000 + TIMEOUT_MS);
    server.resume();
    await mode(limiter, 'redis');
    await waited;
    expect((await burst(limiter, 1))[0]).toMatchObject({ admitted: true, decidedBy: 'redis' });
  }, 30_000);

  it('admits exactly 120 calls when Redis is killed and comes back empty', async () => {
    const limiter = await started();
    expect(admitted(await burst(limiter, 50))).toBe(50);
    await server.kill();
    await mode(limiter, 'process');
    expect(admitted(await burst(limiter, 30))).toBe(30);
    await server.start();
    await mode(limiter, 'redis');
    expect(await server.look.exists('limit:us:key')).toBe(0);
    expect((await burst(limiter, 1))[0]).toMatchObject({ admitted: true, left: 39, decidedBy: 'redis' });
    expect(admitted(await burst(limiter, 200))).toBe(39);
  }, 30_000);

  it('decides the calls that wait when Redis is killed, and never admits more than the limit', async () => {
    const limit = 5_000;
    const limiter = await started({ limit });
    let count = 0;
    const loop = async () => {
      while (count < limit) {
        if ((await limiter.decide('key')).admitted) count++;
        await wait(1);
      }
    };
    const loops = Promise.all(Array.from({ length: 32 }, loop));
    await expect.poll(() => count, patient).toBeGreaterThan(100);
    await server.kill();
    await loops;
    expect(limiter.mode).toBe('process');
    expect(count).toBe(limit);
    expect(admitted(await burst(limiter, 200))).toBe(0);
  }, 30_000);

  it('asks Redis and the pod for one window after Redis is back, and then Redis alone', async () => {
    const limiter = await started({ limit: 3, windowSeconds: 1 });
    server.pause();
    await burst(limiter, 3);
    server.resume();
    await mode(limiter, 'redis');
    const back = performance.now();
    await expect.poll(() => performance.now() - back, patient).toBeGreaterThan(1_000);
    expect((await burst(limiter, 1))[0]).toMatchObject({ admitted: true, decidedBy: 'redis', left: 2 });
    await server.look.del('limit:us:key');
    expect((await burst(limiter, 4)).map((decision) => decision.admitted)).toEqual([true, true, true, false]);
  }, 30_000);

  it('admits at most the limit in any window for each pod, through random losses and returns of Redis', async () => {
    const [limit, windowMs] = [5, 600];
    const admittedMs: { fromMs: number; toMs: number }[] = [];
    const limiter = await started({ limit, windowSeconds: windowMs / 1_000, commandTimeoutMs: 60 });
    let isOver = false;
    const call = async () => {
      const fromMs = performance.now();
      const { admitted } = await limiter.decide('key');
      if (admitted) admittedMs.push({ fromMs, toMs: performance.now() });
    };
    const callers = Array.from({ length: 4 }, async () => {
      while (!isOver) {
        await call();
        await wait(Math.random() * 20);
      }
    });
    for (let change = 0; change < 12; change++) {
      server.pause();
      await mode(limiter, 'process');
      await wait(Math.random() * 300);
      server.resume();
      await mode(limiter, 'redis');
      await wait(Math.random() * 500);
    }
    isOver = true;
    await Promise.all(callers);
    expect(modeChanges.length).toBeGreaterThanOrEqual(24);
    expect(admittedMs.length).toBeGreaterThan(2 * limit);
    for (const last of admittedMs) {
      const surely = admittedMs.filter(({ fromMs, toMs }) => fromMs > last.toMs - windowMs && toMs <= last.toMs);
      expect(surely.length).toBeLessThanOrEqual(limit);
    }
  }, 60_000);

  it('starts without Redis, logs the reason, and uses Redis once it is there', async () => {
    await server.kill();
    const limiter = await started({ isThere: false });
    expect(limiter.mode).toBe('process');
    expect(modeChanges).toEqual([expect.stringMatching(/^process: connect ECONNREFUSED/)]);
    expect(admitted(await burst(limiter, 200))).toBe(120);
    await server.start();
    await mode(limiter, 'redis');
    expect(admitted(await burst(limiter, 200))).toBe(0);
  }, 30_000);

  it('starts within its deadline while Redis is paused, and uses Redis when it resumes', async () => {
    server.pause();
    const limiter = await started({ isThere: false });
    expect(limiter.mode).toBe('process');
    expect(admitted(await burst(limiter, 200))).toBe(120);
    server.resume();
    await mode(limiter, 'redis');
  }, 30_000);

  it('counts in the pod while Redis rejects writes for lack of memory, and while Redis is a replica', async () => {
    const limiter = await started();
    await burst(limiter, 20);
    await server.look.config('SET', 'maxmemory', '1');
    await mode(limiter, 'process');
    expect(modeChanges.at(-1)).toMatch(/^process: OOM /);
    expect(admitted(await burst(limiter, 30))).toBe(30);
    await server.look.config('SET', 'maxmemory', '0');
    await mode(limiter, 'redis');

    await server.look.replicaof('127.0.0.1', await getFreePort());
    await mode(limiter, 'process');
    expect(modeChanges.at(-1)).toMatch(/^process: (READONLY|MASTERDOWN) /);
    expect(admitted(await burst(limiter, 30))).toBe(30);
    await server.look.replicaof('NO', 'ONE');
    await mode(limiter, 'redis');
    expect(admitted(await burst(limiter, 200))).toBe(40);
  }, 30_000);

  it('leaves a Redis that became a replica of another, and asks the new primary at the same address', async () => {
    const address = parseRedisUrl(server.url);
    const proxy = await startTcpProxy(address);
    const limiter = await started({ redis: { ...address, port: proxy.port } });
    await burst(limiter, 20);
    const primary = await startRedis();
    onTestFinished(() => primary.stop());
    const { port } = parseRedisUrl(primary.url);
    proxy.redirect(port); // open connections stay
    await server.look.replicaof('127.0.0.1', port);
    await mode(limiter, 'process');
    await mode(limiter, 'redis');
    expect(admitted(await burst(limiter, 200))).toBe(100);
    expect(await primary.look.exists('limit:us:key')).toBe(1);
  }, 30_000);

  it('continues with Redis when Redis has lost the script', async () => {
    const limiter = await started();
    await burst(limiter, 20);
    await server.look.script('FLUSH');
    expect((await burst(limiter, 1))[0]).toMatchObject({ admitted: true, left: 99, decidedBy: 'redis' });
    expect(limiter.mode).toBe('redis');
  }, 30_000);

  it('stops while Redis is paused, and decides the calls that wait', async () => {
    const limiter = await started();
    server.pause();
    const waiting = burst(limiter, 10);
    await limiter.stop();
    expect(admitted(await waiting)).toBe(10);
  }, 30_000);
});
