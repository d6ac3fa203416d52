/**
 * One of several processes that call the limiter with one key:
 * `node hammer.ts <redisUrl> <keyPrefix> <limit> <windowSeconds> <durationMs>`. Eight loops call
 * until the duration has passed. Then the process prints `{"admitted", "rejected", "byPod"}`:
 * numbers of calls.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { parseRedisUrl } from '#runtime/settings/redis.ts';
import { Limiter } from '../../../apps/api/limiter/limiter.ts';
import { waitUntilRedisDecides } from './redis-decides.ts';

const [redisUrl = '', keyPrefix = '', limit, windowSeconds, durationMs] = process.argv.slice(2);
const limiter = new Limiter({
  redis: parseRedisUrl(redisUrl),
  keyPrefix,
  limit: Number(limit),
  windowSeconds: Number(windowSeconds),
  commandTimeoutMs: 10_000, // long, because eight processes share a small machine and only Redis may decide here
});
await limiter.start();
await waitUntilRedisDecides(limiter);

const counts = { admitted: 0, rejected: 0, byPod: 0 };
const endMs = performance.now() + Number(durationMs);
async function loop(): Promise<void> {
  while (performance.now() < endMs) {
    const decision = await limiter.decide('key');
    counts[decision.admitted ? 'admitted' : 'rejected']++;
    if (decision.decidedBy === 'process') counts.byPod++;
    if (!decision.admitted) await wait(1);
  }
}
await Promise.all(Array.from({ length: 8 }, loop));
await limiter.stop();
console.log(JSON.stringify(counts));
