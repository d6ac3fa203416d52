import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type CommandOptions, runCommand } from './command.ts';

/** There is no cluster to test on; the message contains the reason and the remedy. */
export class ClusterUnavailable extends Error {}

/** A Kubernetes that answers, and its tools. */
export interface Cluster {
  /** Address of this machine for pods. */
  hostAddress: string;
  /** Addresses of Services, as a block (IPv4). */
  serviceRange: string;
  /** The node, when it is this machine: the cluster that `up` starts. */
  localNode: { name: string; env: NodeJS.ProcessEnv } | null;
  kubectl(args: readonly string[], options?: Partial<CommandOptions>): Promise<string>;
  helm(args: readonly string[], options?: Partial<CommandOptions>): Promise<string>;
  /** Creates or changes objects; `manifests` as JSON. */
  apply(namespace: string, manifests: readonly object[]): Promise<void>;
  /** Makes image archives available to pods. */
  loadImages(archives: readonly string[]): Promise<void>;
  /** Stops the cluster when this call started it; leaves it when it was there before. */
  stop(): Promise<void>;
}

const upScript = fileURLToPath(new URL('../../../shared/kubernetes/up', import.meta.url));
const downScript = fileURLToPath(new URL('../../../shared/kubernetes/down', import.meta.url));

/** How a cluster is reached. */
interface Access {
  env: NodeJS.ProcessEnv;
  hostAddress: string;
  /** A shell command that gets archives. */
  loadImage: string;
  isOurs: boolean;
}

/**
 * Returns the cluster of `KUBECONFIG`, or else a single-node cluster on this machine that
 * `../shared/kubernetes/up` starts (about 4 minutes the first time, seconds afterwards). The
 * cluster of `up` is recognized when `KUBECONFIG` names it. README.md lists what another cluster
 * needs.
 * @throws ClusterUnavailable
 */
