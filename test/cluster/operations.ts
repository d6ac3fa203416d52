import type { Cluster } from './cluster.ts';
import { CommandFailedError } from './command.ts';
import { releaseFailingWorkers, upgradeDefinitions, upgradeOperator } from './operator.ts';
import { assertServes, createRandom, deletePods, evictPods } from './pods.ts';
import type { Image, Release } from './release.ts';
import { assertSecondLogins, type Rotated, rotateSecrets } from './rotation.ts';
import { acrossRollout } from './waiting.ts';

/** A region during an operation. */
export type Operated = Rotated;

/** An operation of an SRE, or a fault, while partners read and events flow. */
export interface Operation {
  name: string;
  run(): Promise<void>;
}

export interface OperationsOptions {
  /**
   * The base and this commit, one whose migration fails, and two that add columns, of which the
   * workflows of `failing` fail.
   */
  images: Record<'first' | 'second' | 'broken' | 'failing' | 'repaired', Image>;
  /** Regions beside which an operator runs. */
  operated: readonly Operated[];
  /** Base URL of the receiver. */
  receiver: string;
  /** Chooses pods. */
  seed: number;
  report: (line: string) => void;
}

/** Every operation of a release under load, in order. */
export function listOperations(
  cluster: Cluster,
  regions: readonly Operated[],
  { images, operated, receiver, seed, report }: OperationsOptions,
): Operation[] {
  const each = (work: (region: Operated) => Promise<void>) => async () => {
    for (const region of regions) await work(region);
  };
  const random = createRandom(seed);
  const revisions = new Map<Operated, number>();
  return [
    {
      name: 'upgrade of the base: definitions, operator, region',
      run: each(async (region) => {
        const { release } = region;
        revisions.set(region, await release.currentRevision());
        if (operated.includes(region)) {
          await upgradeDefinitions(cluster, images.second);
          await upgradeOperator(cluster, region, images.second);
        }
        await release.upgrade(images.second);
        await assertServes(cluster, release, images.second);
      }),
    },
    {
      name: 'a release with new columns whose workers stop, and the repaired one',
      async run() {
        const { second: current, failing, repaired } = images;
        for (const region of operated) await releaseFailingWorkers(cluster, region, { current, failing, repaired });
      },
    },
    { name: 'scale up', run: each(({ release }) => release.upgrade(images.second, { values: replicas(4) })) },
    { name: 'scale down', run: each(({ release }) => release.upgrade(images.second, { values: replicas(2) })) },
    {
      name: 'scale by the autoscaler',
      run: async () =>
        void (await Promise.all(regions.map(({ release }) => autoscale(cluster, release, images.second)))),
    },
    { name: 'delete pods', run: each(({ release }) => deletePods(cluster, release, random)) },
    { name: 'drain', run: each(({ release }) => evictPods(cluster, release)) },
    { name: 'failed migration', run: each((region) => failMigration(cluster, region, images.broken)) },
    {
      name: 'roll back the failed upgrade',
      run: each(async ({ release }) => {
        await release.rollback((await release.currentRevision()) - 1);
        await assertServes(cluster, release, images.second);
      }),
    },
    {
      name: 'rotation of secrets, nothing restarted',
      run: async () => void (await Promise.all(regions.map((region) => rotateSecrets(cluster, region)))),
    },
    {
      name: 'roll back from a good version to the one before it, while deliveries wait',
      run: () =>
        acrossRollout(
          { regions, receiver, report },
          each(async (region) => {
            await region.release.rollback(revisions.get(region) ?? 1);
            await assertServes(cluster, region.release, images.first);
            await assertSecondLogins(region);
          }),
        ),
    },
  ];
}

const replicas = (count: number) => ({ api: { replicas: count }, worker: { replicas: count } });

/** API pods that the autoscaler may start. */
const mostPods = 4;

/**
 * Lets the autoscaler choose the number of API pods, with a target that the load exceeds. Resolves
 * when it has started the maximum and the release is back at its fixed number.
 */
async function autoscale(cluster: Cluster, release: Release, image: Image): Promise<void> {
  const autoscaling = { enabled: true, minReplicas: 2, maxReplicas: mostPods, targetCPUUtilizationPercentage: 10 };
  await release.upgrade(image, { values: { api: { autoscaling } } });
  const deployment = ['wait', `deployment/${release.name}-api`, '-n', release.namespace];
  await cluster.kubectl([...deployment, `--for=jsonpath={.status.readyReplicas}=${mostPods}`, '--timeout=180s'], {
    timeoutMs: 200_000,
  });
  await release.upgrade(image);
}

/**
 * A release whose migration fails must be rejected; the migration ran and left none of its writes.
 * The old pods continue to serve, as the reads prove.
 */
async function failMigration(cluster: Cluster, { release, pool }: Operated, broken: Image): Promise<void> {
  let rejected = false;
  try {
    await release.upgrade(broken, { timeout: '45s' });
  } catch (error) {
    if (!(error instanceof CommandFailedError)) throw error;
    rejected = true;
  }
  if (!rejected) throw new Error('an upgrade whose migration fails was taken for a good one');
  if ((await countFailures(cluster, release, broken)) === 0)
    throw new Error('the migration that fails was not tried, so nothing is proven');
  const { rows } = await pool.query<{ found: string | null }>(`select to_regclass('half_done') as found`);
  if (rows[0]?.found !== null) throw new Error('a migration that failed left the table half_done behind');
}

/** Failed pods of the migrations of an image. */
async function countFailures(
  cluster: Cluster,
  { name, namespace }: Release,
  { repository, tag }: Image,
): Promise<number> {
  const selector = `app.kubernetes.io/instance=${name},app.kubernetes.io/component=migrations`;
  const list = await cluster.kubectl(['get', 'pods', '-n', namespace, '-l', selector, '-o', 'json']);
  const { items } = JSON.parse(list) as {
    items: { spec: { containers: { image: string }[] }; status: { phase: string } }[];
  };
  return items.filter(
    ({ spec, status }) => status.phase === 'Failed' && spec.containers[0]?.image === `${repository}:${tag}`,
  ).length;
}
