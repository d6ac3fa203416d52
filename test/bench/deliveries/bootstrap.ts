import { shareOfSorted } from './measures.ts';

/** Values of one round on either side of a ratio, in the same unit. */
export interface RoundPair {
  above: readonly number[];
  below: readonly number[];
}

const resamples = 2_000;

/**
 * Returns the 95 % bootstrap interval of a ratio of percentiles over all rounds: `[low, high]`.
 * Resamples in two stages, rounds and then the values within each. A disturbance of the machine
 * affects a whole round, so single values are not independent, and resampling only them would give
 * too narrow an interval. The seed is fixed, so the same values give the same interval.
 */
export function intervalOfRatio(rounds: readonly RoundPair[], share: number): [low: number, high: number] {
  const next = createChance(1);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(next() * from.length)] as T;
  const computePercentile = (lists: readonly (readonly number[])[]) =>
    shareOfSorted(Float64Array.from(lists.flatMap((values) => values.map(() => pick(values)))).sort(), share);
  const ratios = Float64Array.from({ length: resamples }, () => {
    const drawn = rounds.map(() => pick(rounds));
    return computePercentile(drawn.map(({ above }) => above)) / computePercentile(drawn.map(({ below }) => below));
  }).sort();
  return [shareOfSorted(ratios, 0.025), shareOfSorted(ratios, 0.975)];
}

/**
 * Mulberry32: repeatable numbers from 0 to below 1. The sample generator hashes each draw, which is
 * too slow for five million.
 */
function createChance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
