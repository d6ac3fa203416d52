import { median } from '../reads/compare.ts';
import type { Turn } from './measures.ts';
import type { Store } from './options.ts';

/** The result of a part: a ratio or a time with its aim in one line, and the details. */
export interface Result {
  title: string;
  headline: string;
  details: string[];
}

/** The name for readers. */
export const storeWords: Record<Store, string> = { memory: 'Temporal in memory', file: 'Temporal with a file' };

/** `0.93 (0.90 to 0.97 in 6 rounds)`: the median of the ratios of the rounds. */
export function describeRatios(ratios: readonly number[]): string {
  const [least, most] = [Math.min(...ratios), Math.max(...ratios)];
  return `${median([...ratios]).toFixed(2)} (${least.toFixed(2)} to ${most.toFixed(2)} in ${ratios.length} rounds)`;
}

const columns: [title: string, width: number, value: (turns: readonly Turn[]) => string][] = [
  ['deliveries/s', 13, (turns) => median(turns.map((turn) => turn.deliveriesPerSecond)).toFixed(1)],
  ['worker', 9, (turns) => micros(turns.map((turn) => turn.workerMicros))],
  ['PostgreSQL', 12, (turns) => micros(turns.map((turn) => turn.postgresMicros))],
  ['Temporal', 10, (turns) => micros(turns.map((turn) => turn.temporalMicros))],
  ['together', 10, (turns) => micros(turns.map(togetherMicros))],
  ['retried', 9, (turns) => String(turns.reduce((sum, turn) => sum + turn.retried, 0))],
];

const nameWidth = 11;

/** A row for each side, medians over its turns. */
export function describeTurns(sides: Record<string, readonly Turn[]>): string[] {
  return [
    `${''.padEnd(nameWidth)}${columns.map(([title, width]) => title.padStart(width)).join('')}`,
    ...Object.entries(sides).map(
      ([name, turns]) =>
        `${name.padEnd(nameWidth)}${columns.map(([, width, value]) => value(turns).padStart(width)).join('')}`,
    ),
  ];
}

/**
 * Processor time per delivery (µs) without receiver and load; null where the system does not report
 * it.
 */
export function togetherMicros({ workerMicros, postgresMicros, temporalMicros }: Turn): number | null {
  if (workerMicros === null || postgresMicros === null || temporalMicros === null) return null;
  return workerMicros + postgresMicros + temporalMicros;
}

function micros(values: readonly (number | null)[]): string {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? '?' : Math.round(median(known)).toLocaleString('en');
}

/** The results of a run, ratios first. */
export function printResults(results: readonly Result[]): void {
  if (results.length === 0) return;
  console.log('');
  for (const { title, headline } of results) console.log(`${title}: ${headline}`);
  for (const { title, details } of results) {
    console.log(`\n${title}`);
    for (const line of details) console.log(`  ${line}`);
  }
}
