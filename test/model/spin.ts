import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { installPackages } from '../../apps/dev/servers/apt.ts';

const run = promisify(execFile);
const getPath = (model: string) => fileURLToPath(new URL(model, import.meta.url));
/** Longer than any path of the model; the verifier reports when it was not enough. */
const depth = 50_000;
const memoryMb = 2_000;

/** Sizes and switches of the model: `{ FAULTS: 2 }` becomes `-DFAULTS=2`. */
export type Definitions = Record<string, number>;

/** The result of an exhaustive verification. */
export interface Verification {
  errors: number;
  /** The first violated assertion or property, in Spin's words; null when there is none. */
  violation: string | null;
  states: number;
  /** Whether the search covered every state: neither depth nor memory was exhausted. */
  isComplete: boolean;
  /** Statements that no execution reached, as `proctype:line text`. */
  unreached: string[];
}

/**
 * Finds Spin and a C compiler, or installs Debian's packages.
 * @throws Error with the remedy when that fails.
 */
export async function prepareSpin(): Promise<void> {
  const isThere = async () => {
    try {
      await run('spin', ['-V']);
      await run('gcc', ['--version']);
      return true;
    } catch {
      return false;
    }
  };
  if (await isThere()) return;
  await installPackages(['spin', 'gcc', 'libc6-dev'], (line) => console.log(`  ${line}`));
  if (!(await isThere())) throw new Error('Spin is needed for the model: install the packages spin and gcc.');
}

/**
 * Verifies the model in every state: assertions and forgotten deliveries, or with `LIVENESS` the
 * property `settles` under weak fairness. A mutant usually fails soon, so it is compiled without
 * optimization.
 */
export async function verify(
  definitions: Definitions,
  { isMutant = false, model = 'delivery.pml' } = {},
): Promise<Verification> {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-model-'));
  try {
    const isLiveness = 'LIVENESS' in definitions;
    const flags = Object.entries(definitions).map(([name, value]) => `-D${name}=${value}`);
    const kind = isLiveness ? ['-DNFAIR=5'] : ['-DSAFETY'];
    const limits = [`-DMEMLIM=${memoryMb}`, ...(isMutant ? ['-O0'] : ['-O2'])];
    await run('spin', [...flags, '-a', getPath(model)], { cwd: folder });
    await run('gcc', ['-w', ...limits, ...kind, '-o', 'pan', 'pan.c'], { cwd: folder });
    const options = [`-m${depth}`, ...(isLiveness ? ['-a', '-f'] : [])];
    const { stdout } = await run(path.join(folder, 'pan'), options, { cwd: folder, maxBuffer: 64 * 1024 * 1024 });
    return read(stdout);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function read(output: string): Verification {
  const readNumber = (pattern: RegExp) => Number(pattern.exec(output)?.[1] ?? Number.NaN);
  const isTruncated = /max search depth too small|out of memory|Search not completed|truncated/i.test(output);
  const unreached: string[] = [];
  let proctype = '';
  for (const line of output.split('\n')) {
    proctype = /^unreached in (?:proctype |claim )?(\S+)/.exec(line)?.[1] ?? proctype;
    const [, at, text] = /^\t.*\w+\.pml:(\d+), state \d+, (".*")$/.exec(line) ?? [];
    if (at !== undefined) unreached.push(`${proctype}:${at} ${text}`);
  }
  return {
    errors: readNumber(/errors: (\d+)/),
    violation: /^pan:\d+: (.*) \(at depth/m.exec(output)?.[1] ?? null,
    states: readNumber(/^\s*([0-9.e+]+) states, stored/m),
    isComplete: !isTruncated && /^Full statespace search/m.test(output),
    unreached,
  };
}
