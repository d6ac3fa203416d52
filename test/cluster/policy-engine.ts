import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { setTimeout as wait } from 'node:timers/promises';
import { StartupError } from '#runtime/errors.ts';
import { endChild } from '#test/end-child.ts';
import { installPackages } from '../../apps/dev/servers/apt.ts';
import { getTool } from '../../charts/tools.ts';
import type { Cluster } from './cluster.ts';
import { runCommand } from './command.ts';

const startDeadlineMs = 30_000;
const chain = 'KUBE-ROUTER-FORWARD';

/** Enforces NetworkPolicies during the test. */
export interface PolicyEngine {
  /** Ends it and removes its firewall rules. */
  stop(): Promise<void>;
}

/**
 * Starts the firewall of kube-router beside the node of `up`, whose network plugin enforces no
 * NetworkPolicy. Returns null, and reports why, on another cluster or without the tools.
 */
export async function startPolicyEngine(
  { localNode: node, serviceRange }: Pick<Cluster, 'localNode' | 'serviceRange'>,
  report: (line: string) => void,
): Promise<PolicyEngine | null> {
  if (node === null) {
    report('NetworkPolicies are not checked: the node is another machine');
    return null;
  }
  const isMissing = spawnSync('sh', ['-c', 'command -v ipset']).status !== 0; // iptables is the node's
  if (isMissing && !(await installPackages(['ipset'], report)))
    throw new StartupError('NetworkPolicies are checked with ipset: apt-get install ipset');
  const { env, name } = node;
  const program = await getTool('kube-router');
  const kubeconfig = `--kubeconfig=${env.KUBECONFIG}`;
  const parts = ['--run-firewall=true', '--run-router=false', '--run-service-proxy=false'];
  const pages = ['--health-port=0', '--metrics-port=0'];
  const place = [kubeconfig, `--hostname-override=${name}`, `--service-cluster-ip-range=${serviceRange}`];
  const child = spawn(program, [...parts, ...pages, ...place], { env, stdio: 'ignore' });
  const stop = async () => {
    await endChild(child, 'SIGTERM');
    await runCommand(program, ['--cleanup-config', kubeconfig], { env });
  };
  try {
    await waitForRules(child);
  } catch (error) {
    await stop();
    throw error;
  }
  report('NetworkPolicies are enforced by kube-router');
  return { stop };
}

/** @throws Error when it ends, or writes no rules. */
async function waitForRules(child: ChildProcess): Promise<void> {
  for (const giveUpAt = performance.now() + startDeadlineMs; performance.now() < giveUpAt; await wait(250)) {
    if (child.exitCode !== null) throw new Error(`kube-router ended with ${child.exitCode}`);
    if (spawnSync('iptables', ['-S', chain]).status === 0) return;
  }
  throw new Error('kube-router wrote no rules');
}
