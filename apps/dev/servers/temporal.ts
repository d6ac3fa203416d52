import { createHash } from 'node:crypto';
import path from 'node:path';
import { once } from '#runtime/flow/once.ts';
import { getDirectly } from '#runtime/get-directly.ts';
import { choosePort, getFreePort, isPortFree, portVariable } from './ports.ts';
import {
  becomesTrue,
  fileSize,
  isServerOf,
  makeFolder,
  type Report,
  readLastComplaint,
  readNote,
  ServerUnavailableError,
  secondsSince,
  spawnDetached,
  stopServer,
  writeNote,
} from './process.ts';
import { programEnvironment } from './program-environment.ts';
import { getTemporalProgram } from './temporal-program.ts';

export interface TemporalOptions {
  stateFolder: string;
  namespaces: readonly string[];
  port?: number | null;
  /** Port of the web UI; null for none. */
  uiPort?: number | null;
  /** Port of the server's own metrics; null for a random one. */
  metricsPort?: number | null;
  /** Keeps everything in memory instead of the file, without the web UI. */
  inMemory?: boolean;
  report: Report;
}

const readyDeadlineMs = 60_000;
/**
 * Dynamic configuration that saves work; workflows/README.md explains it for operators. One
 * partition of each queue is enough for one region.
 */
const dynamicConfig = [
  'matching.numTaskqueueReadPartitions=1',
  'matching.numTaskqueueWritePartitions=1',
  'system.enableEagerWorkflowStart=true',
  // How often a shard looks for tasks. A cluster has hundreds of shards with 20 polls a second
  // each, a development server has one: each task waited up to 50 ms (p50 of a bare workflow from
  // start to post 41 to 67 ms with 20, 15 to 20 ms with 1,000, at the same processor time).
  'history.transferProcessorMaxPollRPS=1000',
  // A workflow that has ended when its start is read is written to the visibility store once
  // instead of twice, so a shard reads these tasks once a second (ADR 0136).
  'history.visibilityProcessorMaxPollRPS=1',
  'history.visibilityTaskBatchSize=2000',
];
const stopSignals = [
  ['SIGTERM', 15_000],
  ['SIGKILL', 5_000],
] as const;

/**
 * Brings up Temporal's development server with its store in `stateFolder`, or adopts the one that
 * runs there. Resolves when it answers.
 */
export async function startTemporal(options: TemporalOptions) {
  const { ready, ...server } = await launchTemporal(options);
  await ready;
  return server;
}

/**
 * Starts or adopts the same server. Resolves as soon as its process runs; `ready` of the result
 * resolves when it answers. The store's file on the command line identifies the process.
 *
 * @throws ServerUnavailableError
 */
export async function launchTemporal(options: TemporalOptions) {
  const { stateFolder, report } = options;
  const startedAt = performance.now();
  const program = await getTemporalProgram(report);
  const folder = path.join(stateFolder, 'temporal');
  makeFolder(folder);
  const store = path.join(folder, 'store.db');
  const last = readNote<Note>(folder);
  const adopted = last !== null && isServerOf(last.pid, store) && (await answers(last, store));
  const { server, ready } = adopted
    ? { server: last, ready: Promise.resolve() }
    : await launch(program, folder, store, options);
  const { address, ui, pid } = server;
  const how = adopted ? 'was running already' : 'is ready';
  const answered = ready.then(() => report(`Temporal ${how} on ${address} (${secondsSince(startedAt)})`));
  answered.catch(() => {}); // also reported to every caller that awaits it
  return { address, ui, pid, stop: once(() => stopServer(pid, store, stopSignals)), ready: answered };
}

/** Stops the Temporal of a state folder, even when another process started it. */
export async function stopTemporalOf(stateFolder: string): Promise<void> {
  const folder = path.join(stateFolder, 'temporal');
  const last = readNote<Note>(folder);
  if (last !== null) await stopServer(last.pid, path.join(folder, 'store.db'), stopSignals);
}

