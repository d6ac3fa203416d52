/** The limiter with a Redis Cluster and with Redis Sentinel, while a primary is lost and replaced. */
import { setTimeout as wait } from 'node:timers/promises';
import { expect, inject, it, onTestFinished } from 'vitest';
import { parseRedisUrl } from '#runtime/settings/redis.ts';
import { spawnApp } from '#test/child-app.ts';
import { startRedisCluster, startRedisSentinels } from '#test/redis-group.ts';
import { apiEnvironment, setupDatabase } from '#test/setup.ts';
import { allowSockets } from '#test/socket-guard.ts';
import { startTcpProxy } from '#test/tcp-proxy.ts';
import { type LimitDecision, Limiter, type LimiterOptions } from '../../../apps/api/limiter/limiter.ts';
import { waitUntilRedisDecides } from './redis-decides.ts';

const limit = 5;
const patient = { timeout: 60_000, interval: 20 };

/** Starts a limiter. Unless `isThere` is false, it resolves when Redis decides; `modes` are those after it. */
async function startLimiter(redis: LimiterOptions['redis'], { isThere = true } = {}) {
  const modes: string[] = [];
  const wrong: string[] = [];
  const limiter = new Limiter({
    redis,
    limit,
    windowSeconds: 300,
    keyPrefix: 'limit:us:',
    commandTimeoutMs: 5_000, // a busy machine is no lost Redis
    onModeChange: (mode, reason) => modes.push(`${mode}: ${reason}`),
    onWrongRedis: ({ message }) => wrong.push(message),
  });
  onTestFinished(() => limiter.stop());
  await limiter.start();
  if (isThere) {
    await waitUntilRedisDecides(limiter);
    modes.length = 0;
  }
  return { limiter, modes, wrong, isBy: (mode: string) => expect.poll(() => limiter.mode, patient).toBe(mode) };
}

const keys = (name: string) => Array.from({ length: 60 }, (_, index) => `${name}${index}`);
const decideAll = (limiter: Limiter, keys: string[]) => Promise.all(keys.map((key) => limiter.decide(key)));
const count = (decisions: LimitDecision[], by: LimitDecision['decidedBy']) =>
  decisions.filter(({ admitted, decidedBy }) => admitted && decidedBy === by).length;

/** Calls keys of every node until the mode is `redis` again. Returns how often it changed meanwhile. */
async function callThrough(
  { limiter, modes, isBy }: Awaited<ReturnType<typeof startLimiter>>,
  lose: () => Promise<void>,
) {
  const before = modes.length;
  let isOver = false;
  const calls = (async () => {
    for (let round = 0; !isOver; round++) {
      await decideAll(limiter, keys(`through${round}-`));
      await wait(5);
    }
  })();
  await lose();
  await isBy('process');
  await isBy('redis');
  // Keys of every node, also of the one that was replaced.
  await expect
    .poll(async () => count(await decideAll(limiter, keys(`after${Math.random()}-`)), 'redis'), patient)
    .toBe(60);
  isOver = true;
  await calls;
  return modes.slice(before);
}

it('limits exactly with a Redis Cluster, and through the failover of one of its primaries', async () => {
  const cluster = await startRedisCluster();
  const [one, other] = [await startLimiter(parseRedisUrl(cluster.url)), await startLimiter(parseRedisUrl(cluster.url))];
  for (let round = 0; round < limit; round++) {
    const { limiter } = round % 2 === 0 ? one : other;
    expect(count(await decideAll(limiter, keys('shared')), 'redis')).toBe(60);
  }
  for (const { limiter } of [one, other]) expect(count(await decideAll(limiter, keys('shared')), 'redis')).toBe(0);
  expect([one.modes, other.modes]).toEqual([[], []]);
  for (const { look } of [cluster.first, cluster.second, cluster.third]) expect(await look.dbsize()).toBeGreaterThan(0);

  const changes = await callThrough(one, cluster.first.kill);
  expect(changes.length, changes.join('\n')).toBeLessThanOrEqual(4);
  // The replica had the counts.
  expect(count(await decideAll(one.limiter, keys('shared')), 'redis')).toBe(0);
  expect(await cluster.replica.look.role()).toEqual(expect.arrayContaining(['master']));
}, 120_000);

