import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { getDirectly } from '#runtime/get-directly.ts';
import { compiledCode } from './compiled-code.ts';
import type { RegionApp } from './region-plan.ts';
import { portVariable } from './servers/ports.ts';
import {
  becomesTrue,
  fileSize,
  readLastComplaint,
  readNote,
  ServerUnavailableError,
  spawnDetached,
  stopServer,
  writeNote,
} from './servers/process.ts';

const stopSignals = [
  ['SIGTERM', 30_000],
  ['SIGKILL', 5_000],
] as const;

/** One app that runs as a separate process, as in production. `exited` describes how it ended. */
export type AppProcess = Awaited<ReturnType<typeof startApp>>;

/**
 * Starts an app and resolves when its process says that it listens, and `readyUrl` then answers
 * 200. Before that another process may answer there. The app's folder holds its log and pid, and is
 * on the command line, by which `stopLeftOver` finds it.
 *
 * @throws ServerUnavailableError when it ends or is not ready within a minute.
 */
export async function startApp(options: {
  name: RegionApp;
  folder: string;
  env: Record<string, string>;
  readyUrl: string;
}) {
  const { name, folder, readyUrl } = options;
  mkdirSync(folder, { recursive: true });
  const logFile = path.join(folder, 'log');
  const logStart = fileSize(logFile);
  const child = await spawnDetached({
    command: process.execPath,
    args: [path.join(import.meta.dirname, '..', name, 'main.ts'), folder],
    cwd: folder,
    env: { PATH: '/usr/bin:/bin', ...compiledCode, ...options.env },
    logFile,
    hasChannel: true,
  });
  writeNote(folder, { pid: child.pid });
  const stop = () => stopServer(child.pid, folder, stopSignals);
  const isReady = async () => child.hasExited() || (child.listens() && (await respondsOk(readyUrl)));
  if ((await becomesTrue(isReady, 60_000, 100)) && !child.hasExited()) return { name, exited: child.exited, stop };
  await stop();
  const complaint = readLastComplaint(logFile, logStart);
  throw new ServerUnavailableError(
    `The ${name} did not become ready (${complaint || 'it said nothing'}): see ${logFile}, fix that and start again.` +
      (complaint.includes('cannot listen') ? ` ${portVariable} sets the first port of a stack.` : ''),
  );
}

/** Stops the app that a killed `npm start` left running in its folder, and frees its ports. */
export async function stopLeftOver(folder: string): Promise<void> {
  const note = readNote<{ pid: number }>(folder);
  if (note !== null) await stopServer(note.pid, folder, stopSignals);
}

const respondsOk = (url: string): Promise<boolean> =>
  getDirectly(url, 2_000).then(
    ({ status }) => status === 200,
    () => false,
  );
