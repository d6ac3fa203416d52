import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, openSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { stringify } from 'yaml';
import { getFreePort } from '../../../apps/dev/servers/ports.ts';
import { becomesTrue, readLastComplaint } from '../../../apps/dev/servers/process.ts';
import { getTool } from '../../../charts/tools.ts';
import { endWithUs } from '../reads/children.ts';

/** The roles of Temporal's server; each node is a process of one role. */
const roles = ['frontend', 'history', 'matching', 'worker'] as const;
export type Role = (typeof roles)[number];

/** One process of the cluster. */
export interface TemporalNode {
  name: string;
  role: Role;
  pid(): number;
  /** Sum of each counter by its `operation`, since the process started. */
  readCounter(counter: 'service_requests' | 'persistence_requests'): Promise<Map<string, number>>;
  kill(): Promise<void>;
  /** Restarts it after `kill`. */
  restart(): void;
}

/** A Temporal server as deployed: roles in separate processes, over PostgreSQL. */
export interface TemporalCluster {
  nodes: readonly TemporalNode[];
  /** `host:port` of each frontend. */
  frontends: readonly string[];
  stop(): Promise<void>;
}

export interface ClusterOptions {
  /** URL of the superuser of a PostgreSQL without these databases. */
  adminUrl: string;
  /** Folder for configuration and logs. */
  folder: string;
  namespace: string;
  shards: number;
  /** Nodes of each role. */
  counts: Record<Role, number>;
  /** Partitions of each task queue. */
  partitions: number;
  report: (line: string) => void;
}

const databases = { temporal: 'temporal', temporal_visibility: 'visibility' };
const readyMs = 120_000;
const stopMs = 20_000;
const retentionMs = 86_400_000;

/**
 * Creates Temporal's databases and starts every node. All nodes of a role have one port, because
 * Temporal's membership knows one port for each role; each node has a separate loopback address
 * (127.0.0.1, 127.0.0.2, …). Resolves when the namespace exists at each frontend.
 * @throws Error when a program cannot be installed or a node does not start.
 */
export async function startTemporalCluster(options: ClusterOptions): Promise<TemporalCluster> {
  const { adminUrl, folder, namespace, counts, report } = options;
  const program = getTool('temporal-server');
  createDatabases(adminUrl, report);
  const ports = {} as Ports;
  for (const role of roles) ports[role] = { grpcPort: await getFreePort(), membershipPort: await getFreePort() };
  const nodes: (TemporalNode & { stop(): Promise<void> })[] = [];
  const stop = async () => void (await Promise.all(nodes.map((node) => node.stop())));
  const frontends: string[] = [];
  try {
    for (const role of roles)
      for (let nth = 1; nth <= counts[role]; nth += 1) {
        const address = `127.0.0.${nodes.length + 1}`;
        if (role === 'frontend') frontends.push(`${address}:${ports.frontend.grpcPort}`);
        nodes.push(await startNode({ name: `${role} ${nth}`, role, address, ports, program, options }));
      }
    for (const address of frontends) await reachNamespace(address, namespace, folder);
  } catch (error) {
    await stop();
    throw error;
  }
  report(`Temporal is ready: ${nodes.map(({ name }) => name).join(', ')}; ${options.shards} shards`);
  return { nodes, frontends, stop };
}

function createDatabases(adminUrl: string, report: (line: string) => void): void {
  const { hostname, port, username, password } = new URL(adminUrl);
  const tool = getTool('temporal-sql-tool');
  const connection = ['--plugin', 'postgres12', '--ep', hostname, '-p', port, '-u', username, '--pw', password];
  for (const [database, schema] of Object.entries(databases))
    for (const step of [
      ['create'],
      ['setup-schema', '-v', '0.0'],
      ['update-schema', '--schema-name', `postgresql/v12/${schema}`],
    ]) {
      const { status, stdout, stderr } = spawnSync(tool, [...connection, '--db', database, ...step], {
        encoding: 'utf8',
      });
      if (status !== 0) throw new Error(`temporal-sql-tool ${step[0]} of ${database} failed: ${stderr || stdout}`);
    }
  report("Temporal's databases are created");
}

type Ports = Record<Role, { grpcPort: number; membershipPort: number }>;

