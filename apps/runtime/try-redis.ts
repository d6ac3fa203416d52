import type { Redis } from 'ioredis';
import type { Region } from '#domain/contract/regions.ts';
import { limiterKeyPrefix, RedisWindow } from './redis-window.ts';
import type { RedisServer } from './settings/redis.ts';

/**
 * Runs the script once, as the calls of the API do, over connections of its own, and then `work`.
 *
 * @param timeoutMs - for the connection, and for the response.
 * @throws WrongRedisError
 */
export async function tryRedisWindow<T>(
  options: { server: RedisServer; region: Region; timeoutMs: number },
  work: (primaries: readonly Redis[]) => Promise<T>,
): Promise<T> {
  const { server, region, timeoutMs } = options;
  const window = new RedisWindow({
    server: () => server,
    keyPrefix: limiterKeyPrefix(region),
    limit: 1,
    windowUs: 1,
    timeoutMs,
    connectTimeoutMs: timeoutMs,
  });
  try {
    await window.open();
    await window.probe();
    return await work(window.primaries);
  } finally {
    window.close();
  }
}
