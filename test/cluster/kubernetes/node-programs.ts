import { writeFileSync } from 'node:fs';
import { getCertificate, getKubeconfig } from './certificates.ts';
import { containerdSocket, inState, node } from './node.ts';
import type { Program } from './programs.ts';

const authority = getCertificate('authority').cert;
const kubeletConfig = inState('kubelet.json');
const proxyConfig = inState('proxy.json');
const dnsConfig = inState('Corefile');

/** Returns the arguments of each program of the node and of its add-ons. */
export const nodePrograms = {
  kubelet: [
    `--config=${kubeletConfig}`,
    `--kubeconfig=${getKubeconfig(`system:node:${node.name}`)}`,
    `--root-dir=${inState('kubelet')}`,
    `--hostname-override=${node.name}`,
    `--node-ip=${node.address}`,
  ],
  'kube-proxy': [`--config=${proxyConfig}`],
  dns: ['-conf', dnsConfig],
  'metrics-server': [
    ...['kubeconfig', 'authentication-kubeconfig', 'authorization-kubeconfig'].map(
      (name) => `--${name}=${getKubeconfig('admin')}`,
    ),
    `--bind-address=${node.address}`,
    '--secure-port=4443',
    `--tls-cert-file=${getCertificate('metrics-server').cert}`,
    `--tls-private-key-file=${getCertificate('metrics-server').key}`,
    `--kubelet-certificate-authority=${authority}`,
    '--kubelet-preferred-address-types=InternalIP',
    '--metric-resolution=15s',
  ],
} as const satisfies Partial<Record<Program, readonly string[]>>;

/** Writes the files that the arguments name. */
export function writeNodeFiles(): void {
  writeFileSync(inState('resolv.conf'), ''); // pods inherit no search domain of this machine
  writeFileSync(kubeletConfig, JSON.stringify(kubeletConfiguration));
  writeFileSync(proxyConfig, JSON.stringify(proxyConfiguration));
  writeFileSync(dnsConfig, corefile);
}

const kubeletConfiguration = {
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  address: node.address,
  healthzBindAddress: '127.0.0.1',
  containerRuntimeEndpoint: `unix://${containerdSocket}`,
  authentication: {
    anonymous: { enabled: false },
    webhook: { enabled: true },
    x509: { clientCAFile: authority },
  },
  authorization: { mode: 'Webhook' },
  tlsCertFile: getCertificate('kubelet').cert,
  tlsPrivateKeyFile: getCertificate('kubelet').key,
  clusterDNS: [node.address],
  clusterDomain: 'cluster.local',
  resolvConf: inState('resolv.conf'),
  cgroupDriver: 'cgroupfs',
  failCgroupV1: false,
  failSwapOn: false,
  oomScoreAdj: 0, // as restrict_oom_score_adj of containerd
  makeIPTablesUtilChains: false, // kube-proxy has all rules that are needed, and removes them
  podLogsDir: inState('pod-logs'),
  volumePluginDir: inState('volume-plugins'),
  // Images cannot be pulled again, and a disk that others fill evicts no pod.
  imageGCHighThresholdPercent: 100,
  evictionHard: Object.fromEntries(
    ['memory.available', 'nodefs.available', 'imagefs.available', 'nodefs.inodesFree'].map((one) => [one, '1%']),
  ),
};

const proxyConfiguration = {
  apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
  kind: 'KubeProxyConfiguration',
  mode: 'iptables',
  clientConnection: { kubeconfig: getKubeconfig('system:kube-proxy') },
  hostnameOverride: node.name,
  bindAddress: node.address,
  clusterCIDR: node.podRange,
  oomScoreAdj: 0,
  healthzBindAddress: '127.0.0.1:10256',
  metricsBindAddress: '127.0.0.1:10249',
  nodePortAddresses: [node.podRange],
  conntrack: { maxPerCore: 0, min: 0 }, // this machine's own settings stay
  iptables: { localhostNodePorts: false },
};

/** Other names do not exist: there is no way out, and a resolver would wait for it. */
const corefile = `
.:53 {
  bind ${node.address}
  ready 127.0.0.1:18182
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig ${getKubeconfig('admin')}
    ttl 5
    fallthrough in-addr.arpa
  }
  template ANY ANY {
    rcode NXDOMAIN
  }
}
`;
