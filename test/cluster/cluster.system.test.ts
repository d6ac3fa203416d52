/**
 * How the cluster test finds its cluster. kubectl is a stand-in here, because the rest of the test
 * needs a real cluster.
 */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { kubernetesMinor, tools } from '../../charts/tools.ts';
import { findFreeAddresses, getCluster } from './cluster.ts';

/**
 * Creates a folder with the tools of a cluster. kubectl answers with the range of Services or the
 * version, and `load` notes the archives that it was given.
 */
function arrange(ranges = '10.96.0.0/12') {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-kube-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const tool = (name: string, text: string) => {
    writeFileSync(path.join(folder, name), `#!/bin/bash\n${text}\n`);
    chmodSync(path.join(folder, name), 0o755);
  };
  tool(
    'kubectl',
    `case "$1 $2" in
      'version -o') echo '{"serverVersion": {"gitVersion": "v1.36.3"}}' ;;
      'get servicecidr') [ -n '${ranges}' ] && echo -n '${ranges}' ;;
    esac`,
  );
  tool('load', `echo "$@" > ${folder}/loaded`);
  const settings = { CLUSTER_HOST_ADDRESS: '172.18.0.1', CLUSTER_LOAD_IMAGE: `false || ${folder}/load archive` };
  return {
    folder,
    settings,
    environment: { PATH: `${folder}:${process.env.PATH}`, KUBECONFIG: path.join(folder, 'admin.kubeconfig') },
  };
}

const silent = () => {};

describe('a cluster of KUBECONFIG', () => {
  it('needs settings for the route from its pods to this machine and for images, and both are reported at once', async () => {
    const { environment } = arrange();
    await expect(getCluster(silent, environment)).rejects.toThrow(/CLUSTER_HOST_ADDRESS, .* and CLUSTER_LOAD_IMAGE/);
  });

  it('is used as configured, with a command of several words', async () => {
    const { folder, environment, settings } = arrange('fd00::/108 10.96.0.0/12');
    const cluster = await getCluster(silent, { ...environment, ...settings });
    expect(cluster).toMatchObject({ hostAddress: '172.18.0.1', serviceRange: '10.96.0.0/12', localNode: null });
    await cluster.loadImages(['/tmp/a.tar', '/tmp/b.tar']);
    expect(readFileSync(path.join(folder, 'loaded'), 'utf8')).toBe('archive /tmp/a.tar /tmp/b.tar\n');
  });

  it('that does not report its Service range fails with that message', async () => {
    const { environment, settings } = arrange('');
    await expect(getCluster(silent, { ...environment, ...settings })).rejects.toThrow(/set CLUSTER_SERVICE_RANGE/);
    const range = { CLUSTER_SERVICE_RANGE: '10.43.0.0/16' };
    const cluster = await getCluster(silent, { ...environment, ...settings, ...range });
    expect(cluster.serviceRange).toBe('10.43.0.0/16');
  });
});

it('helm of the cluster is the version of the other tests', () => {
  const module = readFileSync(path.join(import.meta.dirname, 'kubernetes/programs/go.mod'), 'utf8');
  expect(module).toContain(`helm.sh/helm/v3 ${tools.helm.version} `);
  expect(module).toContain(`k8s.io/kubernetes v1.${kubernetesMinor}.`);
});

describe('addresses of the probes', () => {
  const free = (serviceRange: string, taken: string[], count: number) =>
    findFreeAddresses({ serviceRange, kubectl: async () => taken.join(' ') }, count);

  it('are the last free ones of the range that Kubernetes does not assign by itself', async () => {
    expect(await free('10.212.0.0/24', ['10.212.0.1', 'None'], 2)).toEqual(['10.212.0.15', '10.212.0.14']);
    expect(await free('10.212.0.0/24', ['10.212.0.15'], 2)).toEqual(['10.212.0.14', '10.212.0.13']);
    expect(await free('10.96.0.0/12', [], 1)).toEqual(['10.96.0.255']);
    expect(await free('10.96.0.0/20', [], 1)).toEqual(['10.96.0.255']);
  });

  it('are rejected when there are none', async () => {
    const taken = Array.from({ length: 15 }, (_, index) => `10.212.0.${index + 1}`);
    await expect(free('10.212.0.0/24', taken, 1)).rejects.toThrow(/are all taken/);
  });
});
