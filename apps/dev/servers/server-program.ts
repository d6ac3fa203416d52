import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { StartupError } from '#runtime/errors.ts';
import { isFree, portVariable } from './ports.ts';
import { type Launch, type Report, type StartedProcess, secondsSince, spawnDetached, stopNoted } from './process.ts';

/** A server or an app of a stack. `Server` is what its launch has chosen. */
export interface ServerProgram<Server extends { port: number }> {
  /** With its version: `Redis 7.0.15`. */
  name: string;
  /** Where its process is noted, and by default its log. */
  folder: string;
  logFile?: string;
  /** How long it may take to answer. */
  readyMs: number;
  /** What else can be done: `set REDIS_URL to a Redis 7 or newer`. */
  instead?: string;
  report: Report;
  /** Chooses ports and says how to start it. `ports` are those that it may move from, by another call. */
  prepare(): Promise<{ server: Server; launch: Launch; ports: readonly (number | null)[] }>;
  /** @throws Error that says why the server cannot be used now. Another process may answer on its port. */
  check(server: Server, process: StartedProcess): Promise<void>;
  /** Whether a process that ended may be followed by another one. */
  isTemporary?(): boolean;
}

/** The file that notes the process of a server's folder. */
const getPidFile = (folder: string) => path.join(folder, 'server.pid');

const retryMs = 10_000;
/** How often a server moves from a port that another program took after it was chosen. */
const maxMoves = 3;
const progressEveryMs = 5_000;

/** Stops the server of a folder that a killed process has left running. */
export const stopLeftOver = (folder: string): Promise<void> => stopNoted(getPidFile(folder));

/**
 * Starts a server, after the one that a killed start has left. Resolves when it answers. `stop` may
 * be called twice.
 *
 * @throws StartupError
 */
export async function startServer<Server extends { port: number }>(program: ServerProgram<Server>) {
  const { name, folder, logFile = path.join(folder, 'log'), report } = program;
  const startedAt = performance.now();
  mkdirSync(folder, { recursive: true });
  await stopLeftOver(folder);
  for (let moves = 0; ; ) {
    const { server, launch, ports } = await program.prepare();
    const process = await spawnDetached(launch, logFile, getPidFile(folder));
    const reason = await untilUsable(program, server, process);
    if (reason === null) {
      report(`${name} is ready on 127.0.0.1:${server.port} (${secondsSince(startedAt)})`);
      return { ...server, pid: process.pid, exited: process.exited, stop: process.stop };
    }
    await process.stop();
    if (moves < maxMoves && (await isAnyTaken(ports))) {
      moves += 1;
      report(`${name}: another program took its port meanwhile; trying another one`);
      continue;
    }
    if (!program.isTemporary?.() || performance.now() - startedAt > retryMs) {
      const or = program.instead === undefined ? '' : ` Or ${program.instead}.`;
      throw new StartupError(
        `${name} did not start (${reason}): fix that (its log is ${logFile}). If port ${server.port} is taken, set ` +
          `${portVariable}, the first port of a stack.${or}`,
      );
    }
    report(`${name}: another process still uses its data; trying again for up to 10 s`);
    await wait(500);
  }
}

async function isAnyTaken(ports: readonly (number | null)[]): Promise<boolean> {
  for (const port of ports) if (port !== null && !(await isFree(port))) return true;
  return false;
}

/** Waits until a server can be used. Returns null then, else why not. */
async function untilUsable<Server extends { port: number }>(
  { name, readyMs, report, check }: ServerProgram<Server>,
  server: Server,
  process: StartedProcess,
): Promise<string | null> {
  const startedAt = performance.now();
  for (let reportAt = startedAt + progressEveryMs; ; await wait(25)) {
    const failure = await check(server, process).then(
      () => null,
      ({ message }: Error) => message,
    );
    if (process.hasExited()) return process.readComplaint() || process.exited;
    if (failure === null) return null;
    if (performance.now() - startedAt >= readyMs) return `not usable after ${secondsSince(startedAt)}: ${failure}`;
    if (performance.now() < reportAt) continue;
    report(`${name}: still starting, ${secondsSince(startedAt)} (${failure})`);
    reportAt += progressEveryMs;
  }
}
