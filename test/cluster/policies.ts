import type { Cluster } from './cluster.ts';
import type { Routes } from './ingress-controller.ts';
import { startPolicyEngine } from './policy-engine.ts';
import type { Release } from './release.ts';
import type { RegionServers } from './servers.ts';

/** A connection that a policy allows or denies. */
interface Connection {
  from: string;
  to: string;
  /** `host:port` as the pod reaches it. */
  target: string;
  isAllowed: boolean;
}

/** The checked parts of a region. */
interface Checked {
  release: Release;
  servers: RegionServers;
  /** Not null when only the Ingress controller may connect to the API. */
  routes: Routes | null;
}

/** The check of NetworkPolicies, and their enforcement during the test. */
export interface Policies {
  /** Returns every connection of the releases that contradicts their NetworkPolicies. */
  check(regions: readonly Checked[]): Promise<string[]>;
  stop(): Promise<void>;
}

/** Starts enforcing NetworkPolicies, if that is wanted and the cluster is `up`'s. */
export async function startPolicies(
  cluster: Cluster,
  { isWanted, report }: { isWanted: boolean; report: (line: string) => void },
): Promise<Policies> {
  const engine = isWanted ? await startPolicyEngine(cluster, report) : null;
  return {
    async check(regions) {
      const problems: string[] = [];
      for (const region of engine === null ? [] : regions)
        problems.push(...(await checkConnections(cluster, region, report)));
      return problems;
    },
    stop: async () => engine?.stop(),
  };
}

/**
 * Connects from pods to addresses that their NetworkPolicy allows and denies. A denied address is
 * also tried from a pod without a policy, to prove that the server answers. Reads prove that the
 * API answers.
 */
async function checkConnections(
  cluster: Cluster,
  { release, servers, routes }: Checked,
  report: (line: string) => void,
): Promise<string[]> {
  const connections = await listConnections(cluster, { release, servers, routes });
  const problems: string[] = [];
  for (const { from, to, target, isAllowed } of connections)
    if ((await connects(cluster, release, from, target)) !== isAllowed)
      problems.push(`${from} ${isAllowed ? 'cannot' : 'can'} connect to ${to}, against its NetworkPolicy`);
  const right = connections.length - problems.length;
  report(`${servers.region}: ${right} of ${connections.length} connections are as NetworkPolicies say`);
  return problems;
}

async function listConnections(cluster: Cluster, { release, servers, routes }: Checked): Promise<Connection[]> {
  const database = { to: 'PostgreSQL', target: getHost(servers.podOwnerUrl) };
  const redis = { to: 'Redis', target: getHost(servers.redisUrl) };
  const temporal = { to: 'Temporal', target: servers.temporalAddress };
  const api = { to: 'the API', target: await getAddress(cluster, release, 'api', 'http') };
  const metrics = { to: 'metrics of a worker', target: await getAddress(cluster, release, 'worker', 'metrics') };
  const from = (pods: string, targets: { to: string; target: string }[], isAllowed: boolean) =>
    targets.map((target) => ({ from: `deployment/${pods}`, ...target, isAllowed }));
  return [
    ...from(`${release.name}-api`, [database, redis], true),
    ...from(`${release.name}-api`, [temporal, metrics], false),
    ...from(`${release.name}-worker`, [database, temporal], true),
    ...from(`${release.name}-worker`, [redis, api], false),
    ...from('receiver', [redis, temporal, metrics], true),
    ...from('receiver', [api], routes === null),
  ];
}

function getHost(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname}:${port}`;
}

/** The address of a ready pod, with a port of its container. */
async function getAddress(cluster: Cluster, { name, namespace }: Release, component: string, port: string) {
  const selector = `app.kubernetes.io/instance=${name},app.kubernetes.io/component=${component}`;
  const list = ['get', 'pods', '-n', namespace, '-l', selector, '--field-selector=status.phase=Running'];
  const path = `{.items[0].status.podIP}:{.items[0].spec.containers[0].ports[?(@.name=="${port}")].containerPort}`;
  return cluster.kubectl([...list, '-o', `jsonpath=${path}`]);
}

const connect = `
  const [host, port] = process.argv[1].split(':');
  const socket = require('node:net').connect({ host, port, timeout: 3000 });
  const end = (answer) => () => { console.log(answer); process.exit(); };
  socket.on('connect', end('connected')).on('timeout', end('rejected')).on('error', end('rejected'));
`;

async function connects(cluster: Cluster, { namespace }: Release, from: string, target: string): Promise<boolean> {
  const said = await cluster.kubectl(['exec', '-n', namespace, from, '--', 'node', '-e', connect, target]);
  return said.trim() === 'connected';
}
