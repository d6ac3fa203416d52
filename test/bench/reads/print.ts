import { type Comparison, type Measured, median, ratios } from './compare.ts';

const columns: [title: string, width: number, value: (runs: Measured[]) => string][] = [
  ['requests/s', 11, (runs) => String(Math.round(median(runs.map((run) => run.requestsPerSecond))))],
  ['p50 ms', 8, (runs) => median(runs.map((run) => run.p50Ms)).toFixed(1)],
  ['p99 ms', 8, (runs) => median(runs.map((run) => run.p99Ms)).toFixed(1)],
  ['program', 9, (runs) => micros(runs.map((run) => run.programMicros))],
  ['PostgreSQL', 11, (runs) => micros(runs.map((run) => run.postgresMicros))],
  ['Redis', 7, (runs) => micros(runs.map((run) => run.redisMicros))],
  ['together', 10, (runs) => micros(runs.map(togetherMicros))],
  ['not 2xx', 9, (runs) => String(runs.reduce((sum, run) => sum + run.errors + run.broken, 0))],
];

/** A row for each contender, medians over the rounds; processor time is µs per response. */
export function printComparison(title: string, comparison: Comparison): void {
  console.log(`\n${title}`);
  console.log(`  ${''.padEnd(12)}${columns.map(([name, width]) => name.padStart(width)).join('')}`);
  for (const [name, runs] of comparison.runs) {
    console.log(`  ${name.padEnd(12)}${columns.map(([, width, value]) => value(runs).padStart(width)).join('')}`);
  }
}

/** The median of a ratio over the rounds, all values, and the aim when there is one. */
export function printRatio(comparison: Comparison, name: string, other: string, aim: string): void {
  const rounds = ratios(comparison, name, other);
  const each = rounds.map((ratio) => ratio.toFixed(2)).join(' ');
  console.log(`  ${name} / ${other} = ${median(rounds).toFixed(2)}   (rounds ${each}; ${aim})`);
}

/**
 * Returns the processor time of one response of `other` divided by that of `name`: program,
 * PostgreSQL and Redis together. On an idle machine it agrees with the ratio of rates. On a busy
 * one it is more stable, because the scheduler favors the side with more processes.
 */
export function printProcessorRatio({ runs }: Comparison, name: string, other: string): void {
  const [own, others] = [name, other].map((each) =>
    median((runs.get(each) ?? []).map((run) => togetherMicros(run) ?? Number.NaN)),
  );
  console.log(`  by processor time: ${((others ?? 0) / (own ?? 0)).toFixed(2)}`);
}

/** The share of the program's processor time of one response that `name` takes more than `other`. */
export function printProcessorShare({ runs }: Comparison, name: string, other: string): void {
  const [own = Number.NaN, others = Number.NaN] = [name, other].map((each) =>
    median((runs.get(each) ?? []).map(({ programMicros }) => programMicros ?? Number.NaN)),
  );
  console.log(`  ${name}: encoding takes ${(100 * (1 - others / own)).toFixed(0)} % of the program's processor time`);
}

function togetherMicros({ programMicros, postgresMicros, redisMicros }: Measured): number | null {
  if (programMicros === null || postgresMicros === null || redisMicros === null) return null;
  return programMicros + postgresMicros + redisMicros;
}

function micros(values: (number | null)[]): string {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? '?' : median(known).toFixed(0);
}
