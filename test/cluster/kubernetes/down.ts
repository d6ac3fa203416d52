import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { readState } from '../../../apps/dev/servers/process.ts';
import { run } from '../../../charts/image/buildah.ts';
import { removeContainers, succeeds } from './containers.ts';
import { inState, node, runFolder, stateFolder } from './node.ts';
import { isRunning, listStarted, programEnvironment, stopProcess } from './processes.ts';
import { getPrograms } from './programs.ts';

/** Where the network's plugins keep what they know of a pod. */
const networkResults = '/var/lib/cni/results';

/** Whether the kernel passes packets on; its value from before is in the state. */
export const forwardingSwitch = '/proc/sys/net/ipv4/ip_forward';

/**
 * Stops the single-node cluster, its pods included, and removes what it left on this machine,
 * except for its programs and Debian's packages. Does nothing where there is none.
 *
 * @throws StartupError, before anything is stopped, for state that cannot be read.
 */
export async function takeDown(report: (line: string) => void): Promise<void> {
  if (!existsSync(stateFolder)) return;
  // Read before anything stops: what cannot be read is repaired by a person, who then calls it again.
  const started = listStarted();
  started.forEach(isRunning);
  const saved = inState('ip_forward');
  const forwarding = existsSync(saved) ? readState(saved, /^[01]$/m, `set ${forwardingSwitch} to 0 or 1`) : null;
  // Those that would start pods again end before the pods, and containerd after them.
  const last = ['containerd', 'kube-apiserver', 'etcd'];
  await Promise.all(started.filter((name) => !last.includes(name)).map(stopProcess));
  if (isRunning('containerd')) succeeds(removeContainers);
  for (const name of last) await stopProcess(name);
  for (const folder of listMounts()) succeeds(() => run('umount', ['--lazy', folder]));
  await getPrograms(report)
    .then((programs) => run(path.join(programs, 'kube-proxy'), ['--cleanup'], { env: programEnvironment }))
    .catch((error: Error) => report(`rules of Services may be left in iptables: ${error.message}`));
  succeeds(() => run('/usr/sbin/ip', ['link', 'delete', node.bridge]));
  if (forwarding !== null) writeFileSync(forwardingSwitch, forwarding);
  if (existsSync(networkResults))
    for (const file of readdirSync(networkResults))
      if (file.startsWith(`${node.bridge}-`)) rmSync(path.join(networkResults, file));
  removeCgroups();
  const mounted = listMounts();
  if (mounted.length > 0) throw new Error(`These are still mounted: ${mounted.join(', ')}`);
  for (const folder of [runFolder, stateFolder]) rmSync(folder, { recursive: true, force: true });
}

/** Mounts below the cluster's folders, the innermost first. */
function listMounts(): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((folder) => [stateFolder, runFolder].some((one) => folder.startsWith(`${one}/`)))
    .toSorted()
    .toReversed();
}

/** Those that the kubelet created, of version 1 in a folder for each controller. */
function removeCgroups(): void {
  const root = '/sys/fs/cgroup';
  for (const parent of [root, ...readdirSync(root).map((name) => path.join(root, name))]) {
    const folder = path.join(parent, 'kubepods');
    if (existsSync(folder)) succeeds(() => run('find', [folder, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', '+']));
  }
}
