import { parseArgs } from 'node:util';
import { readWhole } from '#runtime/command-line.ts';

/** An error that the user has to fix; the message says how. */
export class BenchError extends Error {}

/**
 * Duration and size; `profile`: profiles org-api and the floor with `node --cpu-prof` instead of
 * comparing.
 */
export interface BenchOptions {
  rounds: number;
  /** Of one wrk run. */
  runSeconds: number;
  warmUpSeconds: number;
  /** Of the paced run. */
  pacedSeconds: number;
  /** Grants of the larger region, whose reads must cost the same. */
  largeGrants: number;
  profile: boolean;
}

/** @throws Error that names a wrong option. */
export function readOptions(args: string[]): BenchOptions {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: 'boolean' },
      profile: { type: 'boolean' },
      rounds: { type: 'string' },
      seconds: { type: 'string' },
    },
  });
  const lengths = values.quick
    ? { rounds: 3, runSeconds: 2, warmUpSeconds: 2, pacedSeconds: 4, largeGrants: 100_000 }
    : { rounds: 5, runSeconds: 8, warmUpSeconds: 4, pacedSeconds: 15, largeGrants: 1_000_000 };
  const rounds = values.rounds === undefined ? lengths.rounds : readWhole('--rounds', values.rounds, 50);
  const runSeconds = values.seconds === undefined ? lengths.runSeconds : readWhole('--seconds', values.seconds, 600);
  const warmUpSeconds = Math.min(lengths.warmUpSeconds, runSeconds);
  return { ...lengths, rounds, runSeconds, warmUpSeconds, profile: values.profile ?? false };
}
