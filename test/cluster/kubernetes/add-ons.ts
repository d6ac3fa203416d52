import { readFileSync } from 'node:fs';
import { apiServerName, getCertificate } from './certificates.ts';
import { node } from './node.ts';

const metrics = { name: 'metrics-server', namespace: 'kube-system' };

/** Returns the objects that the API server needs for kubelet and metrics-server. */
export const listAddOns = (): object[] => [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: 'kubelet-api' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:kubelet-api-admin' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: apiServerName }],
  },
  { apiVersion: 'v1', kind: 'Service', metadata: metrics, spec: { ports: [{ port: 443, targetPort: 4443 }] } },
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { ...metrics, labels: { 'kubernetes.io/service-name': metrics.name } },
    addressType: 'IPv4',
    ports: [{ port: 4443, protocol: 'TCP' }],
    endpoints: [{ addresses: [node.address], conditions: { ready: true } }],
  },
  {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: 'v1beta1.metrics.k8s.io' },
    spec: {
      group: 'metrics.k8s.io',
      version: 'v1beta1',
      service: metrics,
      groupPriorityMinimum: 100,
      versionPriority: 100,
      caBundle: readFileSync(getCertificate('authority').cert).toString('base64'),
    },
  },
];
