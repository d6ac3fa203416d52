import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { childEnvironment } from './child-environment.ts';
import type { TestDatabase } from './database.ts';
import { apiEnvironment } from './setup.ts';

/** How a process ended: one of the two is null. */
export interface Ending {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** An API in a separate process, for tests of signals. */
export interface ChildApi {
  url: string;
  metricsUrl: string;
  process: ChildProcess;
  /** Its output so far, line by line. */
  lines: string[];
  /** Resolves when it has ended in any way. */
  ended: Promise<Ending>;
}

const main = fileURLToPath(new URL('../../apps/api/main.ts', import.meta.url));

/** Runs `apps/api/main.ts` with these settings and no others. It is killed when the test ends. */
export function spawnApi(environment: Record<string, string>): Omit<ChildApi, 'url' | 'metricsUrl'> {
  const child = spawn(process.execPath, [main], {
    env: { ...childEnvironment, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (line) => lines.push(line));
  const ended = new Promise<Ending>((resolve) => child.once('close', (code, signal) => resolve({ code, signal })));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { process: child, lines, ended };
}

/** Starts an API on a test's database in a separate process; resolves when it listens. */
export async function startChildApi(database: TestDatabase, settings: Record<string, string> = {}): Promise<ChildApi> {
  const child = spawnApi(apiEnvironment(database, settings));
  const listening = new Promise<{ url: string; metricsUrl: string }>((resolve) => {
    createInterface({ input: child.process.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      if (!line.includes('"metricsUrl"')) return;
      const { url, metricsUrl } = JSON.parse(line) as { url: string; metricsUrl: string };
      resolve({ url, metricsUrl });
    });
  });
  const urls = await Promise.race([listening, child.ended]);
  if (!('url' in urls)) throw new Error(`the API ended before it listened: ${child.lines.join('\n')}`);
  return { ...child, ...urls };
}
