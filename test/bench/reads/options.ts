import { parseArgs } from 'node:util';

/** Something that the person at the terminal has to change; the message says what. */
export class BenchRefused extends Error {}

/** How long and how much; `profile`: instead of comparing, ours and the floor under `node --cpu-prof`. */
export interface BenchOptions {
  rounds: number;
  /** Of one wrk run. */
  runSeconds: number;
  warmUpSeconds: number;
  /** Of the paced run. */
  pacedSeconds: number;
  /** Grants of the larger region in the comparison that has to be flat. */
  largeGrants: number;
  profile: boolean;
}

/** @throws BenchRefused naming the options there are. */
export function readOptions(args: string[]): BenchOptions {
  try {
    const { values } = parseArgs({ args, options: { quick: { type: 'boolean' }, profile: { type: 'boolean' } } });
    const lengths = values.quick
      ? { rounds: 3, runSeconds: 2, warmUpSeconds: 2, pacedSeconds: 4, largeGrants: 100_000 }
      : { rounds: 5, runSeconds: 8, warmUpSeconds: 4, pacedSeconds: 15, largeGrants: 1_000_000 };
    return { ...lengths, profile: values.profile ?? false };
  } catch (error) {
    throw new BenchRefused(`${(error as Error).message}. The options are --quick and --profile.`);
  }
}
