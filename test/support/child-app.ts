import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { childEnvironment } from './child-environment.ts';
import { allowSockets, noteOpenSockets } from './socket-guard.ts';

/** How a process ended: one of the two is null. */
export interface Ending {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** An app in a separate process. */
export interface SpawnedApp {
  process: ChildProcess;
  /** Its output so far, line by line. */
  lines: string[];
  /** Resolves when it has ended in any way. */
  ended: Promise<Ending>;
}

/** The same, when it listens. */
export interface ChildApp extends SpawnedApp {
  url: string;
  metricsUrl: string;
}

const thisCheckout = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Runs `apps/<name>/main.ts` of a folder (the repository's) with these settings and no others. It is
 * killed when the test ends.
 */
export function spawnApp(name: string, environment: Record<string, string>, root = thisCheckout): SpawnedApp {
  const child = spawn(process.execPath, [path.join(root, 'apps', name, 'main.ts')], {
    cwd: root,
    env: { ...childEnvironment, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (line) => lines.push(line));
  const ended = new Promise<Ending>((resolve) => child.once('close', (code, signal) => resolve({ code, signal })));
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) noteOpenSockets(name, child.pid ?? 0, environment);
    child.kill('SIGKILL');
    await ended;
  });
  return { process: child, lines, ended };
}

/** Starts an app; resolves when it listens. */
export async function startApp(
  name: string,
  environment: Record<string, string>,
  root = thisCheckout,
): Promise<ChildApp> {
  const child = spawnApp(name, environment, root);
  const listening = new Promise<{ url: string; metricsUrl: string }>((resolve) => {
    createInterface({ input: child.process.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      if (!line.includes('"metricsUrl"')) return;
      const { url, metricsUrl } = JSON.parse(line) as { url: string; metricsUrl: string };
      resolve({ url, metricsUrl });
    });
  });
  const urls = await Promise.race([listening, child.ended]);
  if (!('url' in urls)) throw new Error(`${name} ended before it listened: ${child.lines.join('\n')}`);
  // A worker has only the second.
  allowSockets('test', ...[urls.url, urls.metricsUrl].filter((url) => url !== undefined));
  return { ...child, ...urls };
}
