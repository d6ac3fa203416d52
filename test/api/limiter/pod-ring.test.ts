import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PodRing, PodRings } from '../../../apps/api/limiter/pod-ring.ts';

const WINDOW_MS = 1_000;

/** Returns the times of a list that still count at `nowMs`. */
const counted = (times: number[], nowMs: number) => times.filter((time) => nowMs - time <= WINDOW_MS);

/** The window in the contract's words: a list of the times that still count. */
class PlainWindow {
  readonly limit: number;
  times: number[] = [];
  constructor(limit: number) {
    this.limit = limit;
  }
  passTo(nowMs: number): void {
    this.times = counted(this.times, nowMs);
  }
  admit(nowMs: number): boolean {
    const free = this.times.length < this.limit;
    if (free) this.times.push(nowMs);
    return free;
  }
  record(nowMs: number): void {
    this.times = [...this.times, nowMs].slice(-this.limit);
  }
  release(atMs: number): void {
    this.times.splice(this.times.lastIndexOf(atMs), 1);
  }
}

/** Makes the same calls to the ring and to the list. */
function act(ring: PodRing, plain: PlainWindow, what: string, nowMs: number): void {
  plain.passTo(nowMs);
  const middle = plain.times[Math.floor(plain.times.length / 2)];
  if (what === 'admit') expect(ring.admit(nowMs)).toBe(plain.admit(nowMs));
  if (what === 'record') [ring, plain].forEach((window) => void window.record(nowMs));
  if (what === 'release' && middle !== undefined) [ring, plain].forEach((window) => void window.release(middle));
}

const gapMs = fc.oneof(fc.nat(2), fc.nat(300), fc.constantFrom(WINDOW_MS, WINDOW_MS + 1), fc.nat(2_500));
const step = fc.record({ gapMs, what: fc.constantFrom('admit', 'admit', 'admit', 'record', 'release') });

describe('PodRing', () => {
  it('admits, counts and waits exactly like a plain list of times', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(step, { maxLength: 150 }), (limit, steps) => {
        const ring = new PodRing(limit, WINDOW_MS);
        const plain = new PlainWindow(limit);
        let nowMs = 0;
        for (const { gapMs, what } of steps) {
          nowMs += gapMs;
          act(ring, plain, what, nowMs);
          expect(ring.left(nowMs)).toBe(limit - plain.times.length);
          const oldest = plain.times[0];
          expect(ring.waitMs(nowMs)).toBe(oldest === undefined ? 0 : oldest + WINDOW_MS - nowMs);
        }
      }),
      { numRuns: 500 },
    );
  });

  it('admits a refused caller just after the announced wait', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.array(gapMs, { maxLength: 150 }), (limit, gaps) => {
        const ring = new PodRing(limit, WINDOW_MS);
        let nowMs = 0;
        for (const gap of gaps) {
          nowMs += gap;
          if (ring.admit(nowMs)) continue;
          nowMs += ring.waitMs(nowMs) + 0.001;
          expect(ring.admit(nowMs)).toBe(true);
        }
      }),
    );
  });
});

describe('PodRings', () => {
  it('drops the keys that are no longer in use, and no others', () => {
    const rings = new PodRings(3, WINDOW_MS, 0);
    const busy = rings.get('busy', 0);
    for (let key = 0; key < 5_000; key++) rings.get(`once ${key}`, key / 10).admit(key / 10);
    expect(rings.size).toBe(5_001);
    for (let nowMs = 500; nowMs <= 14_000; nowMs += 500) expect(rings.get('busy', nowMs)).toBe(busy);
    expect(rings.size).toBe(1);
  });
});
