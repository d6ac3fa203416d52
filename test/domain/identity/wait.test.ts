/**
 * Checks the first moment at which a limit of failures admits an attempt, against the rule applied
 * to every moment.
 */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { networkOf } from '#domain/identity/network.ts';
import { findAdmission } from '#domain/identity/wait.ts';

const second = 1000;

/** The rule: returns whether a limit admits an attempt at a moment. */
function isAdmitted(limit: number, windowMs: number, failuresMs: readonly number[], atMs: number): boolean {
  const counted = failuresMs.filter((failureMs) => failureMs > atMs - windowMs);
  if (counted.length < limit) return true;
  const waitMs = Math.min(30 * 2 ** Math.min(counted.length - limit, 20), 900) * second;
  return atMs >= Math.max(...counted) + waitMs;
}

it('the announced wait ends exactly when the rule admits an attempt', () => {
  const moments = fc.array(fc.integer({ min: 0, max: 900 }), { minLength: 1, maxLength: 12 });
  fc.assert(
    fc.property(
      moments,
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 1200 }),
      (seconds, limit, window) => {
        const windowMs = window * second;
        const failuresMs = seconds.map((each) => each * second).sort((a, b) => a - b);
        const nowMs = failuresMs.at(-1) ?? 0;
        const counted = failuresMs.filter((failureMs) => failureMs > nowMs - windowMs);
        const admitsMs = findAdmission({ limit, windowMs, failuresMs: counted }, nowMs);
        for (let atMs = nowMs; atMs < admitsMs; atMs += second)
          expect(isAdmitted(limit, windowMs, failuresMs, atMs)).toBe(false);
        for (const laterMs of [0, second, 60 * second, 2000 * second])
          expect(isAdmitted(limit, windowMs, failuresMs, admitsMs + laterMs)).toBe(true);
      },
    ),
    { numRuns: 1_000 },
  );
});

it.each([
  ['203.0.113.9', '203.0.113.9'],
  ['2001:db8::7', '2001:db8:0:0'],
  ['2001:0DB8:0:0:ffff::1', '2001:db8:0:0'],
  ['1::4:5:6:7:8', '1:0:0:4'],
  ['1:2:3:4:5:6:192.0.2.1', '1:2:3:4'],
  ['64:ff9b::192.0.2.1', '64:ff9b:0:0'],
  ['::', '0:0:0:0'],
])('the network of %s is %s in every notation', (address, network) => {
  expect(networkOf(address)).toBe(network);
});
