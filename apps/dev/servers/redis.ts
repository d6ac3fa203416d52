/**
 * The embedded Redis of `npm start` and `npm test`: `redis-server` or `valkey-server`, 7 or newer.
 * Design section 2, "Servers".
 *
 * Decisions (2026-11-20):
 * - Nothing is kept on disk: the limiter's memory is worth 60 seconds. `noeviction`, because an
 *   evicted window would let a key read too much.
 * - Debian's package may start its own server on 6379; ours never takes that port by itself, so the
 *   two do not meet.
 * - No password: it holds fingerprints and times of development keys, on loopback.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { installPackages } from './apt.ts';
import { choosePort, isPortFree } from './ports.ts';
import {
  fileSize,
  isServerOf,
  makeFolder,
  readLastComplaint,
  ServerUnavailableError,
  secondsSince,
  spawnDetached,
  stopServer,
} from './process.ts';

/** A Redis that answers. `version` as its own line says, `7.0.15`. */
export interface RunningRedis {
  url: string;
  port: number;
  version: string;
  adopted: boolean;
  pid: number;
  /** SIGTERM, escalating: at most 15 s. Safe to call twice. */
  stop(): Promise<void>;
}

type Report = (line: string) => void;
type Program = { command: string; version: string };
type Found = { pid: number; port: number };

const noteFile = 'server.json'; // {pid, port} of the last Redis started for the folder it lies in
const OLDEST_MAJOR = 7;
const READY_DEADLINE_MS = 10_000;
const STOP_SIGNALS = [
  ['SIGTERM', 10_000],
  ['SIGKILL', 5_000],
] as const;

/**
 * Brings up Redis for `stateFolder`, or adopts the one that runs for it; resolves when it answers
 * PING. `port` null takes the one of last time or any free one; a taken port is replaced, said
 * aloud. Null, after a line that says so, when this machine has no Redis and gets none. Throws
 * {@link ServerUnavailableError} when it has one that fails.
 */
export async function startRedis(options: {
  stateFolder: string;
  port?: number | null;
  report: Report;
}): Promise<RunningRedis | null> {
  const { stateFolder, port = null, report } = options;
  const startedAt = performance.now();
  const program = await getProgram(report);
  if (!program) return null;
  makeFolder(path.join(stateFolder, 'redis'));
  const folder = realpathSync(path.join(stateFolder, 'redis'));
  const last = readNote(folder);
  const adopted = last && (await adopt(last, folder));
  const redis = adopted ?? (await launch({ program, folder, preferred: port ?? last?.port ?? null, report }));
  if (!adopted) writeFileSync(path.join(folder, noteFile), JSON.stringify(redis));
  report(
    `Redis ${program.version} ${adopted ? 'was running already' : 'is ready'} on 127.0.0.1:${redis.port} ` +
      `(${secondsSince(startedAt)})`,
  );
  let stopped: Promise<void> | undefined;
  const stop = () => {
    stopped ??= stopServer(redis.pid, folder, STOP_SIGNALS);
    return stopped;
  };
  return {
    ...redis,
    url: `redis://127.0.0.1:${redis.port}`,
    version: program.version,
    adopted: adopted !== null,
    stop,
  };
}

/** Stops the Redis of a state folder, no matter which process started it. */
export async function stopRedisOf(stateFolder: string): Promise<void> {
  if (!existsSync(path.join(stateFolder, 'redis'))) return;
  const folder = realpathSync(path.join(stateFolder, 'redis'));
  const last = readNote(folder);
  if (last) await stopServer(last.pid, folder, STOP_SIGNALS);
}

async function getProgram(report: Report): Promise<Program | null> {
  const found = findProgram();
  if (found) return found;
  const installed = (await installPackages(['redis-server'], report)) ? findProgram() : null;
  if (!installed) {
    report(
      `Redis: no redis-server or valkey-server of version ${OLDEST_MAJOR} or newer on PATH, so the limiter ` +
        'counts inside the API process. Install one, or set REDIS_URL, to count in Redis.',
    );
  }
  return installed;
}

