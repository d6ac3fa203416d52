import { parseArgs } from 'node:util';
import { readWhole } from '#runtime/command-line.ts';

/**
 * The parts of the benchmark, in their order. `idle` comes before the parts after which PostgreSQL
 * cleans up millions of rows.
 */
export const parts = [
  'throughput',
  'connections',
  'latency',
  'idle',
  'isolation',
  'slow',
  'backlog',
  'ordered',
  'writers',
] as const;
export type Part = (typeof parts)[number];

/** Where Temporal stores its state. */
export const stores = ['memory', 'file'] as const;
export type Store = (typeof stores)[number];

export interface BenchOptions {
  parts: readonly Part[];
  stores: readonly Store[];
  /** Number of turns of each side of a comparison. */
  rounds: number;
  /**
   * Approximate seconds of a turn of throughput: a turn has as many deliveries as the bare side
   * makes in them. With a file they are longer, because the disk absorbs a short burst of writes.
   */
  roundSeconds: Record<Store, number>;
  /** Concurrent deliveries of either side: org-api has ten for each webhook. */
  underWay: number;
  latencyEvents: number;
  latencyPerSecond: number;
  /** Number of turns with the hanging receiver, and without it. */
  isolationRounds: number;
  isolationSeconds: number;
  isolationPerSecond: number;
  /** How long it hangs before a turn with it is measured. */
  hangingLeadSeconds: number;
  hangingEvents: number;
  /** Events queued for each slow webhook. */
  slowEvents: number;
  /** Events of one turn of the backlog. */
  backlogEvents: number;
  /** Number of turns of each side of the backlog. */
  backlogRounds: number;
  /** Posts of one turn over new or kept connections. */
  connectionPosts: number;
  /** Grants that each side of the writers commits in a turn. */
  writersGrants: number;
  /**
   * Settings of org-api for this run, such as `DATABASE_POOL_MAX=20`; the bare side keeps the
   * default slots.
   */
  settings: Record<string, string>;
  /** Writes a processor profile of org-api's worker and prints where its time went. */
  profile: boolean;
}

const full = {
  rounds: 6,
  roundSeconds: { memory: 6, file: 20 },
  latencyEvents: 300,
  isolationRounds: 10,
  isolationSeconds: 24,
  hangingLeadSeconds: 22,
  backlogEvents: 5_000,
  connectionPosts: 1_000,
  writersGrants: 4_000,
};
const quick = {
  rounds: 4,
  roundSeconds: { memory: 2, file: 6 },
  latencyEvents: 100,
  isolationRounds: 4,
  isolationSeconds: 6,
  hangingLeadSeconds: 2,
  backlogEvents: 500,
  connectionPosts: 300,
  writersGrants: 1_000,
};

/** @throws Error that names the option. */
export function readOptions(args: string[]): BenchOptions {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: 'boolean' },
      only: { type: 'string' },
      store: { type: 'string' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
      'under-way': { type: 'string' },
      'per-second': { type: 'string' },
      set: { type: 'string', multiple: true },
      profile: { type: 'boolean' },
    },
  });
  const lengths = values.quick ? quick : full;
  const rounds = values.rounds === undefined ? null : readWhole('--rounds', values.rounds, 50);
  const seconds = values.seconds === undefined ? null : readWhole('--seconds', values.seconds, 600);
  return {
    parts: values.only === undefined ? parts : [readChoice('--only', parts, values.only)],
    stores: values.store === undefined ? stores : [readChoice('--store', stores, values.store)],
    rounds: rounds ?? lengths.rounds,
    roundSeconds: seconds === null ? lengths.roundSeconds : { memory: seconds, file: seconds },
    underWay: readWhole('--under-way', values['under-way'] ?? '100', 500),
    latencyEvents: lengths.latencyEvents,
    latencyPerSecond: 10,
    isolationRounds: rounds ?? lengths.isolationRounds,
    isolationSeconds: seconds ?? lengths.isolationSeconds,
    isolationPerSecond: readWhole('--per-second', values['per-second'] ?? '10', 100),
    hangingLeadSeconds: lengths.hangingLeadSeconds,
    hangingEvents: 5_000,
    slowEvents: 500,
    backlogEvents: lengths.backlogEvents,
    backlogRounds: rounds ?? 3,
    connectionPosts: lengths.connectionPosts,
    writersGrants: lengths.writersGrants,
    settings: Object.fromEntries((values.set ?? []).map(readSetting)),
    profile: values.profile ?? false,
  };
}

function readChoice<T extends string>(name: string, values: readonly T[], text: string): T {
  const found = values.find((value) => value === text);
  if (found === undefined) throw new Error(`${name} must be one of ${values.join(', ')}.`);
  return found;
}

function readSetting(text: string): [string, string] {
  const [, name, value] = /^([A-Z_]+)=(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new Error('--set must be NAME=VALUE.');
  return [name, value];
}
