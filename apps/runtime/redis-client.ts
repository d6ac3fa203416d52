import { readFileSync } from 'node:fs';
import { Cluster, Redis } from 'ioredis';
import { StartupError } from './errors.ts';
import { clusterOptions, type RedisServer, redisOptions } from './settings/redis.ts';

interface Scripts {
  /** sliding-window.lua with the number of keys, the keys, and its two arguments. */
  slidingWindow(args: (string | number)[]): Promise<number[]>;
}

declare module 'ioredis' {
  interface Redis extends Scripts {}
  interface Cluster extends Scripts {}
}

const script = readFileSync(new URL('./sliding-window.lua', import.meta.url), 'utf8');

/** How long (ms) between attempts to connect, and for Redis to close a connection. */
const RECONNECT_DELAY_MS = 500;
const DISCONNECT_TIMEOUT_MS = 500;
/** How often a cluster may say that another node has the key. */
const MAX_REDIRECTIONS = 3;
/**
 * A connection on which Redis sends nothing for this time (ms) is closed: a lost route sends no
 * reset. The probe runs more often.
 */
const SILENCE_MS = 2_000;

/**
 * Returns a client that does not connect. Each later connection takes the login of that moment.
 *
 * @param connectTimeout - in ms.
 */
export function createRedisClient(server: () => RedisServer, connectTimeout: number): Redis | Cluster {
  const common = {
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    connectTimeout,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_MS,
  };
  const scripts = { slidingWindow: { lua: script } };
  const followLogin = (redis: Redis) => {
    const { user, password } = server();
    Object.assign(redis.options, { username: user, password });
  };
  if (server().isCluster) {
    const { nodes, options } = clusterOptions(server());
    const cluster = new Cluster(nodes, {
      ...options,
      scripts,
      lazyConnect: true,
      clusterRetryStrategy: () => RECONNECT_DELAY_MS,
      // A call is not repeated after a failure; MOVED and ASK lead it to another node.
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
      maxRedirections: MAX_REDIRECTIONS,
      slotsRefreshTimeout: connectTimeout,
      redisOptions: { ...options.redisOptions, ...common },
    });
    return cluster.on('+node', followLogin);
  }
  const redis = new Redis({
    ...redisOptions(server()),
    ...common,
    scripts,
    lazyConnect: true,
    enableOfflineQueue: false,
    retryStrategy: () => RECONNECT_DELAY_MS,
    sentinelRetryStrategy: () => RECONNECT_DELAY_MS,
    sentinelCommandTimeout: connectTimeout,
    // After a failover, a new connection leads to the primary, and an open one may stay with a replica.
    reconnectOnError: ({ message }) => /^(?:READONLY|MASTERDOWN) /.test(message),
  });
  return redis.on('close', () => followLogin(redis));
}

/** Redis of another kind than its URL says: a call could reach the wrong node. */
export class WrongRedisError extends StartupError {
  readonly problem: string;
  readonly remedy: string;

  constructor(fault: string, change: string) {
    const problem = `REDIS_URL ${fault}`;
    const remedy = `${change} in REDIS_URL.`;
    super(`${problem}. ${remedy}`);
    this.problem = problem;
    this.remedy = remedy;
  }
}

/**
 * Returns what to change when Redis says that it is of another kind than its URL says, else null.
 *
 * @param mode - what Redis says that it is; null: it does not.
 */
export function findWrongMode({ isCluster }: RedisServer, mode: string | null): WrongRedisError | null {
  if (mode === 'cluster' && !isCluster)
    return new WrongRedisError('leads to a node of a Redis Cluster', 'Add ?cluster=true');
  if (mode === 'sentinel')
    return new WrongRedisError('leads to a Redis Sentinel', 'Add ?sentinel= and the primary’s name');
  return null;
}

/**
 * The same by the words in which Redis or ioredis says why there is no connection: a client of a
 * cluster, or of sentinels, gets none to another kind.
 */
export function findWrongReason({ isCluster, sentinel }: RedisServer, reason: string): WrongRedisError | null {
  if (isCluster && /cluster support disabled/.test(reason))
    return new WrongRedisError('leads to a Redis that is no cluster', 'Leave out cluster=true');
  if (sentinel !== null && /unknown command/i.test(reason))
    return new WrongRedisError('leads to a Redis that is no sentinel', 'Name its sentinels, or leave out sentinel');
  if (sentinel !== null && /no such master|unreachable(?!.*last error)/i.test(reason))
    return new WrongRedisError('names a primary that its sentinels do not know', 'Correct sentinel');
  return null;
}
