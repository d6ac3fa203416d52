import { Random } from '../../apps/import/generate/random.ts';

/** How a receiver answers one post. */
export type Behavior =
  | { kind: 'answer'; status: number; retryAfterSeconds?: number; afterMs?: number }
  | { kind: 'hang' }
  | { kind: 'reset' };

/** The behavior of a receiver; webhooks get these in turn. */
export type Nature =
  | 'steady'
  | 'failing'
  | 'limiting'
  | 'resetting'
  | 'hanging'
  | 'slow'
  | 'first-rejects'
  | 'late'
  | 'dead';

const ten = ['steady', 'failing', 'limiting', 'resetting', 'hanging', 'slow', 'first-rejects', 'steady'] as const;
const natures: readonly Nature[] = [...ten, 'failing', 'dead', 'late', ...ten.slice(1), 'failing', 'dead'];

/**
 * Returns the behavior of webhook number `index`, from 0. Of the first ten, one never answers 2xx
 * and two never fail. The eleventh responses every post 2xx after 9 s, which takes longest.
 */
export function getNature(index: number): Nature {
  return natures[index % natures.length] ?? 'steady';
}

const accept = { kind: 'answer', status: 200 } as const;
const respond = (status: number): Behavior => ({ kind: 'answer', status });
/**
 * From this post of an event on, nearly every receiver accepts at once, so that everything ends
 * before the schedule does.
 */
const patience = 5;
/** These keep their behavior to the end. */
const unchanging: ReadonlySet<Nature> = new Set(['dead', 'late']);

const behaviors: Record<Nature, (chance: Random, nth: number) => Behavior> = {
  steady: () => accept,
  failing: (chance) => (chance.chance(0.5) ? respond(chance.pick([500, 502, 404, 302])) : accept),
  limiting: (chance) =>
    chance.chance(0.3) ? { kind: 'answer', status: chance.pick([429, 503]), retryAfterSeconds: 1 } : accept,
  resetting: (chance) => (chance.chance(0.4) ? { kind: 'reset' } : accept),
  // Uses one of its ten slots for the attempt's 10 s, often enough that a worker is killed
  // meanwhile.
  hanging: (chance) => (chance.chance(0.4) ? { kind: 'hang' } : accept),
  // 9 s is in time, except sometimes on a busy machine
  slow: (chance) => ({ ...accept, afterMs: chance.chance(0.1) ? 9_000 : chance.whole(0, 400) }),
  'first-rejects': (_, nth) => (nth <= 2 ? respond(401) : accept),
  late: () => ({ ...accept, afterMs: 9_000 }),
  dead: () => respond(503),
};

/**
 * Returns how the receiver of webhook `index` answers its `nth` post (from 1) of the event with
 * this sequence. The same seed gives the same plan; the number of posts depends on the kills.
 */
export function planBehavior(seed: number, index: number, sequence: string, nth: number): Behavior {
  const nature = getNature(index);
  if (!unchanging.has(nature) && nth >= patience) return accept;
  return behaviors[nature](new Random('chaos', seed, index, sequence, nth), nth);
}