async function startNode(node: {
  name: string;
  role: Role;
  address: string;
  ports: Ports;
  program: string;
  options: ClusterOptions;
}): Promise<TemporalNode & { stop(): Promise<void> }> {
  const { name, role, address, ports, program, options } = node;
  const metrics = `${address}:${await getFreePort()}`;
  const config = path.join(options.folder, name.replace(' ', '-'));
  const logFile = path.join(config, 'log');
  const dynamicFile = path.join(config, 'dynamic.yaml');
  mkdirSync(config, { recursive: true });
  writeFileSync(dynamicFile, stringify(dynamicConfig(options.partitions)));
  const settings = nodeSettings({ address, ports, metrics, dynamicFile, options });
  writeFileSync(path.join(config, 'node.yaml'), stringify(settings), { mode: 0o600 });
  const log = openSync(logFile, 'a', 0o600);

  function launch(): ChildProcess {
    const args = ['--root', '/', '--config', config, '--env', 'node', '--allow-no-auth', 'start', '--service', role];
    const env = { PATH: process.env.PATH ?? '' };
    return endWithUs(spawn(program, args, { cwd: config, stdio: ['ignore', log, log], env }));
  }
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  async function end(signal: NodeJS.Signals): Promise<void> {
    if (hasEnded()) return;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill(signal);
    const last = setTimeout(() => child.kill('SIGKILL'), stopMs);
    await ended;
    clearTimeout(last);
  }
  const readMetrics = () => fetch(`http://${metrics}/metrics`);

  let child = launch();
  const answers = () =>
    readMetrics().then(
      (response) => response.ok,
      () => false,
    );
  const isUp = await becomesTrue(async () => hasEnded() || (await answers()), readyMs, 100);
  if (!isUp || hasEnded()) throw new Error(`${name} did not start: ${readLastComplaint(logFile, 0)}`);
  return {
    name,
    role,
    pid: () => child.pid ?? 0,
    readCounter: async (counter) => sumByOperation(await (await readMetrics()).text(), counter),
    kill: () => end('SIGKILL'),
    restart() {
      child = launch();
    },
    stop: () => end('SIGTERM'),
  };
}

function nodeSettings(node: {
  address: string;
  ports: Ports;
  metrics: string;
  dynamicFile: string;
  options: ClusterOptions;
}): Record<string, unknown> {
  const { address, ports, metrics, dynamicFile, options } = node;
  const { hostname, port, username, password } = new URL(options.adminUrl);
  const store = (databaseName: string, maxConns: number) => ({
    sql: {
      pluginName: 'postgres12',
      databaseName,
      connectAddr: `${hostname}:${port}`,
      connectProtocol: 'tcp',
      user: username,
      password,
      maxConns,
      maxIdleConns: maxConns,
    },
  });
  const active = {
    enabled: true,
    initialFailoverVersion: 1,
    rpcName: 'frontend',
    rpcAddress: `127.0.0.1:${ports.frontend.grpcPort}`,
  };
  return {
    log: { stdout: true, level: 'warn' },
    persistence: {
      defaultStore: 'main',
      visibilityStore: 'visibility',
      numHistoryShards: options.shards,
      datastores: { main: store('temporal', 20), visibility: store('temporal_visibility', 5) },
    },
    global: {
      membership: { maxJoinDuration: '30s', broadcastAddress: address },
      metrics: { prometheus: { framework: 'opentelemetry', listenAddress: metrics } },
    },
    services: Object.fromEntries(roles.map((role) => [role, { rpc: { ...ports[role], bindOnIP: address } }])),
    clusterMetadata: {
      enableGlobalNamespace: false,
      failoverVersionIncrement: 10,
      masterClusterName: 'active',
      currentClusterName: 'active',
      clusterInformation: { active },
    },
    dynamicConfigClient: { filepath: dynamicFile, pollInterval: '60s' },
  };
}

/** The settings that `workflows/README.md` requires of a namespace's server. */
function dynamicConfig(partitions: number): Record<string, { value: unknown }[]> {
  return {
    'matching.numTaskqueueReadPartitions': [{ value: partitions }],
    'matching.numTaskqueueWritePartitions': [{ value: partitions }],
    'system.enableEagerWorkflowStart': [{ value: true }],
    'history.visibilityProcessorMaxPollRPS': [{ value: 1 }],
  };
}

/** Registers the namespace unless it exists, and waits until the frontend describes it. */
async function reachNamespace(address: string, namespace: string, folder: string): Promise<void> {
  let reason = '';
  const isReached = await becomesTrue(
    async () => {
      let connection: Connection | undefined;
      try {
        connection = await Connection.connect({ address, connectTimeout: '5s' });
        const { workflowService } = connection;
        const workflowExecutionRetentionPeriod = msToTs(retentionMs);
        await workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod }).catch(() => {});
        await workflowService.describeNamespace({ namespace });
        return true;
      } catch (error) {
        reason = String(error);
        return false;
      } finally {
        await connection?.close();
      }
    },
    readyMs,
    500,
  );
  if (!isReached) throw new Error(`The frontend ${address} does not answer (${reason}); its log is in ${folder}.`);
}

/** Sums a counter of Prometheus's text format by its label `operation`. */
function sumByOperation(text: string, counter: string): Map<string, number> {
  const sums = new Map<string, number>();
  for (const line of text.split('\n')) {
    const match = /^(\w+?)(?:_total)?\{(.*)\} (\S+)$/.exec(line);
    if (match?.[1] !== counter) continue;
    const operation = /(?:^|,)operation="([^"]*)"/.exec(match[2] ?? '')?.[1] ?? '';
    sums.set(operation, (sums.get(operation) ?? 0) + Number(match[3]));
  }
  return sums;
}
