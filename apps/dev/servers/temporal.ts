import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { getDirectly } from '#runtime/get-directly.ts';
import { choosePort, getFreePort, portVariable } from './ports.ts';
import { type Report, readNote, spawnDetached, stopServer, writeNote } from './process.ts';
import { programEnvironment } from './program-environment.ts';
import { startServer } from './server-program.ts';
import { getTemporalProgram } from './temporal-program.ts';

export interface TemporalOptions {
  stateFolder: string;
  namespaces: readonly string[];
  port?: number | null;
  /** Port of the web UI; null for none. */
  uiPort?: number | null;
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

const folderOf = (stateFolder: string) => path.join(stateFolder, 'temporal');
const storeOf = (stateFolder: string) => path.join(folderOf(stateFolder), 'store.db');

/** Stops the Temporal of a state folder, even when another process started it. */
export async function stopTemporalOf(stateFolder: string): Promise<void> {
  const last = readNote<Note>(folderOf(stateFolder));
  if (last !== null) await stopServer(last.pid, storeOf(stateFolder), stopSignals);
}

/** What is known of a server: the port of its gRPC frontend, and URLs of HTTP API and web UI. */
interface Note {
  pid: number;
  port: number;
  http: string;
  ui: string | null;
  /** Those of the stack, and the one that only the server of this store has. */
  namespaces: readonly string[];
}

/**
 * Brings up Temporal's development server with its store in `stateFolder`, or adopts the one that
 * runs there. Resolves when it answers. The store's file on the command line identifies the process.
 *
 * @throws ServerUnavailableError
 */
export async function startTemporal(options: TemporalOptions) {
  const { stateFolder, port = null, inMemory = false, report } = options;
  const command = await getTemporalProgram(report);
  const folder = folderOf(stateFolder);
  mkdirSync(folder, { recursive: true });
  const store = storeOf(stateFolder);
  const logFile = path.join(folder, 'log');
  // A port may be another server's: this namespace is named for the store.
  const ownNamespace = `org-api-server-${createHash('sha256').update(store).digest('hex').slice(0, 12)}`;
  const namespaces = [...options.namespaces, ownNamespace];
  const uiPort = inMemory ? null : (options.uiPort ?? null);

  async function spawn() {
    const frontPort = await choosePort(port, 'Temporal', report);
    const httpPort = await getFreePort();
    const pagePort = uiPort === null ? null : await choosePort(uiPort, "Temporal's pages", report, portVariable);
    const settings = {
      ip: '127.0.0.1',
      port: frontPort,
      'http-port': httpPort,
      // Without the web UI the folder has no effect: it only identifies the process.
      [inMemory ? 'ui-asset-path' : 'db-filename']: store,
      'log-level': 'warn',
    };
    const args = [
      'server',
      'start-dev',
      ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
      ...(pagePort === null ? ['--headless'] : ['--ui-port', String(pagePort)]),
      ...namespaces.flatMap((namespace) => ['--namespace', namespace]),
      ...dynamicConfig.flatMap((setting) => ['--dynamic-config-value', setting]),
    ];
    const env = { ...programEnvironment(), HOME: folder };
    const child = await spawnDetached({ command, args, cwd: folder, env, logFile });
    const http = `http://127.0.0.1:${httpPort}`;
    const ui = pagePort === null ? null : `http://127.0.0.1:${pagePort}`;
    const server: Note = { pid: child.pid, port: frontPort, http, ui, namespaces };
    writeNote(folder, server);
    return { server, child };
  }

  const server = await startServer<Note>({
    name: 'Temporal',
    mark: store,
    logFile,
    stopSignals,
    readyMs: readyDeadlineMs,
    adoptMs: 0,
    instead: `set TEMPORAL_ADDRESS, or if port ${uiPort} of its pages is taken, ${portVariable}`,
    report,
    findLast: () => readNote(folder),
    spawn,
    findFailure: async (note) =>
      (await hasNamespaces(note, [...note.namespaces, ownNamespace])) ? null : 'no response',
  });
  return { ...server, address: `127.0.0.1:${server.port}` };
}

/**
 * Returns whether a server has created all namespaces. Asked over HTTP: the SDK's connection waits a
 * second after a rejected one, and loading it takes 0.13 s.
 */
async function hasNamespaces({ http }: Note, namespaces: readonly string[]): Promise<boolean> {
  try {
    for (const namespace of new Set(namespaces)) {
      const { status, text } = await getDirectly(`${http}/api/v1/namespaces/${namespace}`, 2_000);
      if (status !== 200 || JSON.parse(text).namespaceInfo?.name !== namespace) return false;
    }
    return true;
  } catch {
    return false;
  }
}
