import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { type RedisServer, redisOptions } from '#runtime/settings/redis.ts';

declare module 'ioredis' {
  interface Redis {
    /** sliding-window.lua with the number of keys, the keys, and its three arguments. */
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
  /** A later answer (ms) counts as a failure. */
  timeoutMs: number;
  /** Monotonic clock (ms). */
  now: () => number;
  /** Called when the connection is usable, also after each reconnect. */
  onReady: () => void;
  /** Called when the connection is lost, with the reason in words. */
  onLost: (reason: string) => void;
}

/**
 * The limiter's connection to Redis: one connection, one script, every answer within the timeout.
 */
interface RedisWindow {
  /**
   * Connects. Resolves when Redis is ready, rejects when it is not within a second (it keeps
   * trying).
   */
  open(): Promise<void>;
  /**
   * Takes one call per fingerprint, in order, in one round trip. Returns
   * `[left, waitUs, left, waitUs, …]` as sliding-window.lua does.
   */
  ask(fingerprints: string[]): Promise<number[]>;
  /**
   * Resolves when Redis runs the script and accepts its writes; sets the clock that `ask` needs.
   */
  probe(): Promise<void>;
  close(): void;
}

/**
 * Prepares the connection without connecting. Nothing is retried or queued: the caller decides by
 * itself after a failure.
 */
export function createRedisWindow(options: RedisWindowOptions): RedisWindow {
  const { limit, windowUs, keyPrefix, timeoutMs, now } = options;
  const redis = new Redis({
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
  });
  /**
   * Redis's clock minus this process's (ms), or a little more: read between sending and receiving,
   * and treated as read at the sending.
   */
  let clockAheadMs = 0;
  /**
   * The error that ioredis reported since the connection was last usable: its `close` and its
   * rejections only say that it is closed.
   */
  let lastError: string | null = null;

  redis.on('error', (error: unknown) => {
    lastError = reasonOf(error);
  });
  redis.on('ready', () => {
    lastError = null;
    options.onReady();
  });
  redis.on('close', () => {
    const { user, password } = options.server();
    Object.assign(redis.options, { username: user, password });
    options.onLost(lastError ?? 'Redis closed the connection');
  });

  function run(keys: string[], args: { limit: number; windowUs: number }, answerByUs: number): Promise<number[]> {
    return within(timeoutMs, redis.slidingWindow([keys.length, ...keys, args.limit, args.windowUs, answerByUs]));
  }

  return {
    async open() {
      try {
        await within(CONNECT_TIMEOUT_MS, redis.connect());
      } catch (error) {
        throw new Error(lastError ?? reasonOf(error), { cause: error });
      }
    },
    ask(fingerprints) {
      // A paused Redis runs what it was sent when it continues; the deadline keeps it from counting
      // calls that were decided here meanwhile.
      const answerByUs = Math.ceil((now() + timeoutMs + clockAheadMs) * 1_000);
      const keys = fingerprints.map((fingerprint) => keyPrefix + fingerprint);
      return run(keys, { limit, windowUs }, answerByUs);
    },
    async probe() {
      const sentMs = now();
      const [time] = await Promise.all([
        within(timeoutMs, redis.time()),
        run([`${keyPrefix}probe`], PROBE, Number.MAX_SAFE_INTEGER),
      ]);
      clockAheadMs = Number(time[0]) * 1_000 + Number(time[1]) / 1_000 - sentMs;
    },
    close: () => redis.disconnect(),
  };
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
    // A busy process runs overdue timers before it reads its sockets: with setImmediate, an answer
    // that has already arrived comes first.
    const timer = setTimeout(() => setImmediate(expire), timeoutMs);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