it('takes the new login for each new connection to a node of a cluster', async () => {
  const cluster = await startRedisCluster();
  const primaries = [cluster.first, cluster.second, cluster.third];
  const onEach = (...command: [string, ...string[]]) => Promise.all(primaries.map(({ look }) => look.call(...command)));
  await onEach('acl', 'setuser', 'limiter', 'on', '>old', '~limit:*', '+@all');
  let server = parseRedisUrl(cluster.url.replace('redis://', 'redis://limiter:old@'));
  const one = await startLimiter(() => server);
  expect(count(await decideAll(one.limiter, keys('before')), 'redis')).toBe(60);

  await onEach('acl', 'setuser', 'limiter', '<old', '>new');
  server = parseRedisUrl(cluster.url.replace('redis://', 'redis://limiter:new@'));
  await onEach('client', 'kill', 'user', 'limiter');
  await expect
    .poll(async () => count(await decideAll(one.limiter, keys(`after${Math.random()}-`)), 'redis'), patient)
    .toBe(60);
}, 60_000);

it('limits with the primary that the sentinels name, and with the replica that they promote', async () => {
  const { url, primary, replica } = await startRedisSentinels();
  const one = await startLimiter(parseRedisUrl(url));
  expect(count(await decideAll(one.limiter, keys('before')), 'redis')).toBe(60);
  expect(await primary.look.dbsize()).toBeGreaterThanOrEqual(60);

  const changes = await callThrough(one, primary.kill);
  expect(changes.length, changes.join('\n')).toBeLessThanOrEqual(4);
  expect(await replica.look.exists('limit:us:after')).toBe(0);
  expect(await replica.look.role()).toEqual(expect.arrayContaining(['master']));
}, 120_000);

it('ends an API at its start whose URL of Redis says another kind than it leads to', async () => {
  const { database } = await setupDatabase();
  for (const { port, parameters, sentence } of await startWrongRedis()) {
    const url = `redis://127.0.0.1:${port}${parameters}`;
    const { ending, lines } = await runToItsEnd(apiEnvironment(database, { REDIS_URL: url }));
    expect(ending, url).toEqual({ code: 1, signal: null });
    expect(lines.join('\n')).toContain(`The api did not start: ${sentence}`);
  }
}, 240_000);

it('says what to change, once, when another kind of Redis than the URL says appears after the start', async () => {
  const right = Number(new URL(inject('redisUrl')).port);
  for (const { port, parameters, sentence } of await startWrongRedis()) {
    const proxy = await startTcpProxy({ host: '127.0.0.1', port });
    allowSockets('Redis', `redis://127.0.0.1:${proxy.port}`);
    await proxy.reject();
    const { limiter, modes, wrong, isBy } = await startLimiter(
      parseRedisUrl(`redis://127.0.0.1:${proxy.port}${parameters}`),
      { isThere: false },
    );
    await proxy.resume();
    // A node of a cluster answers for a third of the keys: it must not decide about them.
    await expect
      .poll(async () => {
        await decideAll(limiter, keys(`wrong${Math.random()}-`));
        return wrong;
      }, patient)
      .toEqual([expect.stringContaining(sentence)]);
    expect(modes).toEqual([expect.stringMatching(/^process: /)]);
    if (parameters !== '') continue;
    await proxy.reject();
    proxy.redirect(right);
    await proxy.resume();
    await isBy('redis');
    expect(wrong).toHaveLength(1);
  }
}, 120_000);

/**
 * Runs an API until it ends. One that did not hear from Redis within the second that its start waits
 * serves, and is started again.
 */
async function runToItsEnd(environment: Record<string, string>) {
  for (;;) {
    const { lines, ended, process } = spawnApp('api', environment);
    const isServing = () => lines.some((line) => line.includes('"mode":"process"'));
    while (process.exitCode === null && !isServing()) await wait(20);
    if (!isServing()) return { ending: await ended, lines };
    process.kill('SIGKILL');
  }
}

/** Starts Redis of each kind, and returns the ports of those that a URL with these parameters is wrong for. */
async function startWrongRedis() {
  const [cluster, group] = await Promise.all([startRedisCluster(), startRedisSentinels()]);
  const sentinel = group.sentinels[0]?.port ?? 0;
  const wrong = (port: number, parameters: string, sentence: string) => ({ port, parameters, sentence });
  return [
    wrong(cluster.first.port, '', 'REDIS_URL leads to a node of a Redis Cluster. Add ?cluster=true'),
    wrong(sentinel, '', 'REDIS_URL leads to a Redis Sentinel. Add ?sentinel='),
    wrong(group.primary.port, '?cluster=true', 'REDIS_URL leads to a Redis that is no cluster. Leave out cluster=true'),
    wrong(group.primary.port, '?sentinel=limits', 'REDIS_URL leads to a Redis that is no sentinel'),
    wrong(sentinel, '?sentinel=other', 'REDIS_URL names a primary that its sentinels do not know'),
  ];
}
