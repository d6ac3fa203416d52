/** Slots a new ring starts with: most keys are quiet, and a ring doubles when it is full. */
const FIRST_SLOTS = 8;
/**
 * How much longer than a window a ring is kept (ms), so that it outlives every call that is still
 * waiting for Redis.
 */
const IDLE_GRACE_MS = 10_000;

/**
 * The sliding window of one key inside this process: the times of the last admitted calls, oldest first.
 *
 * It admits as sliding-window.lua does: a call passes when fewer than `limit` times lie in the
 * window that ends now, a time exactly one window old included. Times are milliseconds of one
 * monotonic clock, with fractions, and never go back.
 */
export class PodRing {
  /**
   * Until then (ms) Redis's last refusal is known to hold, counted from before Redis was asked; the
   * window is surely full.
   */
  refusedUntilMs = Number.NEGATIVE_INFINITY;
  /**
   * From then on (ms) one more call is free, counted from after Redis's answer: what a refused
   * caller has to wait for.
   */
  freeAtMs = Number.NEGATIVE_INFINITY;
  /** When the key was last asked about (ms). */
  touchedMs = Number.NEGATIVE_INFINITY;

  readonly #limit: number;
  readonly #windowMs: number;
  #slots: Float64Array;
  #first = 0;
  #count = 0;

  constructor(limit: number, windowMs: number) {
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#slots = new Float64Array(Math.min(FIRST_SLOTS, limit));
  }

  /**
   * Counts a call at `nowMs` and says true, or says false and counts nothing: the window is full.
   */
  admit(nowMs: number): boolean {
    if (this.left(nowMs) === 0) return false;
    this.#push(nowMs);
    return true;
  }

  /**
   * Counts a call that Redis has admitted, at the time it was taken here; in a full ring it takes
   * the oldest call's place.
   */
  record(atMs: number): void {
    if (this.left(atMs) === 0) this.#dropOldest();
    this.#push(atMs);
  }

  /** Takes back a call that `admit(atMs)` counted and Redis then refused. */
  release(atMs: number): void {
    for (let index = this.#count - 1; index >= 0; index--) {
      if (this.#timeAt(index) !== atMs) continue;
      for (let later = index + 1; later < this.#count; later++)
        this.#slots[this.#slot(later - 1)] = this.#timeAt(later);
      this.#count--;
      return;
    }
  }

  /**
   * Calls still free in the window that ends at `nowMs`; calls that have left it are dropped on the
   * way.
   */
  left(nowMs: number): number {
    while (this.#count > 0 && nowMs - this.#timeAt(0) > this.#windowMs) this.#dropOldest();
    return this.#limit - this.#count;
  }

  /**
   * Milliseconds after which the oldest call has just reached the window's age; 0 when there is
   * none.
   */
  waitMs(nowMs: number): number {
    return this.#count === 0 ? 0 : this.#timeAt(0) + this.#windowMs - nowMs;
  }

  #timeAt(index: number): number {
    return this.#slots[this.#slot(index)] ?? 0;
  }

  #slot(index: number): number {
    return (this.#first + index) % this.#slots.length;
  }

  #dropOldest(): void {
    this.#first = this.#slot(1);
    this.#count--;
  }

  #push(atMs: number): void {
    if (this.#count === this.#slots.length) this.#grow();
    this.#slots[this.#slot(this.#count)] = atMs;
    this.#count++;
  }

  #grow(): void {
    const slots = new Float64Array(Math.min(this.#slots.length * 2, this.#limit));
    for (let index = 0; index < this.#count; index++) slots[index] = this.#timeAt(index);
    this.#slots = slots;
    this.#first = 0;
  }
}

/**
 * The rings of all keys that were asked about lately, by fingerprint.
 *
 * Memory is bounded by traffic: a ring holds 8 bytes per admitted call, at most doubled. A sweep
 * (one per window) removes the rings whose last call has left the window.
 */
export class PodRings {
  readonly #limit: number;
  readonly #windowMs: number;
  readonly #rings = new Map<string, PodRing>();
  #sweptMs: number;

  constructor(limit: number, windowMs: number, nowMs: number) {
    this.#limit = limit;
    this.#windowMs = windowMs;
    this.#sweptMs = nowMs;
  }

  get size(): number {
    return this.#rings.size;
  }

  /** The key's ring, made if need be, and marked as touched. */
  get(fingerprint: string, nowMs: number): PodRing {
    if (nowMs - this.#sweptMs > this.#windowMs) this.#sweep(nowMs);
    let ring = this.#rings.get(fingerprint);
    if (ring === undefined) {
      ring = new PodRing(this.#limit, this.#windowMs);
      this.#rings.set(fingerprint, ring);
    }
    ring.touchedMs = nowMs;
    return ring;
  }

  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs;
    for (const [fingerprint, ring] of this.#rings) {
      if (nowMs - ring.touchedMs > this.#windowMs + IDLE_GRACE_MS) this.#rings.delete(fingerprint);
    }
  }
}
