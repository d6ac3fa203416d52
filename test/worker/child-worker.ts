import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, vi } from 'vitest';
import { childEnvironment } from '#test/child-environment.ts';

/** A worker in a separate process, as in a pod. */
export interface ChildWorker {
  metricsUrl: string;
  /** Its output so far, line by line. */
  lines: string[];
  process: ChildProcess;
  /** Sends SIGTERM; resolves with the exit code. Safe to call twice. */
  stop(): Promise<number | null>;
  /** Resolves with the exit code when it has ended. */
  ended: Promise<number | null>;
}

const thisCheckout = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Runs the worker of a folder (the repository's), or another app, with these settings and without
 * this environment; it is killed when the test ends.
 */
export function spawnWorker(
  environment: Record<string, string>,
  root = thisCheckout,
  app = 'worker',
): Omit<ChildWorker, 'metricsUrl'> {
  const child = spawn(process.execPath, [path.join(root, 'apps', app, 'main.ts')], {
    cwd: root,
    env: { ...childEnvironment, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on('line', (line) => lines.push(line));
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const stop = () => {
    child.kill('SIGTERM');
    return ended;
  };
  return { lines, process: child, stop, ended };
}

/** Starts a worker; resolves when it delivers. */
export async function startChildWorker(environment: Record<string, string>, root = thisCheckout): Promise<ChildWorker> {
  const child = spawnWorker(environment, root);
  const running = new Promise<string>((resolve) => {
    createInterface({ input: child.process.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      if (line.includes('"the worker is running"')) resolve((JSON.parse(line) as { metricsUrl: string }).metricsUrl);
    });
  });
  const metricsUrl = await Promise.race([running, child.ended]);
  if (typeof metricsUrl !== 'string') throw new Error(`the worker ended: ${child.lines.join('\n')}`);
  await vi.waitFor(async () => expect((await fetch(`${metricsUrl}/readyz`)).status).toBe(200), { timeout: 40_000 });
  return { ...child, metricsUrl };
}
