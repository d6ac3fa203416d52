import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type CommandOptions, runCommand } from './command.ts';

/** There is no cluster to test on; the message says why and what to do. */
export class ClusterUnavailable extends Error {}

/** A Kubernetes that answers, and its tools. */
export interface Cluster {
  /** Address of this machine as pods reach it. */
  hostAddress: string;
  kubectl(args: readonly string[], options?: Partial<CommandOptions>): Promise<string>;
  helm(args: readonly string[], options?: Partial<CommandOptions>): Promise<string>;
  /** Creates or changes objects; `manifests` as JSON. */
  apply(namespace: string, manifests: readonly object[]): Promise<void>;
  /** Puts image archives where pods can start from them. */
  loadImages(archives: readonly string[]): Promise<void>;
  /** Takes the cluster down when this call brought it up; leaves it when it was there before. */
  stop(): Promise<void>;
}

const upScript = fileURLToPath(new URL('../../../shared/kubernetes/up', import.meta.url));
const downScript = fileURLToPath(new URL('../../../shared/kubernetes/down', import.meta.url));

/**
 * The cluster of `KUBECONFIG`, else a single-node one of this machine's own that `../shared/kubernetes/up` brings up (about 4 minutes the first time, seconds after).
 *
 * A cluster of one's own must reach this machine at `CLUSTER_HOST_ADDRESS` (PostgreSQL, Redis and Temporal run here), and take images by `CLUSTER_LOAD_IMAGE`, a program that is given
 * archives.
 *
 * @throws ClusterUnavailable
 */
export async function getCluster(report: (line: string) => void): Promise<Cluster> {
  const given = process.env.KUBECONFIG;
  const { env, isOurs } = given ? { env: process.env, isOurs: false } : await bringUp(report);
  const hostAddress = given ? process.env.CLUSTER_HOST_ADDRESS : nodeAddress;
  if (!hostAddress)
    throw new ClusterUnavailable(
      'KUBECONFIG names a cluster, but not how its pods reach this machine: set CLUSTER_HOST_ADDRESS, or unset KUBECONFIG to have a cluster brought up.',
    );
  const cluster: Cluster = {
    hostAddress,
    kubectl: (args, options) => runCommand('kubectl', args, { env, ...options }),
    helm: (args, options) => runCommand('helm', args, { env, ...options }),
    async apply(namespace, manifests) {
      const list = { apiVersion: 'v1', kind: 'List', items: manifests };
      await cluster.kubectl(['apply', '-n', namespace, '-f', '-'], { input: JSON.stringify(list) });
    },
    async loadImages(archives) {
      const program = given ? process.env.CLUSTER_LOAD_IMAGE : 'kube-load';
      if (program) await runCommand(program, archives, { env });
    },
    async stop() {
      if (isOurs) await runCommand(downScript, [], { env: process.env });
    },
  };
  const version = JSON.parse(await cluster.kubectl(['version', '-o', 'json'])) as {
    serverVersion: { gitVersion: string };
  };
  report(`Kubernetes ${version.serverVersion.gitVersion}`);
  return cluster;
}

/** What `up` gives the machine on the pods' bridge. */
const nodeAddress = '10.211.0.1';

/** Runs `up` and reads the settings that its last line names. */
async function bringUp(report: (line: string) => void): Promise<{ env: NodeJS.ProcessEnv; isOurs: boolean }> {
  if (!existsSync(upScript))
    throw new ClusterUnavailable(
      'There is no cluster: set KUBECONFIG (with CLUSTER_HOST_ADDRESS), or put ../shared/kubernetes beside this repository.',
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
  const file = output.trim().split('\n').at(-1) ?? '';
  const printed = await runCommand('bash', ['-c', '. "$1" && env -0', 'bash', file], { env: process.env });
  const env = Object.fromEntries(
    printed
      .split('\0')
      .filter((line) => line.includes('='))
      .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
  );
  return { env, isOurs };
}