/** What is known of a server: `host:port` of its gRPC frontend, and URLs of HTTP API and web UI. */
interface Note {
  pid: number;
  address: string;
  http: string;
  ui: string | null;
  /** Those of the stack, and the one that only the server of this store has. */
  namespaces: readonly string[];
}

/**
 * Returns the name of the namespace by which a server is known to be that of a store: a port may be
 * another server's.
 */
const ownNamespaceOf = (store: string) =>
  `org-api-server-${createHash('sha256').update(store).digest('hex').slice(0, 12)}`;

/** The note is written with the process, so that a later start finds it also after a kill. */
async function launch(
  program: string,
  folder: string,
  store: string,
  options: TemporalOptions,
): Promise<{ server: Note; ready: Promise<void> }> {
  const namespaces = [...options.namespaces, ownNamespaceOf(store)];
  const { port = null, metricsPort = null, inMemory = false, report } = options;
  const uiPort = inMemory ? null : (options.uiPort ?? null);
  const last = readNote<Note>(folder);
  if (last !== null) await stopServer(last.pid, store, stopSignals);
  const frontPort = await choosePort(port, 'Temporal', report);
  const httpPort = await getFreePort();
  const pagePort = uiPort === null ? null : await choosePort(uiPort, "Temporal's pages", report, portVariable);
  const logFile = path.join(folder, 'log');
  const logStart = fileSize(logFile);
  const settings = {
    ip: '127.0.0.1',
    port: frontPort,
    'http-port': httpPort,
    // Without the web UI the folder has no effect: it only identifies the process.
    [inMemory ? 'ui-asset-path' : 'db-filename']: store,
    'log-level': 'warn',
    ...(metricsPort === null ? {} : { 'metrics-port': metricsPort }),
  };
  const child = await spawnDetached({
    command: program,
    args: [
      'server',
      'start-dev',
      ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
      ...(pagePort === null ? ['--headless'] : ['--ui-port', String(pagePort)]),
      ...namespaces.flatMap((namespace) => ['--namespace', namespace]),
      ...dynamicConfig.flatMap((setting) => ['--dynamic-config-value', setting]),
    ],
    cwd: folder,
    env: { ...programEnvironment(), HOME: folder },
    logFile,
  });
  const server: Note = {
    pid: child.pid,
    address: `127.0.0.1:${frontPort}`,
    http: `http://127.0.0.1:${httpPort}`,
    ui: pagePort === null ? null : `http://127.0.0.1:${pagePort}`,
    namespaces,
  };
  writeNote(folder, server);
  const waitUntilReady = async () => {
    const ready = await becomesTrue(async () => child.hasExited() || (await answers(server, store)), readyDeadlineMs);
    if (ready && !child.hasExited()) return;
    await stopServer(child.pid, store, stopSignals);
    const isPageTaken = pagePort !== null && !(await isPortFree(pagePort));
    const reason = isPageTaken
      ? `port ${pagePort} of its pages is taken by another program; ${portVariable} sets another`
      : readLastComplaint(logFile, logStart) || 'no answer';
    throw new ServerUnavailableError(
      `Temporal did not start (${reason}): fix that (its log is ${logFile}), or set TEMPORAL_ADDRESS.`,
    );
  };
  return { server, ready: waitUntilReady() };
}

/**
 * Returns whether the server of a store answers and has created every namespace. Asked over HTTP:
 * the SDK's connection waits a second after a refused one, and loading it takes 0.13 s.
 */
async function answers({ http, namespaces }: Pick<Note, 'http' | 'namespaces'>, store: string): Promise<boolean> {
  try {
    for (const namespace of new Set([...namespaces, ownNamespaceOf(store)])) {
      const { status, text } = await getDirectly(`${http}/api/v1/namespaces/${namespace}`, 2_000);
      if (status !== 200 || JSON.parse(text).namespaceInfo?.name !== namespace) return false;
    }
    return true;
  } catch {
    return false;
  }
}
