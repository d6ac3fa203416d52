import { beforeAll, describe, expect, it } from 'vitest';
import { type Definitions, prepareSpin, type Verification, verify } from './spin.ts';

/**
 * Each size bounds another part of the protocol, so that its states can all be searched. README.md
 * gives the reasons.
 */
const safety: Record<string, Definitions> = {
  'any two faults': { FAULTS: 2, RELAYS: 1 },
  'two relays and any fault': { FAULTS: 1, RELAYS: 2 },
  'a webhook that is suspended and resumed, and any fault': { FAULTS: 1, RELAYS: 1, WORKERS: 1, PARKS: 1 },
  'a redelivery, a cancellation and any fault': { FAULTS: 1, RELAYS: 1, WORKERS: 1, REDELIVERIES: 1, CANCELS: 1 },
  'two deliveries of a webhook with one slot, and any fault': { FAULTS: 1, RELAYS: 1, WORKERS: 1, DELIVERIES: 2 },
};
const liveness: Record<string, Definitions> = {
  'any two faults': { FAULTS: 2, RELAYS: 1 },
  'a webhook that is suspended and resumed': { FAULTS: 0, RELAYS: 1, PARKS: 1 },
  'a redelivery and a cancellation': { FAULTS: 0, RELAYS: 1, REDELIVERIES: 1, CANCELS: 1 },
  'two deliveries of a webhook with one slot': { FAULTS: 0, RELAYS: 1, WORKERS: 1, DELIVERIES: 2 },
};

const twoAtOnce = /posting==1/;
const lost = /requested==dl\[0\]\.settled/;
/** The purpose of each guard of the protocol: without the guard, this property fails. */
const mutants: Record<string, { definitions: Definitions; fails: RegExp }> = {
  'a workflow that cannot make progress counts as busy': {
    definitions: { STUCK_IS_BUSY: 1, FAULTS: 1, RELAYS: 1 },
    fails: lost,
  },
  'a workflow that cannot make progress counts as busy, by the property of liveness': {
    definitions: { STUCK_IS_BUSY: 1, FAULTS: 1, RELAYS: 1, LIVENESS: 1 },
    fails: /acceptance cycle/,
  },
  'a repair closes an attempt that has not expired': {
    definitions: { REPAIR_CLOSES_ATTEMPT: 1, FAULTS: 1, RELAYS: 1 },
    fails: twoAtOnce,
  },
  'an attempt whose activity failed is lost before it has expired': {
    definitions: { LOST_WITHOUT_AGE: 1, FAULTS: 2, RELAYS: 1 },
    fails: twoAtOnce,
  },
  'a late outcome is recorded whatever was settled meanwhile': {
    definitions: { OUTCOME_UNGUARDED: 1, FAULTS: 2, RELAYS: 1 },
    fails: /exhausting|settled<=/,
  },
  'an attempt is admitted beside an open one': {
    definitions: { ADMIT_BESIDE_OPEN: 1, ADMIT_WITHOUT_SLOT: 1, FAULTS: 2, RELAYS: 1 },
    fails: twoAtOnce,
  },
  'an attempt is admitted without a slot': {
    definitions: { ADMIT_WITHOUT_SLOT: 1, FAULTS: 0, RELAYS: 1, WORKERS: 1, DELIVERIES: 2 },
    fails: /dl\[0\]\.open\+dl\[1\]\.open/,
  },
  'a claim never expires': { definitions: { CLAIM_WITHOUT_LEASE: 1, FAULTS: 1, RELAYS: 1 }, fails: lost },
  'an event is written after its change': { definitions: { OUTBOX_APART: 1, FAULTS: 1, RELAYS: 1 }, fails: lost },
  'nothing looks for overdue deliveries': {
    definitions: { NO_RECONCILER: 1, FAULTS: 1, RELAYS: 1 },
    fails: lost,
  },
};

describe('the delivery protocol, in every state of its model', () => {
  const verified: Verification[] = [];
  beforeAll(prepareSpin, 300_000);

  for (const [bounds, definitions] of Object.entries(safety)) {
    it(`never posts twice at once, settles twice or loses a delivery: ${bounds}`, async () => {
      const verification = await verify(definitions);
      verified.push(verification);
      expect(verification).toMatchObject({ errors: 0, violation: null, isComplete: true });
      expect(verification.states).toBeGreaterThan(10_000);
    }, 600_000);
  }

  for (const [bounds, definitions] of Object.entries(liveness)) {
    it(`settles each delivery or suspends its webhook: ${bounds}`, async () => {
      const verification = await verify({ ...definitions, LIVENESS: 1 });
      verified.push(verification);
      expect(verification).toMatchObject({ errors: 0, violation: null, isComplete: true });
    }, 600_000);
  }

  it('has no statement that no configuration reaches', () => {
    expect(verified).toHaveLength(Object.keys(safety).length + Object.keys(liveness).length);
    const [first, ...others] = verified.map(({ unreached }) => new Set(unreached.filter(isStatement)));
    const never = [...(first ?? [])].filter((statement) => others.every((unreached) => unreached.has(statement)));
    expect(never).toEqual([]);
  });

  for (const [change, { definitions, fails }] of Object.entries(mutants)) {
    it(`fails where ${change}`, async () => {
      const verification = await verify(definitions, { isMutant: true });
      expect(verification.errors).toBe(1);
      expect(verification.violation).toMatch(fails);
    }, 600_000);
  }
});

/** Processes without an end do not reach their last statement. */
const isStatement = (unreached: string) => !unreached.endsWith('"-end-"');
