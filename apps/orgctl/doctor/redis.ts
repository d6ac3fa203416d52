import type { Redis } from 'ioredis';
import type { Region } from '#domain/contract/regions.ts';
import { WrongRedisError } from '#runtime/redis-client.ts';
import type { RedisServer } from '#runtime/settings/redis.ts';
import { getErrorCode } from '#runtime/settings/try-connection.ts';
import { tryRedisWindow } from '#runtime/try-redis.ts';
import { checkPeer } from './certificates.ts';
import { checkClock } from './clock.ts';
import { createFindings, type Finding } from './finding.ts';

const { ok, failed, expectThat } = createFindings('redis');
const timeoutMs = 5_000;

/**
 * Makes a call as the API's limiter does, and checks version, policy, clock and certificate of Redis, or
 * of every primary of a cluster.
 */
export async function checkRedis(server: RedisServer, region: Region): Promise<Finding[]> {
  try {
    const findings = await tryRedisWindow({ server, region, timeoutMs }, (primaries) =>
      Promise.all(primaries.map(checkPrimary)),
    );
    const each = new Map(findings.flat().map((finding) => [finding.message, finding]));
    return [ok('Redis runs the script of the limiter'), ...each.values()];
  } catch (error) {
    if (error instanceof WrongRedisError) return [failed(error.problem, error.remedy)];
    return [
      failed(
        `Redis cannot be used at REDIS_URL (${getErrorCode(error)})`,
        'Start it, correct REDIS_URL, or give its user the rights of docs/operations/prepare-redis.md.',
      ),
    ];
  }
}

async function checkPrimary(redis: Redis): Promise<Finding[]> {
  const facts = readFacts(await redis.info('server'), await redis.info('memory'));
  const clock = await checkClock('Redis', async () => {
    const [seconds, micros] = await redis.time();
    return Number(seconds) * 1_000 + Number(micros) / 1_000;
  });
  return [...checkRedisSettings(facts), clock, ...checkPeer('the certificate of Redis', redis.stream)];
}

/** What a server says of itself. */
export interface RedisFacts {
  /** Valkey names the version of Redis that it is compatible with. */
  version: string;
  policy: string;
}

function readFacts(...pages: string[]): RedisFacts {
  const readFact = (name: string) => new RegExp(`^${name}:(.*?)\\r?$`, 'm').exec(pages.join('\n'))?.[1] ?? 'unknown';
  return { version: readFact('redis_version'), policy: readFact('maxmemory_policy') };
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
