/** The size of a new ring: most keys are rarely used, and a ring doubles when it is full. */
const FIRST_SLOTS = 8;
/**
 * How much longer than a window a ring is kept (ms), so that it outlives every call that waits for
 * Redis.
 */
const IDLE_GRACE_MS = 10_000;

/**
 * The sliding window of one key in this process: the times of the last admitted calls, oldest
 * first.
 *
 * It admits as sliding-window.lua does: a call passes when fewer than `limit` times are in the
 * window that ends now, including a time exactly one window old. Times are milliseconds of one
 * monotonic clock, with fractions, and never decrease.
 */
export class PodRing {
  /**
   * The time (ms) until which Redis's last refusal is known to hold, counted from before Redis was
   * asked.
   */
  refusedUntilMs = Number.NEGATIVE_INFINITY;
  /**
   * The time (ms) from which one more call is free, counted from after Redis's answer: what a
   * refused caller has to wait for.
   */
  freeAtMs = Number.NEGATIVE_INFINITY;
  /** When the key was last used (ms). */
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
   * Counts a call at `nowMs` and returns true, or returns false and counts nothing because the
   * window is full.
   */
  admit(nowMs: number): boolean {
    if (this.left(nowMs) === 0) return false;
    this.#push(nowMs);
    return true;
  }

  /**
   * Counts a call that Redis has admitted, at the time it was made here; in a full ring it replaces
   * the oldest call.
   */
  record(atMs: number): void {
    if (this.left(atMs) === 0) this.#dropOldest();
    this.#push(atMs);
  }

  /** Removes a call that `admit(atMs)` counted and Redis then refused. */
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
   * Returns the free calls of the window that ends at `nowMs`, and drops calls that have left it.
   */
  left(nowMs: number): number {
    while (this.#count > 0 && nowMs - this.#timeAt(0) > this.#windowMs) this.#dropOldest();
    return this.#limit - this.#count;
  }

  /**
   * Returns the milliseconds after which the oldest call reaches the window's age; 0 when there is
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
 * The rings of all recently used keys, by fingerprint.
 *
 * Traffic bounds the memory: a ring has 8 bytes per admitted call, at most doubled. A sweep once
 * per window removes the rings whose last call has left the window.
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

  /** Returns the key's ring, created if needed, and marks it as used. */
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
