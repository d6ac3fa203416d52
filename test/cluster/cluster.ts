import path from 'node:path';
import { type CommandOptions, runCommand } from './command.ts';
import { loadImage } from './kubernetes/containers.ts';
import { takeDown } from './kubernetes/down.ts';
import { kubeconfigFile, node } from './kubernetes/node.ts';
import { bringUp } from './kubernetes/up.ts';

/** There is no cluster to test on; the message contains the reason and the remedy. */
export class ClusterUnavailableError extends Error {}

/** A Kubernetes that answers, and its tools. */
export interface Cluster {
  /** Address of this machine for pods. */
  hostAddress: string;
  /** Addresses of Services, as a block (IPv4). */
  serviceRange: string;
  /** The node, when it is this machine. */
  localNode: { name: string; env: NodeJS.ProcessEnv } | null;
  kubectl(args: readonly string[], options?: Partial<CommandOptions>): Promise<string>;
  helm(args: readonly string[], options?: Partial<CommandOptions>): Promise<string>;
  /** Creates or changes objects; `manifests` as JSON. */
  apply(namespace: string, manifests: readonly object[]): Promise<void>;
  /** Makes image archives available to pods. */
  loadImages(archives: readonly string[]): Promise<void>;
  /** Takes the cluster down when this call brought it up. */
  stop(): Promise<void>;
}

/** How a cluster is reached. */
interface Access {
  env: NodeJS.ProcessEnv;
  hostAddress: string;
  localNode: Cluster['localNode'];
  loadImages: Cluster['loadImages'];
  stop: Cluster['stop'];
}

/**
 * Returns the cluster of `KUBECONFIG`, or else a single-node cluster on this machine, which it
 * brings up (test/cluster/kubernetes) and takes down again unless it was up. README.md lists what
 * another cluster needs.
 * @throws ClusterUnavailableError
 */
export async function getCluster(
  report: (line: string) => void,
  environment: NodeJS.ProcessEnv = process.env,
): Promise<Cluster> {
  const given = environment.KUBECONFIG;
  const isGiven = given && path.resolve(given) !== kubeconfigFile;
  const { env, ...access } = isGiven ? getGiven(environment) : await getLocal(report);
  const run = (program: string, args: readonly string[], options: Partial<CommandOptions> = {}) =>
    runCommand(program, args, { env, ...options });
  const examine = async () => {
    const version = JSON.parse(await run('kubectl', ['version', '-o', 'json'])) as {
      serverVersion: { gitVersion: string };
    };
    report(`Kubernetes ${version.serverVersion.gitVersion}`);
    return environment.CLUSTER_SERVICE_RANGE || findServiceRange(run);
  };
  const serviceRange = await examine().catch(async (error: unknown) => {
    await access.stop();
    throw error;
  });
  return {
    ...access,
    serviceRange,
    kubectl: (args, options) => run('kubectl', args, options),
    helm: (args, options) => run('helm', args, options),
    async apply(namespace, manifests) {
      const list = { apiVersion: 'v1', kind: 'List', items: manifests };
      await run('kubectl', ['apply', '-n', namespace, '-f', '-'], { input: JSON.stringify(list) });
    },
  };
}

/** A cluster that was there before, with its tools on `PATH`. */
function getGiven(environment: NodeJS.ProcessEnv): Access {
  const { CLUSTER_HOST_ADDRESS: hostAddress, CLUSTER_LOAD_IMAGE: loadImage } = environment;
  if (hostAddress && loadImage) {
    return {
      env: environment,
      hostAddress,
      localNode: null,
      async loadImages(archives) {
        const args = ['-c', `${loadImage} "$@"`, 'bash', ...archives];
        await runCommand('bash', args, { env: environment, timeoutMs: 300_000 });
      },
      stop: async () => {},
    };
  }
  const missing = [
    ...(hostAddress ? [] : ['CLUSTER_HOST_ADDRESS, at which its pods reach this machine']),
    ...(loadImage ? [] : ['CLUSTER_LOAD_IMAGE, a command that is given image archives and puts them on its nodes']),
  ];
  throw new ClusterUnavailableError(
    `KUBECONFIG names a cluster: set ${missing.join(', and ')}; or unset KUBECONFIG to have one brought up.`,
  );
}

async function getLocal(report: (line: string) => void): Promise<Access> {
  const { env, wasUp } = await bringUp(report).catch((error: Error) => {
    throw new ClusterUnavailableError(error.message);
  });
  return {
    env,
    hostAddress: node.address,
    localNode: { name: node.name, env },
    loadImages: async (archives) => archives.forEach(loadImage),
    stop: async () => void (wasUp || (await takeDown(report))),
  };
}

/** The IPv4 block of Service addresses, as the cluster reports it from Kubernetes 1.33 on. */
async function findServiceRange(run: (program: string, args: readonly string[]) => Promise<string>): Promise<string> {
  const requested = ['get', 'servicecidr', 'kubernetes', '-o', 'jsonpath={.spec.cidrs[*]}'];
  const output = await run('kubectl', requested).catch(() => '');
  const range = output.split(/\s+/).find((one) => /^[\d.]+\/\d+$/.test(one));
  if (range !== undefined) return range;
  throw new ClusterUnavailableError(
    'The cluster does not tell its range of Service addresses (IPv4): set CLUSTER_SERVICE_RANGE, ' +
      'for example 10.96.0.0/16.',
  );
}

/**
 * Returns addresses that no Service has and that Services may request, the last first. They are in
 * the first sixteenth of the range (16 to 256 addresses), because Kubernetes assigns the others at
 * random.
 * @throws ClusterUnavailableError when there are fewer than `count`.
 */
export async function findFreeAddresses(
  cluster: Pick<Cluster, 'kubectl' | 'serviceRange'>,
  count: number,
): Promise<string[]> {
  const services = ['get', 'services', '--all-namespaces', '-o', 'jsonpath={.items[*].spec.clusterIP}'];
  const taken = new Set((await cluster.kubectl(services)).split(/\s+/));
  const free = listReservedAddresses(cluster.serviceRange).filter((address) => !taken.has(address));
  if (free.length >= count) return free.slice(-count).reverse();
  throw new ClusterUnavailableError(
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
