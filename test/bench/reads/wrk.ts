import { execFile, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { endWithUs } from './children.ts';
import { BenchError } from './options.ts';

const script = fileURLToPath(new URL('./requests.lua', import.meta.url));
const run = promisify(execFile);

/** Open connections of a run, each with one request in progress. */
export const wrkConnections = 64;

/**
 * One run of wrk: a closed loop, so its latencies are those at full load. `errors` counts responses
 * that were not 2xx, `broken` connections and timeouts.
 */
export interface WrkRun {
  requests: number;
  requestsPerSecond: number;
  errors: number;
  broken: number;
  p50Ms: number;
  p99Ms: number;
}

/** @throws BenchError with the remedy when wrk is not on PATH. */
export function requireWrk(): void {
  if (spawnSync('wrk', ['-v']).error === undefined) return;
  throw new BenchError(
    'The benchmark needs wrk and finds none on PATH: install it (Debian and Ubuntu: apt-get ' +
      'install wrk; macOS: brew install wrk).',
  );
}

let firstLine = 0;

/** Loads a program for some seconds; requests.lua spreads the keys. */
export async function runWrk(
  url: string,
  load: { keysFile: string; resource: string; seconds: number; encoding?: string | undefined },
): Promise<WrkRun> {
  const { keysFile, resource, seconds, encoding = 'identity' } = load;
  const options = ['-t1', `-c${wrkConnections}`, `-d${seconds}s`, '--timeout', '10s', '--latency', '-s', script, url];
  const lua = ['--', keysFile, resource || '-', String(firstLine), encoding];
  const running = run('wrk', [...options, ...lua], { timeout: (seconds + 30) * 1000 });
  endWithUs(running.child);
  const { stdout } = await running;
  const { requests, micros, errors, broken, p50Micros, p99Micros } = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
  firstLine += requests;
  return {
    requests,
    requestsPerSecond: requests / (micros / 1e6),
    errors,
    broken,
    p50Ms: p50Micros / 1000,
    p99Ms: p99Micros / 1000,
  };
}
