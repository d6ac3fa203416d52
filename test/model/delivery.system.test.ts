import { beforeAll, describe, expect, it } from 'vitest';
import { type Definitions, prepareSpin, type Verification, verify } from './spin.ts';

/**
 * Each size bounds another part of the protocol, so that its states can all be searched. README.md
 * gives the reasons.
 */
const safety: Record<string, Definitions> = {
  'any three faults': { FAULTS: 3 },
  'two relays and any two faults': { FAULTS: 2, RELAYS: 2 },
  'a webhook that is paused and resumed twice, two requests and any fault': { FAULTS: 1, PAUSES: 2, PEOPLE: 1 },
  'two requests of people and any fault': { FAULTS: 1, PEOPLE: 2 },
  'two deliveries of a webhook with one slot, and any fault': { FAULTS: 1, D: 2, ONE_WORKER: 1 },
  'two deliveries of a webhook with two slots, and any fault': { FAULTS: 1, D: 2, SLOTS: 2, ONE_WORKER: 1 },
};
const liveness: Record<string, Definitions> = {
  'any two faults': { FAULTS: 2 },
  'a webhook that is paused and resumed': { FAULTS: 0, PAUSES: 1 },
  'two requests of people': { FAULTS: 0, PEOPLE: 2 },
  'two deliveries of a webhook with one slot': { FAULTS: 0, D: 2, ONE_WORKER: 1 },
};

const twoAtOnce = /posting==1/;
const lost = /paused\|\|/;
const tooMany = /posts<=/;
/** The purpose of each guard of the protocol: without the guard, this property fails. */
const mutants: Record<string, { definitions: Definitions; fails: RegExp }> = {
  'an older run is admitted': { definitions: { NO_FENCE: 1, FAULTS: 2 }, fails: tooMany },
  'a slot is free while its attempt may still be posted': {
    definitions: { SHORT_UNTIL: 1, FAULTS: 0 },
    fails: twoAtOnce,
  },
  'nothing is repaired': { definitions: { NO_REPAIR: 1, FAULTS: 1 }, fails: lost },
  'nothing is repaired, by the property of liveness': {
    definitions: { NO_REPAIR: 1, FAULTS: 1, LIVENESS: 1 },
    fails: /acceptance cycle/,
  },
  'a lost attempt does not count': { definitions: { LOST_NOT_COUNTED: 1, FAULTS: 2 }, fails: tooMany },
};

describe('the delivery protocol, in every state of its model', () => {
  const verified: Verification[] = [];
  beforeAll(prepareSpin, 300_000);

  for (const [bounds, definitions] of Object.entries(safety)) {
    it(`never posts twice at once or too often, settles twice or loses a delivery: ${bounds}`, async () => {
      const verification = await verify(definitions);
      verified.push(verification);
      expect(verification).toMatchObject({ errors: 0, violation: null, isComplete: true });
      expect(verification.states).toBeGreaterThan(10_000);
    }, 600_000);
  }

  for (const [bounds, definitions] of Object.entries(liveness)) {
    it(`settles each delivery unless its webhook is paused: ${bounds}`, async () => {
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

describe('the order of one subject’s events, in every state of its model', () => {
  beforeAll(prepareSpin, 300_000);
  const model = 'order.pml';

  it('is kept beside redeliveries, and no event stays blocked, whatever does not see each other', async () => {
    const verification = await verify({ PEOPLE: 2, REMOVALS: 1 }, { model });
    expect(verification).toMatchObject({ errors: 0, violation: null, isComplete: true });
    expect(verification.states).toBeGreaterThan(1_000);
    expect(verification.unreached.filter(isStatement)).toEqual([]);
  }, 600_000);

  it.each([
    ['nothing looks for blocked events', { NO_UNBLOCK: 1 }, /state\[k\]/],
    ['no event waits for the one before', { NO_ORDER: 1 }, /count<=1/],
    ['an event of a removed type is waited for', { NO_REMOVED: 1, REMOVALS: 1 }, /state\[k\]/],
  ])(
    'fails where %s',
    async (_change, definitions, fails) => {
      const verification = await verify(definitions, { isMutant: true, model });
      expect(verification.errors).toBe(1);
      expect(verification.violation).toMatch(fails);
    },
    600_000,
  );
});

/** Processes without an end do not reach their last statement. */
const isStatement = (unreached: string) => !unreached.endsWith('"-end-"');
