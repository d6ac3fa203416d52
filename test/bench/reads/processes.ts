import { execFile, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { KeySecrets } from '#domain/keys/key.ts';
import { getFreePort } from '../../../apps/dev/servers/ports.ts';
import { endWithUs } from './children.ts';
import type { PacedLoad, PacedRun } from './paced.ts';

/** The compared programs; each is a file that takes the API's settings from its environment. */
const programFiles = {
  'org-api': new URL('../../../apps/api/main.ts', import.meta.url),
  floor: new URL('./programs/floor.ts', import.meta.url),
  fastify: new URL('./programs/fastify.ts', import.meta.url),
};
export type ProgramName = keyof typeof programFiles;

/** A program that listens on loopback in a separate process. */
export interface RunningProgram {
  url: string;
  pid: number;
  /** Sends SIGTERM, and SIGKILL after 10 s; resolves when it has ended. Safe to call twice. */
  stop(): Promise<void>;
}

const readyMs = 60_000;

/**
 * Starts a program and waits until it accepts connections. Its log goes to /dev/null, its errors to
 * this process's.
 */
export async function startProgram(
  name: ProgramName,
  settings: { databaseUrl: string; redisUrl: string; secrets: KeySecrets; nodeOptions?: string[] },
): Promise<RunningProgram> {
  const { databaseUrl, redisUrl, secrets, nodeOptions = [] } = settings;
  const port = await getFreePort();
  const child = spawn(process.execPath, [...nodeOptions, fileURLToPath(programFiles[name])], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      NODE_ENV: 'production',
      REGION: secrets.region,
      API_DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      KEY_PEPPERS: secrets.peppers.map(({ version, secret }) => `${version}:${secret.toString('base64')}`).join(','),
      KEY_TAG_SECRETS: secrets.tagSecrets.map((secret) => secret.toString('base64')).join(','),
      HOST: '127.0.0.1',
      PORT: String(port),
      METRICS_PORT: '0',
    },
  });
  endWithUs(child);
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const url = `http://127.0.0.1:${port}`;
  const endsAt = performance.now() + readyMs;
  while (!(await responds(url))) {
    if (child.exitCode !== null || performance.now() > endsAt) {
      child.kill('SIGKILL');
      throw new Error(`the program ${name} did not start within ${readyMs / 1000} s; what it said stands above`);
    }
    await wait(50);
  }
  return {
    url,
    pid: child.pid ?? 0,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      const giveUp = setTimeout(() => child.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(giveUp);
    },
  };
}

async function responds(url: string): Promise<boolean> {
  return fetch(url).then(
    () => true,
    () => false,
  );
}

/** Runs the paced load in a separate process. */
export async function runPacedLoad(load: PacedLoad): Promise<PacedRun> {
  const file = fileURLToPath(new URL('./paced.ts', import.meta.url));
  const running = promisify(execFile)(process.execPath, [file, JSON.stringify(load)], {
    timeout: (load.seconds + load.warmUpSeconds + 30) * 1000,
  });
  endWithUs(running.child);
  const { stdout } = await running;
  return JSON.parse(stdout);
}

const ticksPerSecond = 100; // USER_HZ of every Linux on which Node runs

/**
 * Returns the processor time (µs) that a process and its children, running or ended, have used so
 * far; null where there is no /proc, or no such process.
 */
export function findCpuMicros(pid: number | null): number | null {
  if (pid === null) return null;
  const own = readStat(pid);
  if (own === null) return null;
  let ticks = own.ticks;
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    const child = readStat(Number(entry));
    if (child?.parent === pid) ticks += child.ticks;
  }
  return (ticks * 1e6) / ticksPerSecond;
}

function readStat(pid: number): { parent: number; ticks: number } | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number); // from the third, `state`
    const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fields.slice(11, 15);
    return { parent: fields[1] ?? 0, ticks: user + system + childrenUser + childrenSystem };
  } catch {
    return null;
  }
}
