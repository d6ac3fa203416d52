import { median } from '../reads/compare.ts';
import { addOrganizations } from './changes.ts';
import { measureBare, measureOurs, type Turn } from './measures.ts';
import type { BenchOptions, Store } from './options.ts';
import { describeRatios, describeTurns, type Result, storeWords, togetherMicros } from './results.ts';
import type { BenchStack } from './stack.ts';

const placesEach = 10;
/** Enough that workflow code is compiled and connections are open on both sides. */
const warmUpDeliveries = 200;

/** Deliveries per second of ours beside the bare side's, in turns A B B A, so that drift falls on both alike. */
export async function compareThroughput(
  stack: BenchStack,
  store: Store,
  { rounds, roundSeconds, underWay }: BenchOptions,
  report: (line: string) => void,
): Promise<Result> {
  const organizations = await addOrganizations(stack, Math.ceil(underWay / placesEach));
  await measureOurs(stack, organizations, warmUpDeliveries);
  const { deliveriesPerSecond } = await measureBare(stack, warmUpDeliveries, underWay);
  const deliveries = Math.max(100, Math.round(deliveriesPerSecond * roundSeconds));
  const turns = { ours: [] as Turn[], bare: [] as Turn[] };
  for (let round = 0; round < rounds; round += 1) {
    for (const side of round % 2 === 0 ? (['ours', 'bare'] as const) : (['bare', 'ours'] as const)) {
      const turn =
        side === 'ours'
          ? await measureOurs(stack, organizations, deliveries)
          : await measureBare(stack, deliveries, underWay);
      turns[side].push(turn);
    }
    const [ours, bare] = [turns.ours[round], turns.bare[round]].map((turn) => turn?.deliveriesPerSecond ?? 0);
    report(`round ${round + 1} of ${rounds}: ours ${ours?.toFixed(1)}/s, bare ${bare?.toFixed(1)}/s`);
  }
  const ratios = turns.ours.map(
    (turn, round) => turn.deliveriesPerSecond / (turns.bare[round]?.deliveriesPerSecond ?? 0),
  );
  return {
    title: `deliveries per second, ${storeWords[store]}`,
    headline: `ours / bare = ${describeRatios(ratios)}; aim 0.9`,
    details: [
      `${deliveries} deliveries a turn, ${organizations.length * placesEach} under way at once; processor time in µs a delivery`,
      ...describeTurns(turns),
      `by processor time: ours / bare = ${byProcessorTime(turns)}; bare starts that were eager: ${(median(turns.bare.map((turn) => turn.eagerShare ?? 0)) * 100).toFixed(0)} %`,
    ],
  };
}

function byProcessorTime({ ours, bare }: Record<'ours' | 'bare', Turn[]>): string {
  const [own, other] = [ours, bare].map((turns) => median(turns.map((turn) => togetherMicros(turn) ?? Number.NaN)));
  const ratio = (other ?? 0) / (own ?? 0);
  return Number.isNaN(ratio) ? '?' : ratio.toFixed(2);
}