function findProgram(): Program | null {
  for (const command of ['redis-server', 'valkey-server']) {
    const version = /\bv=(\d+[\d.]*)/.exec(spawnSync(command, ['--version'], { encoding: 'utf8' }).stdout ?? '')?.[1];
    if (version && Number.parseInt(version, 10) >= OLDEST_MAJOR) return { command, version };
  }
  return null;
}

function readNote(folder: string): Found | null {
  try {
    const { pid, port } = JSON.parse(readFileSync(path.join(folder, noteFile), 'utf8')) as Partial<Found>;
    return pid && port ? { pid, port } : null;
  } catch {
    return null;
  }
}

/**
 * The Redis of last time, if it lives and answers. One that lives and does not (a test paused it)
 * is stopped, or no one ever would.
 */
async function adopt(last: Found, folder: string): Promise<Found | null> {
  const isGone = () => !isServerOf(last.pid, folder);
  if (isGone()) return null;
  if (await answers(last, isGone)) return last;
  await stopServer(last.pid, folder, STOP_SIGNALS);
  return null;
}

async function launch(options: {
  program: Program;
  folder: string;
  preferred: number | null;
  report: Report;
}): Promise<Found> {
  const { program, folder, preferred, report } = options;
  const logFile = path.join(path.dirname(folder), 'redis.log');
  for (let triesLeft = 3; ; triesLeft -= 1) {
    const port = await choosePort(preferred, 'Redis', report);
    const logStart = fileSize(logFile);
    const child = await spawnDetached({
      command: program.command,
      args: settings(port, folder),
      cwd: folder,
      env: null,
      logFile,
      account: null,
    });
    if (await answers({ pid: child.pid, port }, child.hasExited)) return { pid: child.pid, port };
    const portWasTaken = child.hasExited() && !(await isPortFree(port));
    if (portWasTaken && triesLeft > 1) continue;
    await stopServer(child.pid, folder, STOP_SIGNALS);
    const reason = readLastComplaint(logFile, logStart) || 'no answer';
    throw new ServerUnavailableError(
      `Redis did not start (${reason}): fix that (its log is ${logFile}), or set REDIS_URL to a Redis 7 or newer.`,
    );
  }
}

/**
 * The folder stays on the command line, by which we know the process again; Redis would otherwise
 * write a title of its own over it.
 */
function settings(port: number, folder: string): string[] {
  const values = {
    bind: '127.0.0.1',
    port: String(port),
    dir: folder,
    save: '',
    appendonly: 'no',
    'maxmemory-policy': 'noeviction',
    'set-proc-title': 'no',
  };
  return Object.entries(values).flatMap(([name, value]) => [`--${name}`, value]);
}

/**
 * Waits until the process under `pid` itself answers on `port`; false when it is gone before, or at
 * the deadline.
 */
async function answers({ pid, port }: Found, isGone: () => boolean): Promise<boolean> {
  const endsAt = performance.now() + READY_DEADLINE_MS;
  while (!isGone() && performance.now() < endsAt) {
    if ((await findPidBehind(port)) === pid) return true;
    await wait(25);
  }
  return false;
}

/** The pid that the Redis on `port` gives for itself, null when none answers. */
async function findPidBehind(port: number): Promise<number | null> {
  const client = new Redis({
    port,
    host: '127.0.0.1',
    lazyConnect: true,
    retryStrategy: () => null,
    connectTimeout: 1_000,
    commandTimeout: 1_000,
    maxRetriesPerRequest: 0,
  });
  client.on('error', () => {}); // the failed command says it as well
  try {
    await client.connect();
    return Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1] ?? 0) || null;
  } catch {
    return null;
  } finally {
    client.disconnect();
  }
}
