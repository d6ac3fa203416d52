import { createHash } from 'node:crypto';
import path from 'node:path';
import { getDirectly } from '#runtime/get-directly.ts';
import { choosePort, getFreePort, isPortFree, portVariable } from './ports.ts';
import { makeFolder, type Report, readNote, spawnDetached, stopServer, writeNote } from './process.ts';
import { programEnvironment } from './program-environment.ts';
import { launchServer, type ServerProgram, type StackServer, startServer } from './server-program.ts';
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
 *
 * @throws ServerUnavailableError
 */
export async function startTemporal(options: TemporalOptions) {
  return shownOf(await startServer(await describeServer(options)));
}

/**
 * Starts or adopts the same server. Resolves as soon as its process runs; `ready` of the result
 * resolves when it answers. The store's file on the command line identifies the process.
 *
 * @throws ServerUnavailableError
 */
export async function launchTemporal(options: TemporalOptions) {
  const launched = await launchServer(await describeServer(options));
  return { ...shownOf(launched), ready: launched.ready };
}

const shownOf = ({ server, stop }: StackServer<Note>) => ({
  address: `127.0.0.1:${server.port}`,
  ui: server.ui,
  pid: server.pid,
  stop,
});

/** Stops the Temporal of a state folder, even when another process started it. */
export async function stopTemporalOf(stateFolder: string): Promise<void> {
  const folder = path.join(stateFolder, 'temporal');
  const last = readNote<Note>(folder);
  if (last !== null) await stopServer(last.pid, path.join(folder, 'store.db'), stopSignals);
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
 * Returns the name of the namespace by which a server is known to be that of a store: a port may be
 * another server's.
 */
const ownNamespaceOf = (store: string) =>
  `org-api-server-${createHash('sha256').update(store).digest('hex').slice(0, 12)}`;

async function describeServer(options: TemporalOptions): Promise<ServerProgram<Note>> {
  const { stateFolder, port = null, metricsPort = null, inMemory = false, report } = options;
  const command = await getTemporalProgram(report);
  const folder = path.join(stateFolder, 'temporal');
  makeFolder(folder);
  const store = path.join(folder, 'store.db');
  const logFile = path.join(folder, 'log');
  const namespaces = [...options.namespaces, ownNamespaceOf(store)];
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
      ...(metricsPort === null ? {} : { 'metrics-port': metricsPort }),
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
    const server: Note = {
      pid: child.pid,
      port: frontPort,
      http: `http://127.0.0.1:${httpPort}`,
      ui: pagePort === null ? null : `http://127.0.0.1:${pagePort}`,
      namespaces,
    };
    writeNote(folder, server);
    return { server, child };
  }

  return {
    name: 'Temporal',
    mark: store,
    logFile,
    stopSignals,
    readyMs: readyDeadlineMs,
    adoptMs: 0,
    instead: 'set TEMPORAL_ADDRESS',
    report,
    findLast: () => readNote(folder),
    spawn,
    async explainEnd({ ui }) {
      const pagePort = ui === null ? null : Number(new URL(ui).port);
      return pagePort === null || (await isPortFree(pagePort))
        ? null
        : `port ${pagePort} of its pages is taken by another program; ${portVariable} sets another`;
    },
    findFailure: async (server) => ((await answers(server, store)) ? null : { reason: 'no answer' }),
  };
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
