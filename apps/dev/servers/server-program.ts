import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { StartupError } from '#runtime/errors.ts';
import { portVariable } from './ports.ts';
import {
  becomesTrue,
  fileSize,
  findNoted,
  type Launch,
  noteProcess,
  type Report,
  readLastComplaint,
  type StartedProcess,
  secondsSince,
  spawnDetached,
  stopNoted,
} from './process.ts';

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
  /** Chooses ports and says how to start it. */
  prepare(): Promise<{ server: Server; launch: Launch }>;
  /** Returns why the server cannot be used now, or null. Another process may answer on its port. */
  findFailure(server: Server, process: StartedProcess): Promise<string | null>;
  /** Whether a process that ended may be followed by another one. */
  isTemporary?(): boolean;
}

/** The file that notes the process of a server's folder. */
const noteOf = (folder: string) => path.join(folder, 'server.pid');

const retryMs = 10_000;
const progressEveryMs = 5_000;

/** Stops the server of a folder that a killed process has left running. */
export const stopLeftOver = (folder: string): Promise<void> => stopNoted(noteOf(folder));

/** Returns the pid of the server of a folder, or null when none runs. */
export const findServer = (folder: string): number | null => findNoted(noteOf(folder));

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
  for (;;) {
    const logStart = fileSize(logFile);
    const { server, launch } = await program.prepare();
    const process = await spawnDetached(launch, logFile);
    noteProcess(noteOf(folder), process);
    const failure = await untilUsable(program, server, process);
    if (failure === null) {
      report(`${name} is ready on 127.0.0.1:${server.port} (${secondsSince(startedAt)})`);
      return { ...server, pid: process.pid, exited: process.exited, stop: process.stop };
    }
    await process.stop();
    if (!program.isTemporary?.() || performance.now() - startedAt > retryMs) {
      const reason = failure || readLastComplaint(logFile, logStart) || (await process.exited);
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

/** Waits until a server answers. Returns null then, else why it cannot be used; '' when it ended. */
async function untilUsable<Server extends { port: number }>(
  { name, readyMs, report, findFailure }: ServerProgram<Server>,
  server: Server,
  process: StartedProcess,
): Promise<string | null> {
  const startedAt = performance.now();
  let reportAt = startedAt + progressEveryMs;
  let failure: string | null = '';
  const isDecided = async () => {
    failure = await findFailure(server, process);
    if (process.hasExited()) failure = '';
    else if (failure !== null && performance.now() >= reportAt) {
      report(`${name}: still starting, ${secondsSince(startedAt)} (${failure})`);
      reportAt += progressEveryMs;
    }
    return failure === null || failure === '';
  };
  const inTime = await becomesTrue(isDecided, readyMs);
  return inTime ? failure : `not usable after ${secondsSince(startedAt)}: ${failure}`;
}
