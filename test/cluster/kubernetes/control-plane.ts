import { apiServerName, getCertificate, getKubeconfig, tokensFile } from './certificates.ts';
import { inState, node } from './node.ts';
import type { Program } from './programs.ts';

/** etcd's, on loopback. */
const etcdUrl = 'http://127.0.0.1:23790';
const etcdPeerUrl = 'http://127.0.0.1:23800';
const authority = getCertificate('authority').cert;

/** Returns the arguments of each program of the control plane. */
export const controlPlane = {
  etcd: [
    `--data-dir=${inState('etcd')}`,
    '--unsafe-no-fsync', // nothing has to survive this machine
    '--log-level=error',
    `--listen-client-urls=${etcdUrl}`,
    `--advertise-client-urls=${etcdUrl}`,
    `--listen-peer-urls=${etcdPeerUrl}`,
    `--initial-advertise-peer-urls=${etcdPeerUrl}`,
    `--initial-cluster=default=${etcdPeerUrl}`,
  ],
  'kube-apiserver': [
    `--etcd-servers=${etcdUrl}`,
    `--bind-address=${node.address}`,
    `--advertise-address=${node.address}`,
    '--secure-port=6443',
    `--service-cluster-ip-range=${node.serviceRange}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--allow-privileged',
    `--token-auth-file=${tokensFile}`,
    `--client-ca-file=${authority}`,
    `--tls-cert-file=${getCertificate(apiServerName).cert}`,
    `--tls-private-key-file=${getCertificate(apiServerName).key}`,
    `--kubelet-certificate-authority=${authority}`,
    `--kubelet-client-certificate=${getCertificate(apiServerName).cert}`,
    `--kubelet-client-key=${getCertificate(apiServerName).key}`,
    '--kubelet-preferred-address-types=InternalIP',
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    `--service-account-key-file=${getCertificate('service-account').cert}`,
    `--service-account-signing-key-file=${getCertificate('service-account').key}`,
    // For the API of metrics, which the API server passes on to metrics-server.
    `--requestheader-client-ca-file=${authority}`,
    '--requestheader-allowed-names=front-proxy',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--proxy-client-cert-file=${getCertificate('front-proxy').cert}`,
    `--proxy-client-key-file=${getCertificate('front-proxy').key}`,
  ],
  'kube-controller-manager': [
    `--kubeconfig=${getKubeconfig('system:kube-controller-manager')}`,
    '--bind-address=127.0.0.1',
    '--leader-elect=false',
    '--use-service-account-credentials',
    `--root-ca-file=${authority}`,
    `--service-account-private-key-file=${getCertificate('service-account').key}`,
    '--horizontal-pod-autoscaler-initial-readiness-delay=5s', // a test does not wait for half a minute
  ],
  'kube-scheduler': [
    `--kubeconfig=${getKubeconfig('system:kube-scheduler')}`,
    '--bind-address=127.0.0.1',
    '--leader-elect=false',
  ],
} as const satisfies Partial<Record<Program, readonly string[]>>;
