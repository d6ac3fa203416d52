import path from 'node:path';

/** The only node, which is this machine, on a bridge that nothing outside of it reaches. */
export const node = {
  name: 'node1',
  bridge: 'orgapi0',
  /** The bridge's. API server, kubelet and name server listen on it. */
  address: '10.213.0.1',
  prefixLength: 24,
  podRange: '10.213.0.0/24',
  serviceRange: '10.214.0.0/24',
  /** Of the Service `kubernetes`. */
  apiServiceAddress: '10.214.0.1',
} as const;

/** What goes with the cluster: certificates, etcd, images, logs. */
export const stateFolder = '/var/lib/org-api-kubernetes';

/** Sockets; the name is short, because a socket's path has at most 107 bytes. */
export const runFolder = '/run/org-api-kubernetes';

export const inState = (...parts: string[]): string => path.join(stateFolder, ...parts);

/** Of an administrator. */
export const kubeconfigFile = inState('admin.kubeconfig');

/** Where containerd listens. */
export const containerdSocket = path.join(runFolder, 'containerd.sock');
