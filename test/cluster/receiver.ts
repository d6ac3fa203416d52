import { setTimeout as wait } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import type { Arrival } from './judge.ts';
import { readLines } from './log-lines.ts';

const port = 8090;
const name = 'receiver';

/**
 * Creates the Service of the sample receiver in the cluster, before its webhooks, which contain its
 * address. Returns its base URL.
 */
export async function createReceiverService(cluster: Cluster, namespace: string): Promise<string> {
  await cluster.apply(namespace, [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name },
      spec: { selector: { app: name }, ports: [{ port, targetPort: port }] },
    },
  ]);
  const address = await cluster.kubectl(['get', 'service', name, '-n', namespace, '-o', 'jsonpath={.spec.clusterIP}']);
  return `http://${address}:${port}`;
}

/**
 * Starts the sample receiver of the image, which verifies each post and logs a line for it;
 * resolves when it is ready. `secrets` are by endpoint.
 */
export async function startReceiver(
  cluster: Cluster,
  options: { namespace: string; image: string; secrets: Record<string, string[]> },
): Promise<void> {
  const { namespace, image, secrets } = options;
  await cluster.apply(namespace, [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'receiver-secrets' },
      stringData: { secrets: JSON.stringify(secrets) },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name },
      spec: {
        replicas: 1,
        selector: { matchLabels: { app: name } },
        template: {
          metadata: { labels: { app: name } },
          spec: {
            automountServiceAccountToken: false,
            enableServiceLinks: false, // no variables of Services
            securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
            containers: [
              {
                name,
                image,
                imagePullPolicy: 'IfNotPresent',
                command: ['node', 'apps/receiver/main.ts'],
                env: [
                  { name: 'HOST', value: '0.0.0.0' },
                  {
                    name: 'RECEIVER_SECRETS',
                    valueFrom: { secretKeyRef: { name: 'receiver-secrets', key: 'secrets' } },
                  },
                ],
                // It listens: a slow one must not leave its Service, because there is no other.
                readinessProbe: { tcpSocket: { port }, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 10 },
                securityContext: {
                  allowPrivilegeEscalation: false,
                  readOnlyRootFilesystem: true,
                  capabilities: { drop: ['ALL'] },
                },
              },
            ],
          },
        },
      },
    },
  ]);
  await cluster.kubectl(['rollout', 'status', `deployment/${name}`, '-n', namespace, '--timeout=90s']);
}

/** Returns every post that reached the receiver, in order, from its log. */
async function listArrivals(cluster: Cluster, namespace: string): Promise<Arrival[]> {
  const log = await cluster.kubectl(['logs', `deployment/${name}`, '-n', namespace, '--tail=-1']);
  return readLines<Arrival & { msg: string }>(log).filter(({ msg }) => msg === 'received');
}

/**
 * Reads arrivals from the receiver's log. The log is written in batches and may lack the last
 * arrivals, so an incomplete log is read again for ten seconds.
 */
export async function readArrivals<T>(
  cluster: Cluster,
  namespace: string,
  read: (arrivals: Arrival[]) => Promise<{ result: T; isComplete: boolean }>,
): Promise<T> {
  for (const giveUpAt = performance.now() + 10_000; ; await wait(500)) {
    const { result, isComplete } = await read(await listArrivals(cluster, namespace));
    if (isComplete || performance.now() > giveUpAt) return result;
  }
}
