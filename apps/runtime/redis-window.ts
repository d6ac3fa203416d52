import { Cluster, type Redis, ReplyError } from 'ioredis';
import type { Region } from '#domain/contract/regions.ts';
import { createRedisClient, findWrongMode, findWrongReason } from './redis-client.ts';
import type { RedisServer } from './settings/redis.ts';

/** How long (ms) it waits for a connection. */
const CONNECT_TIMEOUT_MS = 1_000;
/**
 * The probe writes a separate key that is always admitted and expires within seconds, so that it
 * needs what a call needs.
 */
const PROBE = { limit: Number.MAX_SAFE_INTEGER, windowUs: 1 };

interface RedisWindowOptions {
  /** Read for each connection; a later connection takes only user and password from it. */
  server: () => RedisServer;
  limit: number;
  windowUs: number;
  keyPrefix: string;
  /** A later response (ms) counts as a failure. */
  timeoutMs: number;
  /** The same for a connection; a second by default. */
  connectTimeoutMs?: number;
  /** Called when the connection is usable, also after each reconnect. */
  onReady?: () => void;
  /** Called when the connection is lost, with the reason in words. */
  onLost?: (reason: string) => void;
}

/**
 * The limiter's connection to Redis: one script, every response within the timeout. Nothing is
 * retried or queued: the caller decides by itself after a failure.
 */
export class RedisWindow {
  readonly #options: RedisWindowOptions;
  readonly #connectTimeoutMs: number;
  readonly #redis: Redis | Cluster;
  /**
   * The error that ioredis reported since the connection was last usable: its `close` and its
   * rejections only say that it is closed.
   */
  #lastError: unknown = null;
  /** Whether the current connection leads to the kind of Redis that its URL says. */
  #isKindRight = false;
  /** The key whose hash slot the probe asks for: that of the last call that failed. */
  #probedKey: string;

  /** Does not connect. */
  constructor(options: RedisWindowOptions) {
    this.#options = options;
    this.#probedKey = options.keyPrefix;
    this.#connectTimeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
    this.#redis = createRedisClient(options.server, this.#connectTimeoutMs);
    // The error of a cluster itself says only that every node failed.
    this.#redis.on('error', () => {});
    this.#redis.on(this.#isCluster ? 'node error' : 'error', (error: unknown) => {
      this.#lastError = error;
    });
    this.#redis.on('ready', () => {
      this.#lastError = null;
      this.#isKindRight = false;
      options.onReady?.();
    });
    this.#redis.on('close', () => options.onLost?.(describeReason(this.#explain('Redis closed the connection'))));
  }

  /**
   * Resolves when Redis is ready, rejects when it is not within a second (it keeps trying).
   *
   * @throws WrongRedisError when it is of another kind than the URL says.
   */
  async open(): Promise<void> {
    try {
      await within(this.#connectTimeoutMs, this.#redis.connect());
    } catch (error) {
      throw this.#explain(error);
    }
    await this.#checkKind();
  }

  /**
   * Takes one call per fingerprint, in order, in one round trip. Returns
   * `[left, waitUs, left, waitUs, …]` as sliding-window.lua does.
   */
  async ask(fingerprints: string[]): Promise<number[]> {
    const { keyPrefix, limit, windowUs } = this.#options;
    const keys = fingerprints.map((fingerprint) => keyPrefix + fingerprint);
    // A script reaches one hash slot of a cluster, and each key has its own.
    const runs = this.#isCluster ? keys.map((key) => [key]) : [keys];
    const replies = runs.map((each) =>
      this.#run(each, limit, windowUs).catch((error: unknown) => {
        this.#probedKey = each[0] ?? '';
        throw error;
      }),
    );
    return (await Promise.all(replies)).flat();
  }

  /**
   * Resolves when Redis runs the script and accepts its writes, at the node of a cluster that failed
   * last: another one may work, and a call for it would fail again.
   *
   * @throws WrongRedisError when a later connection leads to another kind than the URL says: one node
   *   of a cluster answers for some keys.
   */
  async probe(): Promise<void> {
    if (this.#redis.status === 'ready') await this.#checkKind();
    const key = `${this.#options.keyPrefix}probe:{${this.#probedKey}}`;
    await this.#run([key], PROBE.limit, PROBE.windowUs);
  }

  /** The connections to what decides calls: Redis, or every primary of a cluster. */
  get primaries(): readonly Redis[] {
    return this.#redis instanceof Cluster ? this.#redis.nodes('master') : [this.#redis];
  }

  close(): void {
    this.#redis.disconnect();
  }

  get #isCluster(): boolean {
    return this.#redis instanceof Cluster;
  }

  async #run(keys: string[], limit: number, windowUs: number): Promise<number[]> {
    // Until it is ready, a cluster's client would queue the call.
    if (this.#redis.status !== 'ready') throw this.#explain(new Error('Redis is not connected'));
    return within(this.#options.timeoutMs, this.#redis.slidingWindow([keys.length, ...keys, limit, windowUs]));
  }

  /** Returns why there is no connection: what ioredis reported says more than `error`. */
  #explain(error: unknown): unknown {
    const cause = this.#lastError ?? error;
    return findWrongReason(this.#options.server(), describeReason(cause)) ?? cause;
  }

  /** @throws WrongRedisError */
  async #checkKind(): Promise<void> {
    if (this.#isKindRight) return;
    const wrong = findWrongMode(this.#options.server(), await this.#readMode());
    if (wrong !== null) throw wrong;
    this.#isKindRight = true;
  }

  /** Returns `standalone`, `cluster` or `sentinel`; null when the login may not ask. */
  async #readMode(): Promise<string | null> {
    if (this.#redis instanceof Cluster) return 'cluster';
    const info = await within(this.#connectTimeoutMs, this.#redis.info('server')).catch((error: unknown) => {
      if (error instanceof ReplyError) return '';
      throw error;
    });
    return /^redis_mode:(\w+)/m.exec(info)?.[1] ?? null;
  }
}

/** Where the API keeps the calls of keys in Redis. */
export const limiterKeyPrefix = (region: Region): string => `limit:${region}:`;

/**
 * Returns an error in one short line for the log, without the stack and the command's arguments.
 */
export function describeReason(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return (text.split('\n', 1)[0] ?? '').slice(0, 200);
}

/** Returns the promise's outcome, or rejects after `timeoutMs`. */
function within<T>(timeoutMs: number, promise: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const expire = () => reject(new Error(`Redis did not answer within ${timeoutMs} ms`));
    // A busy process runs overdue timers before it reads its sockets: with setImmediate, a response
    // that has already arrived comes first.
    const timer = setTimeout(() => setImmediate(expire), timeoutMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
