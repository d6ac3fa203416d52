/**
 * How the cluster test finds its cluster. kubectl is a stand-in here, because the rest of the test
 * needs a real cluster.
 */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { findFreeAddresses, getCluster } from './cluster.ts';

/**
 * Creates a folder as `up` does, or with `server` a folder of another cluster: kubeconfig, tools
 * and settings. A tool answers with the server's address, the range or the version.
 */
function arrange({
  server,
  settings = true,
  ranges = '10.212.0.0/24',
}: {
  server: string;
  settings?: boolean;
  ranges?: string;
}) {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-kube-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const name of ['pki', 'bin']) mkdirSync(path.join(folder, name));
  const tool = (name: string, text: string) => {
    writeFileSync(path.join(folder, 'bin', name), `#!/bin/bash\n${text}\n`);
    chmodSync(path.join(folder, 'bin', name), 0o755);
  };
  tool(
    'kubectl',
    `case "$1 $2" in
      'config view') echo -n '${server}' ;;
      'version -o') echo '{"serverVersion": {"gitVersion": "v1.36.3"}}' ;;
      'get servicecidr') [ -n '${ranges}' ] && echo -n '${ranges}' ;;
    esac`,
  );
  tool('kube-load', `echo "$@" > ${folder}/loaded`);
  const PATH = `${folder}/bin:${process.env.PATH}`;
  if (settings) writeFileSync(path.join(folder, 'env'), `export PATH=${folder}/bin:$PATH`);
  return {
    folder,
    environment: { PATH: settings ? process.env.PATH : PATH, KUBECONFIG: `${folder}/pki/admin.kubeconfig` },
  };
}

const silent = () => {};

describe('with KUBECONFIG set', () => {
  it.each([true, false])('the cluster of `up` needs only its own settings: %s', async (settings) => {
    const { environment } = arrange({ server: 'https://10.211.0.1:6443', settings });
    const cluster = await getCluster(silent, environment);
    expect(cluster).toMatchObject({ hostAddress: '10.211.0.1', serviceRange: '10.212.0.0/24' });
    await cluster.loadImages(['/tmp/a.tar', '/tmp/b.tar']);
  });

  it('another cluster needs settings for the route from its pods to this machine and for images, and both are reported at once', async () => {
    const { environment } = arrange({ server: 'https://kube.example.com:6443' });
    await expect(getCluster(silent, environment)).rejects.toThrow(/CLUSTER_HOST_ADDRESS, .* and CLUSTER_LOAD_IMAGE/);
  });

  it('another cluster is used as configured, with a command of several words', async () => {
    const { folder, environment } = arrange({
      server: 'https://kube.example.com:6443',
      ranges: 'fd00::/108 10.96.0.0/12',
    });
    const settings = {
      CLUSTER_HOST_ADDRESS: '172.18.0.1',
      CLUSTER_LOAD_IMAGE: `false || ${folder}/bin/kube-load archive`,
    };
    const cluster = await getCluster(silent, { ...environment, ...settings });
    expect(cluster).toMatchObject({ hostAddress: '172.18.0.1', serviceRange: '10.96.0.0/12' });
    await cluster.loadImages(['/tmp/a.tar']);
  });

  it('a cluster that does not report its Service range fails with that message', async () => {
    const { environment } = arrange({ server: 'https://10.211.0.1:6443', ranges: '' });
    await expect(getCluster(silent, environment)).rejects.toThrow(/set CLUSTER_SERVICE_RANGE/);
    const cluster = await getCluster(silent, { ...environment, CLUSTER_SERVICE_RANGE: '10.43.0.0/16' });
    expect(cluster.serviceRange).toBe('10.43.0.0/16');
  });
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

  it('are refused when there are none', async () => {
    const taken = Array.from({ length: 15 }, (_, index) => `10.212.0.${index + 1}`);
    await expect(free('10.212.0.0/24', taken, 1)).rejects.toThrow(/are all taken/);
  });
});
