import { findCpuMicros, type RunningProgram } from './processes.ts';
import { runWrk, type WrkRun } from './wrk.ts';

/** A measured program, and the servers whose processor time counts with it. */
export interface Contender {
  name: string;
  program: RunningProgram;
  /** What its load accepts; undefined: no encoding. */
  encoding?: string;
}

/**
 * One run: wrk's result, and processor time (µs) per response; null where the system does not
 * report it.
 */
export interface Measured extends WrkRun {
  programMicros: number | null;
  postgresMicros: number | null;
  redisMicros: number | null;
}

export interface Comparison {
  /** Runs of each contender, one per round. */
  runs: Map<string, Measured[]>;
  /** Answers of all runs, including the warm-up. */
  responses: number;
  /** Number of responses that were not 2xx or are missing. */
  failures: number;
}

export interface Load {
  keysFile: string;
  resource: string;
  rounds: number;
  runSeconds: number;
  warmUpSeconds: number;
  postgresPid: number;
  redisPid: number;
}

/**
 * Runs contenders in turn, A B C, B C A, C A B. Other work on the machine, checkpoints and a
 * growing audit log then affect all of them alike, and a ratio is taken within its round.
 */
export async function compare(contenders: Contender[], load: Load): Promise<Comparison> {
  const runs = new Map<string, Measured[]>(contenders.map(({ name }) => [name, []]));
  let responses = 0;
  let failures = 0;
  const count = (run: WrkRun) => {
    responses += run.requests;
    failures += run.errors + run.broken;
  };
  for (const { program, encoding } of contenders)
    count(await runWrk(program.url, { ...load, encoding, seconds: load.warmUpSeconds }));
  for (let round = 0; round < load.rounds; round += 1) {
    for (let place = 0; place < contenders.length; place += 1) {
      const contender = contenders[(round + place) % contenders.length] as Contender;
      const run = await measure(contender, load);
      count(run);
      runs.get(contender.name)?.push(run);
    }
  }
  return { runs, responses, failures };
}

async function measure({ program, encoding }: Contender, load: Load): Promise<Measured> {
  const pids = [program.pid, load.postgresPid, load.redisPid];
  const before = pids.map(findCpuMicros);
  const run = await runWrk(program.url, { ...load, encoding, seconds: load.runSeconds });
  const [programMicros = null, postgresMicros = null, redisMicros = null] = pids.map((pid, index) => {
    const [from, to] = [before[index] ?? null, findCpuMicros(pid)];
    return from === null || to === null ? null : (to - from) / run.requests;
  });
  return { ...run, programMicros, postgresMicros, redisMicros };
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1
    ? (sorted[middle] ?? Number.NaN)
    : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2;
}

/** The ratio of requests per second in each round. */
export function ratios({ runs }: Comparison, name: string, other: string): number[] {
  const others = runs.get(other) ?? [];
  return (runs.get(name) ?? []).map(
    (run, round) => run.requestsPerSecond / (others[round]?.requestsPerSecond ?? Number.NaN),
  );
}
