import { randomBytes } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import type { Cluster } from './cluster.ts';
import { CommandFailed } from './command.ts';
import type { RegionSecrets } from './installation.ts';
import { applySecrets, type Image, type Release } from './release.ts';
import type { RegionServers } from './servers.ts';

/** A region while it is being worked on. */
export interface Operated {
  release: Release;
  servers: RegionServers;
  secrets: RegionSecrets;
}

/** Something an SRE does, or that happens to them, while partners read and events flow. */
export interface Operation {
  name: string;
  run(): Promise<void>;
}

/** Everything that the issue "Helm per region" asks for under load, in order. `images`: two good versions, and one whose migration fails. */
export function listOperations(
  cluster: Cluster,
  regions: readonly Operated[],
  images: { first: Image; second: Image; broken: Image },
): Operation[] {
  const each = (work: (region: Operated) => Promise<void>) => async () => {
    for (const region of regions) await work(region);
  };
  return [
    {
      name: 'rolling upgrade',
      run: each(async ({ release }) => {
        await release.upgrade(images.second);
        await assertServes(cluster, release, images.second);
      }),
    },
    { name: 'scale up', run: each(({ release }) => release.upgrade(images.second, { values: replicas(4) })) },
    { name: 'scale down', run: each(({ release }) => release.upgrade(images.second, { values: replicas(2) })) },
    { name: 'delete pods', run: each(({ release }) => deletePods(cluster, release)) },
    { name: 'drain', run: each(({ release }) => evictPods(cluster, release)) },
    { name: 'failed migration', run: each(({ release }) => failMigration(release, images.broken)) },
    { name: 'roll back', run: each(async ({ release }) => release.rollback((await release.currentRevision()) - 1)) },
    { name: 'secret rotation', run: each((region) => rotateSecrets(cluster, region, images.second)) },
    { name: 'roll back the version', run: each(({ release }) => release.upgrade(images.first)) },
  ];
}

const replicas = (count: number) => ({ api: { replicas: count }, worker: { replicas: count } });

interface Pod {
  metadata: { name: string; deletionTimestamp?: string };
  spec: { containers: { image: string }[] };
  status: { conditions?: { type: string; status: string }[] };
}

const components = ['api', 'worker', 'console'] as const;

async function listPods(cluster: Cluster, { name, namespace }: Release, component: string): Promise<Pod[]> {
  const selector = `app.kubernetes.io/instance=${name},app.kubernetes.io/component=${component}`;
  const list = await cluster.kubectl(['get', 'pods', '-n', namespace, '-l', selector, '-o', 'json']);
  return (JSON.parse(list) as { items: Pod[] }).items;
}

/** `helm upgrade --wait` has returned, so every ready pod must be of the new image: nothing is waited for here. */
async function assertServes(cluster: Cluster, release: Release, image: Image): Promise<void> {
  for (const component of components) {
    const ready = (await listPods(cluster, release, component)).filter(isReady);
    const images = new Set(ready.flatMap(({ spec }) => spec.containers.map((container) => container.image)));
    if (ready.length === 0 || images.size !== 1 || !images.has(`${image.repository}:${image.tag}`))
      throw new Error(
        `helm upgrade --wait returned, and the ${component} pods that are ready run ${[...images].join(' and ')}`,
      );
  }
}

/** Ready, and not on its way out. */
const isReady = ({ metadata, status }: Pod) =>
  metadata.deletionTimestamp === undefined &&
  status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');

async function waitUntilRolledOut(cluster: Cluster, { name, namespace }: Release): Promise<void> {
  for (const component of components)
    await cluster.kubectl(['rollout', 'status', `deployment/${name}-${component}`, '-n', namespace, '--timeout=120s'], {
      timeoutMs: 150_000,
    });
}

/** Deletes a pod of each kind, and the next when the first is replaced. */
async function deletePods(cluster: Cluster, release: Release): Promise<void> {
  for (const component of components) {
    const [pod] = await listPods(cluster, release, component);
    if (pod !== undefined)
      await cluster.kubectl(['delete', 'pod', pod.metadata.name, '-n', release.namespace, '--wait=false']);
    await waitUntilRolledOut(cluster, release);
  }
}

/**
 * Evicts every pod through the API that `kubectl drain` uses, so that the disruption budget rules. The node itself is not cordoned: it is the only one, and nothing could be scheduled again.
 */
async function evictPods(cluster: Cluster, release: Release): Promise<void> {
  for (const component of components)
    for (const pod of await listPods(cluster, release, component)) await evict(cluster, release, pod.metadata.name);
  await waitUntilRolledOut(cluster, release);
}

/** Asks until the budget allows it; 429 is its answer meanwhile. */
async function evict(cluster: Cluster, { namespace }: Release, pod: string): Promise<void> {
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod, namespace } };
  for (const giveUpAt = performance.now() + 120_000; ; ) {
    try {
      const path = `/api/v1/namespaces/${namespace}/pods/${pod}/eviction`;
      await cluster.kubectl(['create', '--raw', path, '-f', '-'], { input: JSON.stringify(body) });
      return;
    } catch (error) {
      const isRefused = error instanceof CommandFailed && /disruption budget|TooManyRequests/i.test(error.stderr);
      if (!isRefused || performance.now() > giveUpAt) throw error;
      await wait(1_000);
    }
  }
}

/** A release whose migration fails must not be taken for a good one, and the old pods go on serving. */
async function failMigration(release: Release, broken: Image): Promise<void> {
  let refused = false;
  try {
    await release.upgrade(broken, { timeout: '45s' });
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    refused = true;
  }
  if (!refused) throw new Error('an upgrade whose migration fails was taken for a good one');
}

/**
 * New logins of the apps, and a newer pepper and sealing key beside the old ones, as charts/README.md has it: in a new Secret, so that the migration makes the logins before any pod uses them.
 * (The same login with a new password would refuse new connections between its change and the pods' next look at the file.)
 */
async function rotateSecrets(cluster: Cluster, region: Operated, image: Image): Promise<void> {
  const { release, servers, secrets } = region;
  for (const role of ['api', 'worker', 'console'] as const) {
    const url = new URL(servers.podUrls[role]);
    url.username = `${url.username}_2`;
    url.password = randomBytes(16).toString('hex');
    servers.podUrls[role] = url.href;
  }
  secrets.keyPeppers = `2:${randomBytes(32).toString('base64')},${secrets.keyPeppers}`;
  secrets.webhookSecretKeys = `2:${randomBytes(32).toString('base64')},${secrets.webhookSecretKeys}`;
  const name = `${release.name}-rotated`;
  await applySecrets(cluster, release.namespace, name, region);
  release.set({ secrets: { existingSecret: name } });
  await release.upgrade(image);
}
