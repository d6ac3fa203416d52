import { IntervalLoop } from '#runtime/flow/interval-loop.ts';
import { WrongRedisError } from '#runtime/redis-client.ts';
import { describeReason, RedisWindow } from '#runtime/redis-window.ts';
import type { RedisServer } from '#runtime/settings/redis.ts';

/** How often (ms) Redis is checked, in both modes: a loss is found without calls, and a return. */
const PROBE_INTERVAL_MS = 500;
/** The most calls of one script run, so that none blocks Redis for more than about a millisecond. */
const BATCH_CALLS = 128;

/** Who decides: Redis for all pods, or this pod alone because Redis is unavailable or not configured. */
type LimiterMode = 'redis' | 'process';

export interface LimitDecision {
  admitted: boolean;
  /** Calls that are still free in the window after this one. */
  left: number;
  /** Whole seconds until one more call is free: the `Retry-After` of a rejected call. */
  resetSeconds: number;
  decidedBy: LimiterMode;
}

export interface LimiterOptions {
  /** Each new connection uses the login of that moment; null: no Redis, this process counts alone. */
  redis: RedisServer | (() => RedisServer) | null;
  /** Calls admitted in any window. */
  limit: number;
  windowSeconds: number;
  /** The prefix of fingerprints in Redis's key names, for example `limit:us:`. */
  keyPrefix: string;
  /** After this time (ms) without a response, Redis counts as unavailable. */
  commandTimeoutMs?: number;
  /** Monotonic clock (ms). */
  now?: () => number;
  /** Called by `start` with the first mode, then for each change; the reason contains no secret. */
  onModeChange?: (mode: LimiterMode, reason: string) => void;
  /** Called when Redis turns out after the start to be of another kind than its URL says; once until it decides. */
  onWrongRedis?: (error: WrongRedisError) => void;
}

/**
 * The calls of each key that this pod admitted, as times (ms, never decreasing), oldest first and
 * at most `limit`. A time exactly one window old still counts, as in sliding-window.lua. A key that
 * is not used for a window is dropped.
 */
export class PodWindows {
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #times = new Map<string, number[]>();
  #sweptMs = Number.NEGATIVE_INFINITY;

  constructor(limit: number, windowMs: number) {
    this.#limit = limit;
    this.#windowMs = windowMs;
  }

  get size(): number {
    return this.#times.size;
  }

