import { median } from '../reads/compare.ts';
import { addOrganizations } from './changes.ts';
import { measureBare, measureOrgApi, type Turn } from './measures.ts';
import type { BenchOptions, Store } from './options.ts';
import { describeRatios, describeTurns, type Result, storeWords, togetherMicros } from './results.ts';
import type { BenchStack } from './stack.ts';

const placesEach = 10;
/** Enough to compile workflow code and open connections on all sides. */
const warmUpDeliveries = 200;

/**
 * The sides as printed: org-api, a workflow with a normal activity, and one with a local activity.
 */
const sides = ['org-api', 'bare', 'bare local'] as const;
type Side = (typeof sides)[number];
type Turns = Record<Side, Turn[]>;

/**
 * Compares deliveries per second of org-api and the bare sides, in turns A B C, B C A, C A B, so
 * that drift affects all alike.
 */
export async function compareThroughput(
  stack: BenchStack,
  store: Store,
  { rounds, roundSeconds, underWay }: BenchOptions,
  report: (line: string) => void,
): Promise<Result> {
  const organizations = await addOrganizations(stack, Math.ceil(underWay / placesEach));
  const measure: Record<Side, (deliveries: number) => Promise<Turn>> = {
    'org-api': (deliveries) => measureOrgApi(stack, organizations, deliveries),
    bare: (deliveries) => measureBare(stack, 'bareDelivery', deliveries, underWay),
    'bare local': (deliveries) => measureBare(stack, 'bareLocalDelivery', deliveries, underWay),
  };
  await measure['org-api'](warmUpDeliveries);
  await measure['bare local'](warmUpDeliveries);
  const { deliveriesPerSecond } = await measure.bare(warmUpDeliveries);
  const deliveries = Math.max(100, Math.round(deliveriesPerSecond * roundSeconds[store]));
  const turns: Turns = { 'org-api': [], bare: [], 'bare local': [] };
  for (let round = 0; round < rounds; round += 1) {
    for (let place = 0; place < sides.length; place += 1) {
      const side = sides[(round + place) % sides.length] as Side;
      turns[side].push(await measure[side](deliveries));
    }
    const rates = sides.map((side) => `${side} ${turns[side][round]?.deliveriesPerSecond.toFixed(1)}/s`);
    report(`round ${round + 1} of ${rounds}: ${rates.join(', ')}`);
  }
  const eager = (side: Side) => `${(median(turns[side].map((turn) => turn.eagerShare ?? 0)) * 100).toFixed(0)} %`;
  return {
    title: `deliveries per second, ${storeWords[store]}`,
    headline:
      `org-api / bare = ${describeRatios(ratiosTo(turns, 'bare'))}; aim 0.9; ` +
      `org-api / bare local = ${describeRatios(ratiosTo(turns, 'bare local'))}`,
    details: [
      `${deliveries} deliveries a turn, ${organizations.length * placesEach} under way at once; ` +
        'processor time in µs a delivery',
      ...describeTurns(turns),
      `by processor time: org-api / bare = ${byProcessorTime(turns, 'bare')}, ` +
        `org-api / bare local = ${byProcessorTime(turns, 'bare local')}`,
      `starts that were eager: bare ${eager('bare')}, bare local ${eager('bare local')}`,
    ],
  };
}

/** Ratios of the deliveries per second, round by round. */
function ratiosTo(turns: Turns, other: Side): number[] {
  return turns['org-api'].map(
    (turn, round) => turn.deliveriesPerSecond / (turns[other][round]?.deliveriesPerSecond ?? 0),
  );
}

function byProcessorTime(turns: Turns, other: Side): string {
  const micros = (side: Side) => median(turns[side].map((turn) => togetherMicros(turn) ?? Number.NaN));
  const ratio = micros(other) / micros('org-api');
  return Number.isNaN(ratio) ? '?' : ratio.toFixed(2);
}
