import { expect, vi } from 'vitest';
import { type SpawnedApp, spawnApp, startApp } from './child-app.ts';

/** A worker in a separate process, as in a pod. */
export interface ChildWorker extends Omit<SpawnedApp, 'ended'> {
  metricsUrl: string;
  /** Sends SIGTERM; resolves with the exit code. Safe to call twice. */
  stop(): Promise<number | null>;
  /** Resolves with the exit code when it has ended. */
  ended: Promise<number | null>;
}

/** Runs the worker of a folder (the repository's). */
export const spawnWorker = (environment: Record<string, string>, root?: string): Omit<ChildWorker, 'metricsUrl'> =>
  withStop(spawnApp('worker', environment, root));

/** Starts a worker; resolves when it is ready. */
export async function startChildWorker(environment: Record<string, string>, root?: string): Promise<ChildWorker> {
  const child = await startApp('worker', environment, root);
  const { metricsUrl } = child;
  await vi.waitFor(async () => expect((await fetch(`${metricsUrl}/readyz`)).status).toBe(200), { timeout: 40_000 });
  return { ...withStop(child), metricsUrl };
}

function withStop({ process, lines, ended: ending }: SpawnedApp): Omit<ChildWorker, 'metricsUrl'> {
  const ended = ending.then(({ code }) => code);
  const stop = () => {
    process.kill('SIGTERM');
    return ended;
  };
  return { process, lines, ended, stop };
}
