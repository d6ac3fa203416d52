import { mkdirSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openStore, run } from '../../../charts/image/buildah.ts';
import { containerdSocket, inState, node, runFolder } from './node.ts';
import { startProcess, waitUntil } from './processes.ts';

const pauseImage = 'localhost/pause:1';
/** The type of a file system on which overlayfs can have no layers: overlayfs itself. */
const overlayType = 0x79_4c_76_30;

/** Starts containerd with the image that each pod begins with. */
export async function startContainers(programs: string): Promise<void> {
  writeFileSync(inState('containerd.toml'), containerdConfig());
  mkdirSync(inState('network'));
  writeFileSync(inState('network', 'bridge.conflist'), JSON.stringify(networkConfig));
  await startProcess('containerd', 'containerd', ['--config', inState('containerd.toml')]);
  await waitUntil('containerd', () => succeeds(() => containers('version')));
  const work = mkdtempSync(path.join(tmpdir(), 'org-api-pause-'));
  try {
    const buildah = openStore(work);
    const container = buildah('from', 'scratch');
    buildah('copy', container, path.join(programs, 'pause'), '/pause');
    buildah('config', '--entrypoint', '["/pause"]', container);
    const archive = path.join(work, 'pause.tar');
    buildah('push', '--quiet', buildah('commit', '--quiet', container), `docker-archive:${archive}:${pauseImage}`);
    loadImage(archive);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Makes an archive of an image (docker-archive or OCI) available to pods. */
export function loadImage(archive: string): void {
  containers('images', 'import', archive);
}

/** Ends all containers. It takes no grace period. */
export function removeContainers(): void {
  for (const kind of ['tasks', 'containers'])
    for (const id of containers(kind, 'list', '--quiet').split('\n').filter(Boolean))
      succeeds(() => containers(kind, 'delete', ...(kind === 'tasks' ? ['--force'] : []), id));
}

const containers = (...args: string[]): string => run('ctr', ['-a', containerdSocket, '-n', 'k8s.io', ...args]);

/** Returns whether a step throws nothing. */
export function succeeds(step: () => unknown): boolean {
  try {
    step();
    return true;
  } catch {
    return false;
  }
}

/** Pods have addresses of the bridge, and no way out of this machine: nothing is masqueraded. */
const networkConfig = {
  cniVersion: '0.4.0',
  name: node.bridge,
  plugins: [
    {
      type: 'bridge',
      bridge: node.bridge,
      isGateway: true,
      isDefaultGateway: true,
      hairpinMode: true,
      ipam: {
        type: 'host-local',
        dataDir: inState('addresses'),
        ranges: [[{ subnet: node.podRange, gateway: node.address }]],
      },
    },
  ],
};

/**
 * Everything that containerd writes is in the folders of this cluster. Root in a container may not
 * lower the kernel's priority to end a process, hence `restrict_oom_score_adj`.
 */
function containerdConfig(): string {
  const cri = '[plugins."io.containerd.grpc.v1.cri"';
  const snapshots = statfsSync(inState()).type === overlayType ? 'native' : 'overlayfs';
  return `
version = 2
root = "${inState('containerd')}"
state = "${path.join(runFolder, 'containerd')}"
[grpc]
address = "${containerdSocket}"
[plugins."io.containerd.internal.v1.opt"]
path = "${inState('opt')}"
${cri}]
sandbox_image = "${pauseImage}"
netns_mounts_under_state_dir = true
disable_apparmor = true
restrict_oom_score_adj = true
${cri}.cni]
bin_dir = "/usr/lib/cni"
conf_dir = "${inState('network')}"
${cri}.containerd]
snapshotter = "${snapshots}"
${cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
`;
}
