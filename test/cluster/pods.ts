import { setTimeout as wait } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import { CommandFailedError } from './command.ts';
import type { Image, Release } from './release.ts';

export interface Pod {
  metadata: { name: string; uid: string; deletionTimestamp?: string };
  spec: { containers: { image: string }[] };
  status: { conditions?: { type: string; status: string }[]; containerStatuses?: { restartCount: number }[] };
}

export const components = ['api', 'worker', 'console'] as const;

async function listPods(cluster: Cluster, { name, namespace }: Release, component: string): Promise<Pod[]> {
  const selector = `app.kubernetes.io/instance=${name},app.kubernetes.io/component=${component}`;
  const list = await cluster.kubectl(['get', 'pods', '-n', namespace, '-l', selector, '-o', 'json']);
  return (JSON.parse(list) as { items: Pod[] }).items;
}

/** Returns the errors in the logs of a release's API that name a request. */
export async function findErrors(cluster: Cluster, { name, namespace }: Release, requestId: string): Promise<string> {
  const selector = `app.kubernetes.io/instance=${name},app.kubernetes.io/component=api`;
  const options = ['--tail=-1', '--since=1m', '--prefix', '--ignore-errors', '--max-log-requests=20'];
  const log = await cluster.kubectl(['logs', '-n', namespace, '-l', selector, ...options]).catch(String);
  const lines = log.split('\n').filter((line) => line.includes(requestId) && line.includes('"error"'));
  return lines.join(' ') || `the log has no error of the request ${requestId}`;
}

/** Pods of all components that are not terminating. */
export async function listStaying(cluster: Cluster, release: Release): Promise<Pod[]> {
  return (await Promise.all(components.map((component) => listStayingPods(cluster, release, component)))).flat();
}

async function listStayingPods(cluster: Cluster, release: Release, component: string): Promise<Pod[]> {
  const pods = await listPods(cluster, release, component);
  return pods.filter(isStaying);
}

const isStaying = ({ metadata }: Pod) => metadata.deletionTimestamp === undefined;

/**
 * `helm upgrade --wait` has returned, so every ready pod must have the new image; nothing is waited
 * for here.
 */
export async function assertServes(cluster: Cluster, release: Release, image: Image): Promise<void> {
  for (const component of components) {
    const ready = (await listPods(cluster, release, component)).filter(isReady);
    const images = new Set(ready.flatMap(({ spec }) => spec.containers.map((container) => container.image)));
    if (ready.length === 0 || images.size !== 1 || !images.has(`${image.repository}:${image.tag}`))
      throw new Error(
        `helm returned from waiting, and the ${component} pods that are ready run ${[...images].join(' and ')}`,
      );
  }
}

const isReady = (pod: Pod) =>
  isStaying(pod) && pod.status.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');

async function waitUntilRolledOut(cluster: Cluster, { name, namespace }: Release): Promise<void> {
  for (const component of components)
    await cluster.kubectl(['rollout', 'status', `deployment/${name}-${component}`, '-n', namespace, '--timeout=120s'], {
      timeoutMs: 150_000,
    });
}

/** Repeatable numbers from 0 to 1 from a seed (mulberry32), to choose pods. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Deletes a random pod of each kind in random order, and the next when the first is replaced. */
export async function deletePods(cluster: Cluster, release: Release, random: () => number): Promise<void> {
  const left: string[] = [...components];
  while (left.length > 0) {
    const [component = ''] = left.splice(Math.floor(random() * left.length), 1);
    const pods = await listStayingPods(cluster, release, component);
    const pod = pods[Math.floor(random() * pods.length)];
    if (pod !== undefined)
      await cluster.kubectl(['delete', 'pod', pod.metadata.name, '-n', release.namespace, '--wait=false']);
    await waitUntilRolledOut(cluster, release);
  }
}

/**
 * Evicts every pod with the API that `kubectl drain` uses, so that the disruption budget applies.
 * The node is not cordoned, because it is the only one.
 */
export async function evictPods(cluster: Cluster, release: Release): Promise<void> {
  for (const component of components)
    for (const pod of await listStayingPods(cluster, release, component))
      await evict(cluster, release, pod.metadata.name);
  await waitUntilRolledOut(cluster, release);
}

/**
 * Repeats until the budget permits it; the response is 429 meanwhile. A pod that ended by itself
 * counts as evicted, as for `kubectl drain`.
 */
async function evict(cluster: Cluster, { namespace }: Release, pod: string): Promise<void> {
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod, namespace } };
  for (const giveUpAt = performance.now() + 120_000; ; ) {
    try {
      const path = `/api/v1/namespaces/${namespace}/pods/${pod}/eviction`;
      await cluster.kubectl(['create', '--raw', path, '-f', '-'], { input: JSON.stringify(body) });
      return;
    } catch (error) {
      if (error instanceof CommandFailedError && /NotFound/.test(error.stderr)) return;
      const isRejected = error instanceof CommandFailedError && /disruption budget|TooManyRequests/i.test(error.stderr);
      if (!isRejected || performance.now() > giveUpAt) throw error;
      await wait(1_000);
    }
  }
}
