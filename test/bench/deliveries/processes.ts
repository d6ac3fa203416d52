import { type ChildProcess, fork, spawn } from 'node:child_process';
import { openSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { getFreePort } from '../../../apps/dev/servers/ports.ts';
import { becomesTrue, readLastComplaint } from '../../../apps/dev/servers/process.ts';
import { endWithUs } from '../reads/children.ts';
import type { BareMessage, BareRequest, BareSettings } from './programs/bare.ts';
import type { ReceivedPost, ReceiverMessage, ReceiverRequest } from './programs/receiver.ts';

const readyMs = 60_000;
const stopMs = 40_000;

/** The receiver of all sides. */
export interface Receiver {
  pid: number;
  url: string;
  /** Returns the posts since the last call, oldest first. */
  takePosts(): Promise<ReceivedPost[]>;
  /** Closes every hanging connection; returns their number. */
  closeHanging(): Promise<number>;
  stop(): Promise<void>;
}

/** Starts a receiver; with a certificate and its key (PEM) it serves HTTPS. */
export async function startReceiver(tls?: { cert: string; key: string }): Promise<Receiver> {
  const child = forkProgram('./programs/receiver.ts', ...(tls === undefined ? [] : [JSON.stringify(tls)]));
  const first = await nextMessage<ReceiverMessage>(child);
  const ask = async (request: ReceiverRequest) => {
    child.send(request);
    return nextMessage<ReceiverMessage>(child);
  };
  return {
    pid: child.pid ?? 0,
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${'port' in first ? first.port : 0}`,
    async takePosts() {
      const message = await ask({ want: 'posts' });
      return 'posts' in message ? message.posts : [];
    },
    async closeHanging() {
      const message = await ask({ want: 'closeHanging' });
      return 'closed' in message ? message.closed : 0;
    },
    stop: () => stopChild(child),
  };
}

/** The process of the bare sides. */
export interface Bare {
  pid: number;
  run(request: BareRequest): Promise<Exclude<BareMessage, { ready: true }>>;
  stop(): Promise<void>;
}

export async function startBare(settings: BareSettings): Promise<Bare> {
  const child = forkProgram('./programs/bare.ts', JSON.stringify(settings));
  await nextMessage<BareMessage>(child);
  return {
    pid: child.pid ?? 0,
    async run(request) {
      child.send(request);
      const message = await nextMessage<BareMessage>(child);
      if ('ready' in message) throw new Error('the bare side was started twice');
      return message;
    },
    stop: () => stopChild(child),
  };
}

/**
 * Starts org-api's worker as deployed, with its log in a file of `folder`. Resolves when it runs.
 */
export async function startWorkerProcess(options: {
  folder: string;
  environment: Record<string, string>;
  nodeOptions?: string[];
}): Promise<{ pid: number; stop(): Promise<void> }> {
  const { folder, environment, nodeOptions = [] } = options;
  const metricsPort = await getFreePort();
  const logFile = path.join(folder, 'worker.log');
  const log = openSync(logFile, 'a', 0o600);
  const main = fileURLToPath(new URL('../../../apps/worker/main.ts', import.meta.url));
  const child = endWithUs(
    spawn(process.execPath, [...nodeOptions, main], {
      stdio: ['ignore', log, log],
      env: { NODE_ENV: 'production', HOST: '127.0.0.1', METRICS_PORT: String(metricsPort), ...environment },
    }),
  );
  const isUp = () =>
    fetch(`http://127.0.0.1:${metricsPort}/metrics`).then(
      (response) => response.ok,
      () => false,
    );
  const ready = await becomesTrue(async () => child.exitCode !== null || (await isUp()), readyMs, 100);
  if (!ready || child.exitCode !== null) {
    child.kill('SIGKILL');
    throw new Error(`the worker did not start: ${readLastComplaint(logFile, 0)}`);
  }
  return { pid: child.pid ?? 0, stop: () => stopChild(child) };
}

function forkProgram(file: string, ...args: string[]): ChildProcess {
  const child = fork(fileURLToPath(new URL(file, import.meta.url)), args, { execArgv: [] });
  return endWithUs(child);
}

/** Returns the next message of a child. Rejects when it ends instead. */
function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const onExit = () => {
      child.off('message', onMessage);
      reject(new Error(`${path.basename(child.spawnargs[1] ?? '')} ended; what it said stands above`));
    };
    const onMessage = (message: unknown) => {
      child.off('exit', onExit);
      resolve(message as T);
    };
    child.once('exit', onExit);
    child.once('message', onMessage);
    if (child.exitCode !== null || child.signalCode !== null) onExit();
  });
}

/** Sends SIGTERM, and SIGKILL after 40 s. */
async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.kill('SIGTERM');
  const last = setTimeout(() => child.kill('SIGKILL'), stopMs);
  await ended;
  clearTimeout(last);
}
