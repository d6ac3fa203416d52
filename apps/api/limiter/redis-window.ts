import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { type RedisServer, redisOptions } from '#runtime/settings/redis.ts';

declare module 'ioredis' {
  interface Redis {
    /** sliding-window.lua with the number of keys, the keys, and its two arguments. */
    slidingWindow(args: (string | number)[]): Promise<number[]>;
  }
}

const script = readFileSync(new URL('./sliding-window.lua', import.meta.url), 'utf8');

/** How long (ms) it waits for a connection, between attempts, and for Redis to close one. */
const CONNECT_TIMEOUT_MS = 1_000;
const RECONNECT_DELAY_MS = 500;
const DISCONNECT_TIMEOUT_MS = 500;
/**
 * A connection on which Redis sends nothing for this time (ms) is closed: a lost route sends no
 * reset. The probe runs more often.
 */
const SILENCE_MS = 2_000;
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
  /** Called when the connection is usable, also after each reconnect. */
  onReady: () => void;
  /** Called when the connection is lost, with the reason in words. */
  onLost: (reason: string) => void;
}

/**
 * The limiter's connection to Redis: one connection, one script, every response within the timeout.
 * Nothing is retried or queued: the caller decides by itself after a failure.
 */
export class RedisWindow {
  readonly #options: RedisWindowOptions;
  readonly #redis: Redis;
  /**
   * The error that ioredis reported since the connection was last usable: its `close` and its
   * rejections only say that it is closed.
   */
  #lastError: string | null = null;

  /** Does not connect. */
  constructor(options: RedisWindowOptions) {
    this.#options = options;
    this.#redis = new Redis({
      ...redisOptions(options.server()),
      lazyConnect: true,
      scripts: { slidingWindow: { lua: script } },
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      connectTimeout: CONNECT_TIMEOUT_MS,
      disconnectTimeout: DISCONNECT_TIMEOUT_MS,
      socketTimeout: SILENCE_MS,
      retryStrategy: () => RECONNECT_DELAY_MS,
      // After a failover, a new connection leads to the primary, and an open one may stay with a replica.
      reconnectOnError: ({ message }) => /^(?:READONLY|MASTERDOWN) /.test(message),
    });
    this.#redis.on('error', (error: unknown) => {
      this.#lastError = reasonOf(error);
    });
    this.#redis.on('ready', () => {
      this.#lastError = null;
      options.onReady();
    });
    this.#redis.on('close', () => {
      const { user, password } = options.server();
      Object.assign(this.#redis.options, { username: user, password });
      options.onLost(this.#lastError ?? 'Redis closed the connection');
    });
  }

  /** Resolves when Redis is ready, rejects when it is not within a second (it keeps trying). */
  async open(): Promise<void> {
    try {
      await within(CONNECT_TIMEOUT_MS, this.#redis.connect());
    } catch (error) {
      throw new Error(this.#lastError ?? reasonOf(error), { cause: error });
    }
  }

  /**
   * Takes one call per fingerprint, in order, in one round trip. Returns
   * `[left, waitUs, left, waitUs, …]` as sliding-window.lua does.
   */
  ask(fingerprints: string[]): Promise<number[]> {
    const { keyPrefix, limit, windowUs } = this.#options;
    return this.#run(
      fingerprints.map((fingerprint) => keyPrefix + fingerprint),
      limit,
      windowUs,
    );
  }

  /** Resolves when Redis runs the script and accepts its writes. */
  async probe(): Promise<void> {
    await this.#run([`${this.#options.keyPrefix}probe`], PROBE.limit, PROBE.windowUs);
  }

  close(): void {
    this.#redis.disconnect();
  }

  #run(keys: string[], limit: number, windowUs: number): Promise<number[]> {
    return within(this.#options.timeoutMs, this.#redis.slidingWindow([keys.length, ...keys, limit, windowUs]));
  }
}

/**
 * Returns an error in one short line for the log, without the stack and the command's arguments.
 */
export function reasonOf(error: unknown): string {
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