  /** Returns the free calls of the window that ends now. */
  left(fingerprint: string, nowMs: number): number {
    const times = this.#times.get(fingerprint);
    if (times === undefined) return this.#limit;
    while (times.length > 0 && nowMs - (times[0] ?? 0) > this.#windowMs) times.shift();
    return this.#limit - times.length;
  }

  /** Returns the milliseconds after which the oldest call is a window old; 0 when there is none. */
  waitMs(fingerprint: string, nowMs: number): number {
    const oldest = this.#times.get(fingerprint)?.[0];
    return oldest === undefined ? 0 : oldest + this.#windowMs - nowMs;
  }

  /** Counts a call; in a full window it replaces the oldest. */
  count(fingerprint: string, nowMs: number): void {
    if (nowMs - this.#sweptMs > this.#windowMs) this.#sweep(nowMs);
    const left = this.left(fingerprint, nowMs);
    const times = this.#times.get(fingerprint) ?? [];
    if (times.length === 0) this.#times.set(fingerprint, times);
    if (left === 0) times.shift();
    times.push(nowMs);
  }

  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs;
    for (const [fingerprint, times] of this.#times)
      if (nowMs - (times.at(-1) ?? 0) > this.#windowMs) this.#times.delete(fingerprint);
  }
}

/** A call that waits for Redis. */
interface Call {
  readonly fingerprint: string;
  /** Whether the pod has counted it, because both have to admit it. */
  readonly isCounted: boolean;
  readonly resolve: (decision: LimitDecision) => void;
}

/**
 * Limits the calls of each key in any window, for all pods together.
 *
 * Redis decides. Calls of one iteration of the event loop share one run of sliding-window.lua,
 * which costs 1.1 µs of this process for each; with a command for each, a whole read takes 1.39
 * times the processor time (test/bench/reads). The pod counts what Redis admits through it.
 *
 * After the first failure (timeout, closed connection, any error) the pod's count alone decides
 * every waiting and later call, until a probe finds that Redis runs the script again. For one
 * window from then on both have to admit, since Redis does not know the calls before. So Redis
 * admits `limit` calls in any window for all pods together, and each pod at most that many in a
 * window in which Redis is unavailable, goes or comes. In that window a call may be rejected early: one that
 * Redis rejected stays counted here, and Redis may count calls that the pod decided after it
 * stopped waiting. `resetSeconds` of the pod may then be too short by `commandTimeoutMs`.
 */
export class Limiter {
  readonly #options: LimiterOptions;
  readonly #windowMs: number;
  readonly #now: () => number;
  readonly #pod: PodWindows;
  readonly #redis: RedisWindow | null;
  readonly #probes;
  #mode: LimiterMode = 'process';
  #bothUntilMs = Number.NEGATIVE_INFINITY;
  /** Calls for the next run of the script, and those whose run has not been answered. */
  #next: Call[] = [];
  readonly #pending = new Set<Call[]>();
  #unavailableReason = 'no Redis is configured';
  #wrongReason: string | null = null;
  #isStopped = false;

  /** Does not connect. */
  constructor(options: LimiterOptions) {
    const { redis, limit, windowSeconds, keyPrefix, commandTimeoutMs = 250 } = options;
    this.#options = options;
    this.#windowMs = windowSeconds * 1_000;
    this.#now = options.now ?? (() => performance.now());
    this.#pod = new PodWindows(limit, this.#windowMs);
    this.#redis =
      redis === null
        ? null
        : new RedisWindow({
            server: typeof redis === 'function' ? redis : () => redis,
            limit,
            windowUs: Math.round(this.#windowMs * 1_000),
            keyPrefix,
            timeoutMs: commandTimeoutMs,
            onReady: () => this.#probes.runNow(),
            onLost: (reason) => this.#leaveRedis(reason),
          });
    this.#probes = new IntervalLoop({
      run: async () => {
        await this.#redis?.probe();
        this.#returnToRedis();
      },
      everyMs: PROBE_INTERVAL_MS,
      onError: (error) => {
        if (error instanceof WrongRedisError) this.#reportWrongRedis(error);
        this.#leaveRedis(describeReason(error));
      },
    });
  }

  get mode(): LimiterMode {
    return this.#mode;
  }

  /**
   * Connects to Redis. Resolves within about a second also when there is none, in `process` mode,
   * and keeps trying.
   *
   * @throws WrongRedisError when Redis is of another kind than its URL says.
   */
  async start(): Promise<void> {
    if (this.#redis !== null) {
      try {
        await this.#redis.open();
        if (!this.#isStopped) await this.#probes.start();
      } catch (error) {
        if (error instanceof WrongRedisError) {
          await this.stop();
          throw error;
        }
        this.#unavailableReason = describeReason(error);
        if (!this.#isStopped) void this.#probes.start();
      }
    }
    if (this.#mode === 'process' && !this.#isStopped) this.#options.onModeChange?.('process', this.#unavailableReason);
  }

  /** Disconnects from Redis; the pod decides waiting and later calls. Can be called twice, and before `start`. */
  async stop(): Promise<void> {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#leaveRedis('the limiter was stopped');
    this.#redis?.close();
    await this.#probes.stop();
  }

  /**
   * Decides one call of the key with this fingerprint (bytes, or their text as it appears in
   * Redis). Never rejects and always settles.
   */
  decide(bytesOrText: string | Buffer): Promise<LimitDecision> {
    const fingerprint = typeof bytesOrText === 'string' ? bytesOrText : bytesOrText.toString('base64url');
    const nowMs = this.#now();
    if (this.#mode === 'process') return Promise.resolve(this.#decideInPod(fingerprint, nowMs));
    const isCounted = nowMs <= this.#bothUntilMs;
    if (isCounted) {
      if (this.#pod.left(fingerprint, nowMs) === 0) return Promise.resolve(this.#decideInPod(fingerprint, nowMs));
      this.#pod.count(fingerprint, nowMs);
    }
    return new Promise((resolve) => {
      if (this.#next.length === 0) setImmediate(() => this.#askRedis());
      this.#next.push({ fingerprint, isCounted, resolve });
    });
  }

  #askRedis(): void {
    const calls = this.#next;
    this.#next = [];
    for (let first = 0; first < calls.length; first += BATCH_CALLS)
      void this.#askFor(calls.slice(first, first + BATCH_CALLS));
  }

  async #askFor(batch: Call[]): Promise<void> {
    if (this.#redis === null) return;
    this.#pending.add(batch);
    try {
      const reply = await this.#redis.ask(batch.map(({ fingerprint }) => fingerprint));
      if (!this.#pending.delete(batch)) return; // decided in the pod meanwhile
      for (const [index, call] of batch.entries())
        this.#resolveByRedis(call, Number(reply[2 * index]), Number(reply[2 * index + 1]) / 1_000);
    } catch (error) {
      if (this.#pending.has(batch)) this.#leaveRedis(describeReason(error));
    }
  }

  #resolveByRedis({ fingerprint, isCounted, resolve }: Call, left: number, waitMs: number): void {
    if (left < 0) {
      resolve(this.#decision(false, 0, waitMs, 'redis'));
      return;
    }
    const nowMs = this.#now();
    if (!isCounted) this.#pod.count(fingerprint, nowMs);
    const leftInPod = isCounted ? this.#pod.left(fingerprint, nowMs) : left;
    if (leftInPod < left) resolve(this.#decision(true, leftInPod, this.#pod.waitMs(fingerprint, nowMs), 'redis'));
    else resolve(this.#decision(true, left, waitMs, 'redis'));
  }

  #decideInPod(fingerprint: string, nowMs: number, isCounted = false): LimitDecision {
    const admitted = isCounted || this.#pod.left(fingerprint, nowMs) > 0;
    if (admitted && !isCounted) this.#pod.count(fingerprint, nowMs);
    return this.#decision(
      admitted,
      admitted ? this.#pod.left(fingerprint, nowMs) : 0,
      this.#pod.waitMs(fingerprint, nowMs),
      'process',
    );
  }

  #reportWrongRedis(error: WrongRedisError): void {
    if (error.message === this.#wrongReason) return;
    this.#wrongReason = error.message;
    this.#options.onWrongRedis?.(error);
  }

  #leaveRedis(reason: string): void {
    this.#unavailableReason = reason;
    if (this.#mode === 'process') return;
    this.#mode = 'process';
    const nowMs = this.#now();
    for (const { fingerprint, isCounted, resolve } of [...this.#pending].flat().concat(this.#next))
      resolve(this.#decideInPod(fingerprint, nowMs, isCounted));
    this.#pending.clear();
    this.#next = [];
    if (!this.#isStopped) this.#options.onModeChange?.('process', reason);
  }

  #returnToRedis(): void {
    if (this.#mode === 'redis' || this.#isStopped) return;
    this.#mode = 'redis';
    this.#wrongReason = null;
    if (this.#pod.size > 0) this.#bothUntilMs = this.#now() + this.#windowMs;
    this.#options.onModeChange?.('redis', 'Redis answers');
  }

  /** A call that is exactly a window old still counts, for less than the way to the caller takes. */
  #decision(admitted: boolean, left: number, waitMs: number, decidedBy: LimiterMode): LimitDecision {
    const longest = Math.ceil(this.#options.windowSeconds);
    return { admitted, left, resetSeconds: Math.min(longest, Math.max(1, Math.ceil(waitMs / 1_000))), decidedBy };
  }
}
