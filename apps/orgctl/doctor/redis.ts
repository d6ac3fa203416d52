import type { RedisServer } from '#runtime/settings/redis.ts';
import { askRedis, codeOf } from '#runtime/settings/try-connection.ts';
import { checkPeer } from './certificates.ts';
import { checkClock } from './clock.ts';
import { type Finding, findingsOf } from './finding.ts';

const { failed, expectThat } = findingsOf('redis');
const timeoutMs = 5_000;

/** Checks that Redis answers, its version and policy, its clock and its certificate. */
export async function checkRedis(server: RedisServer): Promise<Finding[]> {
  try {
    return await askRedis(server, timeoutMs, async (redis) => {
      const facts = readFacts(await redis.info('server'), await redis.info('memory'));
      const clock = await checkClock('Redis', async () => {
        const [seconds, micros] = await redis.time();
        return Number(seconds) * 1_000 + Number(micros) / 1_000;
      });
      return [...checkRedisSettings(facts), clock, ...checkPeer('the certificate of Redis', redis.stream)];
    });
  } catch (error) {
    return [
      failed(
        `Redis cannot be used at REDIS_URL (${codeOf(error)})`,
        'Start it, correct REDIS_URL, or let its user call INFO and TIME.',
      ),
    ];
  }
}

/** What a server says of itself. */
export interface RedisFacts {
  /** Valkey names the version of Redis that it is compatible with. */
  version: string;
  policy: string;
}

function readFacts(...pages: string[]): RedisFacts {
  const factOf = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(pages.join('\n'))?.[1] ?? 'unknown';
  return { version: factOf('redis_version'), policy: factOf('maxmemory_policy') };
}

export const checkRedisSettings = ({ version, policy }: RedisFacts): Finding[] => [
  expectThat(
    Number.parseInt(version, 10) >= 7,
    `Redis ${version} is supported`,
    `Redis ${version} is too old`,
    'Upgrade it to Redis 7 or Valkey.',
  ),
  expectThat(
    policy === 'noeviction',
    'Redis evicts no count',
    `Redis may evict counts (maxmemory-policy ${policy}), which resets the limit of a key`,
    'Set maxmemory-policy noeviction.',
  ),
];
