import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { installPackages } from '../../../apps/dev/servers/apt.ts';
import { secondsSince } from '../../../apps/dev/servers/process.ts';
import { run } from '../../../charts/image/buildah.ts';
import { listAddOns } from './add-ons.ts';
import { writeAccess } from './certificates.ts';
import { startContainers, succeeds } from './containers.ts';
import { controlPlane } from './control-plane.ts';
import { forwardingSwitch, takeDown } from './down.ts';
import { inState, kubeconfigFile, node, runFolder } from './node.ts';
import { nodePrograms, writeNodeFiles } from './node-programs.ts';
import { isRunning, startProcess, waitUntil } from './processes.ts';
import { getPrograms } from './programs.ts';

/** Debian's packages, by a file that each brings. */
const packages = {
  containerd: '/usr/bin/containerd',
  runc: '/usr/sbin/runc',
  'containernetworking-plugins': '/usr/lib/cni/bridge',
  iptables: '/usr/sbin/iptables',
  iproute2: '/usr/sbin/ip',
  buildah: '/usr/bin/buildah',
  mmdebstrap: '/usr/bin/mmdebstrap',
} as const;

type Kubectl = (args: readonly string[], input?: string) => string;

const bridgeRules = '/proc/sys/net/bridge/bridge-nf-call-iptables';

/** Programs and access of the single-node cluster. */
export interface LocalKubernetes {
  /** With `KUBECONFIG`, and kubectl and helm on `PATH`. */
  env: NodeJS.ProcessEnv;
  /** Whether it was up before. */
  wasUp: boolean;
}

/**
 * Brings up a Kubernetes of one node on this machine, unless it is up. What fails is taken down.
 * @throws Error with the remedy.
 */
export async function bringUp(report: (line: string) => void): Promise<LocalKubernetes> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    throw new Error('A Kubernetes is brought up as root on Debian 12; or set KUBECONFIG to one (test/cluster).');
  await step('packages of Debian', report, () => installMissing(report));
  const programs = await step('programs', report, () => getPrograms(report));
  const env = { ...process.env, PATH: `${programs}:${process.env.PATH}`, KUBECONFIG: kubeconfigFile };
  const kubectl: Kubectl = (args, input) =>
    run(path.join(programs, 'kubectl'), args, { env, ...(input !== undefined && { input }) });
  if (isUp(kubectl)) return { env, wasUp: true };
  await takeDown(report);
  try {
    await startNode(programs, kubectl, report);
  } catch (error) {
    await takeDown(report);
    throw error;
  }
  return { env, wasUp: false };
}

async function startNode(programs: string, kubectl: Kubectl, report: (line: string) => void): Promise<void> {
  await step('certificates and bridge', report, () => {
    for (const folder of [inState(), runFolder]) mkdirSync(folder, { recursive: true });
    writeAccess();
    createBridge();
  });
  await step('containerd', report, () => startContainers(programs));
  await step('control plane', report, async () => {
    await start(programs, controlPlane, ['etcd', 'kube-apiserver']);
    await waitUntil('the API server', () => succeeds(() => kubectl(['get', '--raw', '/readyz'])));
    await start(programs, controlPlane, ['kube-controller-manager', 'kube-scheduler']);
  });
  await step('node', report, async () => {
    writeNodeFiles();
    await start(programs, nodePrograms, ['kubelet', 'kube-proxy', 'dns', 'metrics-server']);
    kubectl(['apply', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: listAddOns() }));
    const waits = {
      'the node': ['wait', '--for=condition=Ready', `node/${node.name}`, '--timeout=1s'],
      'the default service account': ['get', 'serviceaccount', 'default'],
      // While an API is registered and not available, every client's discovery fails.
      'the API of metrics': ['wait', '--for=condition=Available', 'apiservice/v1beta1.metrics.k8s.io', '--timeout=1s'],
    };
    for (const [what, args] of Object.entries(waits)) await waitUntil(what, () => succeeds(() => kubectl(args)));
    await waitUntil('the name server', () => isOk('http://127.0.0.1:18182/ready'));
  });
}

async function step<T>(name: string, report: (line: string) => void, work: () => T | Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const result = await work();
  report(`kubernetes: ${name}: ${secondsSince(startedAt)}`);
  return result;
}

async function installMissing(report: (line: string) => void): Promise<void> {
  const missing = Object.entries(packages).filter(([, file]) => !existsSync(file));
  const names = missing.map(([name]) => name);
  if (names.length > 0 && !(await installPackages(names, report)))
    throw new Error(`This needs packages of Debian: apt-get install ${names.join(' ')}`);
}

function isUp(kubectl: Kubectl): boolean {
  const names = ['containerd', ...Object.keys(controlPlane), ...Object.keys(nodePrograms)];
  return names.every(isRunning) && succeeds(() => kubectl(['get', '--raw', '/readyz']));
}

/** The servers listen on it before the first pod starts. */
function createBridge(): void {
  const { bridge, address, prefixLength } = node;
  run(packages.iproute2, ['link', 'add', bridge, 'type', 'bridge']);
  run(packages.iproute2, ['address', 'add', `${address}/${prefixLength}`, 'dev', bridge]);
  run(packages.iproute2, ['link', 'set', bridge, 'up']);
  writeFileSync(inState('ip_forward'), readFileSync(forwardingSwitch));
  writeFileSync(forwardingSwitch, '1');
  // So that rules of Services hold between pods of one bridge; the kernel may have it built in.
  succeeds(() => run('/usr/sbin/modprobe', ['br_netfilter']));
  if (!existsSync(bridgeRules)) throw new Error('The kernel has no br_netfilter, which rules of Services need.');
  writeFileSync(bridgeRules, '1');
}

async function start<Name extends string>(
  programs: string,
  group: Readonly<Record<Name, readonly string[]>>,
  names: readonly Name[],
): Promise<void> {
  for (const name of names) await startProcess(name, path.join(programs, name), group[name]);
}

async function isOk(url: string): Promise<boolean> {
  return fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
}
