import { createHash } from 'node:crypto';
import path from 'node:path';
import { getDirectly } from '#runtime/get-directly.ts';
import { choosePort, getFreePort } from './ports.ts';
import type { Report } from './process.ts';
import { programEnvironment } from './program-environment.ts';
import { startServer } from './server-program.ts';
import { getTemporalProgram } from './temporal-program.ts';

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
  // All that came in a second is written by 512 workers at once, in front of every start: SQLite
  // has one connection. With two, a start waits for two of them.
  'history.visibilityProcessorSchedulerWorkerCount=2',
];

/**
 * Brings up Temporal's development server with its store in `stateFolder`, on `port` or another free
 * one. Resolves when it answers.
 *
 * @param options - `uiPort` null for no web UI; `inMemory` keeps everything in memory.
 * @throws StartupError
 */
export async function startTemporal(options: {
  stateFolder: string;
  namespaces: readonly string[];
  port?: number | null;
  uiPort?: number | null;
  inMemory?: boolean;
  report: Report;
}) {
  const { stateFolder, port = null, uiPort = null, inMemory = false, report } = options;
  const command = await getTemporalProgram(report);
  const folder = path.join(stateFolder, 'temporal');
  // Another stack's server may answer on the port: this namespace is named for the store.
  const ownNamespace = `org-api-server-${createHash('sha256').update(folder).digest('hex').slice(0, 12)}`;
  const namespaces = [...options.namespaces, ownNamespace];
  const server = await startServer({
    name: 'Temporal',
    folder,
    readyMs: 60_000,
    instead: 'set TEMPORAL_ADDRESS',
    report,
    async prepare() {
      const frontPort = await choosePort(port, 'Temporal', report);
      const httpPort = await getFreePort();
      const pagePort = uiPort === null ? null : await choosePort(uiPort, "Temporal's pages", report);
      const settings = {
        ip: '127.0.0.1',
        port: frontPort,
        'http-port': httpPort,
        'log-level': 'warn',
        ...(inMemory ? {} : { 'db-filename': path.join(folder, 'store.db') }),
      };
      const args = [
        'server',
        'start-dev',
        ...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]),
        ...(pagePort === null ? ['--headless'] : ['--ui-port', String(pagePort)]),
        ...namespaces.flatMap((namespace) => ['--namespace', namespace]),
        ...dynamicConfig.flatMap((setting) => ['--dynamic-config-value', setting]),
      ];
      const http = `http://127.0.0.1:${httpPort}`;
      const ui = pagePort === null ? null : `http://127.0.0.1:${pagePort}`;
      const launch = { command, args, cwd: folder, env: { ...programEnvironment(), HOME: folder } };
      return { server: { port: frontPort, http, ui }, launch, ports: [frontPort, httpPort, pagePort] };
    },
    // Over HTTP: the SDK's connection waits a second after a rejected one, and loading it takes 0.13 s.
    async check({ http }) {
      for (const namespace of namespaces) {
        const { status, text } = await getDirectly(`${http}/api/v1/namespaces/${namespace}`, 2_000);
        if (status !== 200 || JSON.parse(text).namespaceInfo?.name !== namespace)
          throw new Error(`no namespace ${namespace}`);
      }
    },
  });
  return { ...server, address: `127.0.0.1:${server.port}` };
}