export async function getCluster(
  report: (line: string) => void,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<Cluster> {
  const given = environment.KUBECONFIG;
  const { env, hostAddress, loadImage, isOurs } = given ? await getGiven(given, environment) : await bringUp(report);
  const run = (program: string, args: readonly string[], options: Partial<CommandOptions> = {}) =>
    runCommand(program, args, { env, ...options });
  const version = JSON.parse(await run('kubectl', ['version', '-o', 'json'])) as {
    serverVersion: { gitVersion: string };
  };
  report(`Kubernetes ${version.serverVersion.gitVersion}`);
  return {
    hostAddress,
    serviceRange: environment.CLUSTER_SERVICE_RANGE || (await findServiceRange(run)),
    localNode: hostAddress === nodeAddress ? { name: nodeName, env } : null,
    kubectl: (args, options) => run('kubectl', args, options),
    helm: (args, options) => run('helm', args, options),
    async apply(namespace, manifests) {
      const list = { apiVersion: 'v1', kind: 'List', items: manifests };
      await run('kubectl', ['apply', '-n', namespace, '-f', '-'], { input: JSON.stringify(list) });
    },
    async loadImages(archives) {
      await run('bash', ['-c', `${loadImage} "$@"`, 'bash', ...archives], { timeoutMs: 300_000 });
    },
    async stop() {
      if (isOurs) await runCommand(downScript, [], { env: process.env });
    },
  };
}

/**
 * A cluster that was there before. `up` writes a file of settings beside its kubeconfig's folder,
 * and its API server is on the pods' bridge.
 */
async function getGiven(kubeconfig: string, environment: NodeJS.ProcessEnv): Promise<Access> {
  const settings = path.resolve(path.dirname(kubeconfig), '../env');
  const env = existsSync(settings) ? { ...environment, ...(await source(settings, environment)) } : environment;
  const view = ['config', 'view', '--minify', '-o', 'jsonpath={.clusters[0].cluster.server}'];
  const isOfUp = URL.parse(await runCommand('kubectl', view, { env }))?.hostname === nodeAddress;
  const hostAddress = environment.CLUSTER_HOST_ADDRESS || (isOfUp ? nodeAddress : '');
  const loadImage = environment.CLUSTER_LOAD_IMAGE || (isOfUp ? 'kube-load' : '');
  const missing = [
    ...(hostAddress ? [] : ['CLUSTER_HOST_ADDRESS, at which its pods reach this machine']),
    ...(loadImage ? [] : ['CLUSTER_LOAD_IMAGE, a command that is given image archives and puts them on its nodes']),
  ];
  if (missing.length > 0)
    throw new ClusterUnavailable(
      `KUBECONFIG names a cluster that ../shared/kubernetes/up did not bring up: set ${missing.join(', and ')}; ` +
        'or unset KUBECONFIG to have one brought up.',
    );
  return { env, hostAddress, loadImage, isOurs: false };
}

/** The IPv4 block of Service addresses, as the cluster reports it from Kubernetes 1.33 on. */
async function findServiceRange(run: (program: string, args: readonly string[]) => Promise<string>): Promise<string> {
  const asked = ['get', 'servicecidr', 'kubernetes', '-o', 'jsonpath={.spec.cidrs[*]}'];
  const output = await run('kubectl', asked).catch(() => '');
  const range = output.split(/\s+/).find((one) => /^[\d.]+\/\d+$/.test(one));
  if (range !== undefined) return range;
  throw new ClusterUnavailable(
    'The cluster does not tell its range of Service addresses (IPv4): set CLUSTER_SERVICE_RANGE, ' +
      'for example 10.96.0.0/16.',
  );
}

/**
 * Returns addresses that no Service has and that Services may request, the last first. They are in
 * the first sixteenth of the range (16 to 256 addresses), because Kubernetes assigns the others at
 * random.
 * @throws ClusterUnavailable when there are fewer than `count`.
 */
export async function findFreeAddresses(
  cluster: Pick<Cluster, 'kubectl' | 'serviceRange'>,
  count: number,
): Promise<string[]> {
  const services = ['get', 'services', '--all-namespaces', '-o', 'jsonpath={.items[*].spec.clusterIP}'];
  const taken = new Set((await cluster.kubectl(services)).split(/\s+/));
  const free = listReservedAddresses(cluster.serviceRange).filter((address) => !taken.has(address));
  if (free.length >= count) return free.slice(-count).reverse();
  throw new ClusterUnavailable(
    `The first addresses of the Service range ${cluster.serviceRange} are all taken: free ${count} of them.`,
  );
}

/** Of `10.212.0.0/24`: 10.212.0.1 to 10.212.0.15. */
function listReservedAddresses(range: string): string[] {
  const [network = '', bits = '32'] = range.split('/');
  const first = network.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const reserved = Math.min(Math.max(16, 2 ** (32 - Number(bits)) / 16), 256);
  return Array.from({ length: reserved - 1 }, (_, index) => {
    const address = first + 1 + index;
    return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');
  });
}

/** The name that `up` gives the machine on the pods' bridge. */
const nodeAddress = '10.211.0.1';
const nodeName = 'node1';

/** Runs `up` and reads the settings that its last line names. */
async function bringUp(report: (line: string) => void): Promise<Access> {
  if (!existsSync(upScript))
    throw new ClusterUnavailable(
      'There is no cluster: set KUBECONFIG (test/cluster/README.md), or put ../shared/kubernetes ' +
        'beside this repository.',
    );
  let isOurs = true;
  const output = await new Promise<string>((resolve, reject) => {
    const child = spawn(upScript, [], { stdio: ['ignore', 'pipe', 'pipe'] });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      if (text.includes('already up')) isOurs = false;
      for (const line of text.split('\n').filter(Boolean)) report(line);
    });
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(stdout);
      else reject(new ClusterUnavailable(`The cluster did not come up (${code}): the lines above say why.`));
    });
  });
  const env = await source(output.trim().split('\n').at(-1) ?? '', process.env);
  return { env, hostAddress: nodeAddress, loadImage: 'kube-load', isOurs };
}

/** Reads an environment from a file of shell settings. */
async function source(file: string, env: NodeJS.ProcessEnv): Promise<NodeJS.ProcessEnv> {
  const printed = await runCommand('bash', ['-c', '. "$1" && env -0', 'bash', file], { env });
  return Object.fromEntries(
    printed
      .split('\0')
      .filter((line) => line.includes('='))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
}
