/**
 * The part that the three servers of a stack share: adopt the one that runs, or launch it; wait until
 * it answers; stop it.
 *
 * A server is found by its pid, and `mark` on its command line says that it is the stack's: pids are
 * used again.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { once } from '#runtime/flow/once.ts';
import {
  fileSize,
  isServerOf,
  type Report,
  readLastComplaint,
  ServerUnavailableError,
  type StopSignals,
  secondsSince,
  type spawnDetached,
  stopServer,
} from './process.ts';

/** A process, and the port by which it is known. */
interface Running {
  pid: number;
  port: number;
}

export interface ServerProgram<Server extends Running> {
  /** With its version: `Redis 7.0.15`. */
  name: string;
  mark: string;
  logFile: string;
  stopSignals: StopSignals;
  /** How long a server that was launched may take to answer, and one that runs already. */
  readyMs: number;
  adoptMs: number;
  /** What else can be done: `set REDIS_URL to a Redis 7 or newer`. */
  instead: string;
  report: Report;
  /** Returns the server that ran last, whether or not it still runs. */
  findLast(): Server | null;
  /** Starts a process. `last` ran before. What it returns is noted by the program itself. */
  spawn(last: Server | null): Promise<{ server: Server; child: Awaited<ReturnType<typeof spawnDetached>> }>;
  /** Returns why a server cannot be used now, or null. */
  findFailure(server: Server): Promise<string | null>;
  /** Whether a process that ended may be followed by another one. */
  isTemporary?(): boolean;
}

const retryMs = 10_000;
const progressEveryMs = 5_000;

/** Adopts or starts a server. Resolves when it answers. `stop` may be called twice. */
export async function startServer<Server extends Running>(program: ServerProgram<Server>) {
  const { name, mark, logFile, stopSignals, report } = program;
  const startedAt = performance.now();
  const running = (server: Server, how: string) => {
    report(`${name} ${how} on 127.0.0.1:${server.port} (${secondsSince(startedAt)})`);
    return { ...server, stop: once(() => stopServer(server.pid, mark, stopSignals)) };
  };
  const last = program.findLast();
  if (last !== null) {
    const isGone = () => !isServerOf(last.pid, mark);
    if ((await untilUsable(program, last, isGone, program.adoptMs)) === null)
      return { ...running(last, 'was running already'), adopted: true };
    await stopServer(last.pid, mark, stopSignals);
  }
  for (;;) {
    const logStart = fileSize(logFile);
    const { server, child } = await program.spawn(last);
    const failure = await untilUsable(program, server, child.hasExited, program.readyMs);
    if (failure === null) return { ...running(server, 'is ready'), adopted: false };
    await stopServer(server.pid, mark, stopSignals);
    if (!program.isTemporary?.() || performance.now() - startedAt > retryMs) {
      const reason = failure || readLastComplaint(logFile, logStart) || (await child.exited);
      throw new ServerUnavailableError(
        `${name} did not start (${reason}): fix that (its log is ${logFile}), or ${program.instead}.`,
      );
    }
    report(`${name}: another process still uses its data; trying again for up to 10 s`);
    await wait(500);
  }
}

/** Waits until a server answers. Returns null then, else why it cannot be used; '' when it ended. */
async function untilUsable<Server extends Running>(
  { name, report, findFailure }: ServerProgram<Server>,
  server: Server,
  isGone: () => boolean,
  limitMs: number,
): Promise<string | null> {
  const startedAt = performance.now();
  let reportAt = startedAt + progressEveryMs;
  while (!isGone()) {
    const failure = await findFailure(server);
    if (failure === null) return null;
    const now = performance.now();
    if (now - startedAt >= limitMs) return `not usable after ${secondsSince(startedAt)}: ${failure}`;
    if (now >= reportAt) {
      report(`${name}: still starting, ${secondsSince(startedAt)} (${failure})`);
      reportAt = now + progressEveryMs;
    }
    await wait(25);
  }
  return '';
}
