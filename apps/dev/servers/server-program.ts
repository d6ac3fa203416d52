/**
 * The part that the three servers of a stack share: adopt the one that runs, or launch it; wait until
 * it answers; stop it.
 *
 * A server is found by its pid, and `mark` on its command line says that it is the stack's: pids are
 * used again.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { once } from '#runtime/flow/once.ts';
import { isPortFree } from './ports.ts';
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

/** Why a server cannot be used now. `isFinal`: it will refuse later, too. */
export interface Failure {
  reason: string;
  isFinal?: boolean;
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
  findFailure(server: Server): Promise<Failure | null>;
  /** Returns why a process ended, when its log does not say it in words. */
  explainEnd?: (server: Server) => Promise<string | null>;
  /** Whether a process that ended may be followed by another one; a port that was taken always is. */
  isTemporary?: (server: Server) => boolean;
}

/** A server of the stack. `stop` may be called twice. */
export interface StackServer<Server extends Running> {
  server: Server;
  adopted: boolean;
  stop: () => Promise<void>;
}

const retryMs = 10_000;
const progressEveryMs = 5_000;

/** Adopts or starts a server. Resolves when it answers. @throws ServerUnavailableError */
export async function startServer<Server extends Running>(
  program: ServerProgram<Server>,
): Promise<StackServer<Server>> {
  const { name, report, isTemporary = () => false } = program;
  const retriesEndAt = performance.now() + retryMs;
  for (;;) {
    const launched = await launchServer(program);
    const { server, ready, endedItself } = launched;
    const failure = await ready.then(() => null).catch((error: Error) => error);
    if (failure === null) return launched;
    const isOver = !endedItself() || performance.now() > retriesEndAt;
    if (isOver || !(isTemporary(server) || !(await isPortFree(server.port)))) throw failure;
    report(`${name}: another process still uses its data or port; trying again for up to 10 s`);
    await wait(500);
  }
}

/** Adopts a server, or starts its process once. `ready` resolves when it answers, and may reject. */
export async function launchServer<Server extends Running>(
  program: ServerProgram<Server>,
): Promise<StackServer<Server> & { ready: Promise<void>; endedItself: () => boolean }> {
  const { name, mark, logFile, stopSignals, report } = program;
  const startedAt = performance.now();
  const last = program.findLast();
  const describe = (server: Server, how: string) =>
    report(`${name} ${how} on 127.0.0.1:${server.port} (${secondsSince(startedAt)})`);
  const stopOf = ({ pid }: Server) => once(() => stopServer(pid, mark, stopSignals));
  if (last !== null) {
    const isGone = () => !isServerOf(last.pid, mark);
    if (!isGone() && (await untilUsable(program, last, isGone, program.adoptMs)) === null) {
      describe(last, 'was running already');
      return { server: last, adopted: true, stop: stopOf(last), ready: Promise.resolve(), endedItself: () => false };
    }
    await stopServer(last.pid, mark, stopSignals);
  }
  const logStart = fileSize(logFile);
  const { server, child } = await program.spawn(last);
  const stop = stopOf(server);
  let hasEnded = false;
  async function waitUntilReady(): Promise<void> {
    const failure = await untilUsable(program, server, child.hasExited, program.readyMs);
    if (failure === null) return describe(server, 'is ready');
    hasEnded = failure === ended;
    await stop();
    const explained = failure === ended ? await program.explainEnd?.(server) : failure;
    const reason = explained ?? (readLastComplaint(logFile, logStart) || (await child.exited));
    throw new ServerUnavailableError(
      `${name} did not start (${reason}): fix that (its log is ${logFile}), or ${program.instead}.`,
    );
  }
  const ready = waitUntilReady();
  ready.catch(() => {}); // every caller that awaits it gets the error
  return { server, adopted: false, stop, ready, endedItself: () => hasEnded };
}

const ended = 'its process ended';

/** Waits until a server answers. Returns null then, and otherwise why it cannot be used. */
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
    if (now - startedAt >= (failure.isFinal ? Math.min(retryMs, limitMs) : limitMs))
      return `not usable after ${secondsSince(startedAt)}: ${failure.reason}`;
    if (now >= reportAt) {
      report(`${name}: still starting, ${secondsSince(startedAt)} (${failure.reason})`);
      reportAt = now + progressEveryMs;
    }
    await wait(25);
  }
  return ended;
}
