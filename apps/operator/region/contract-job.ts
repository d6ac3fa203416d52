import { createHash } from 'node:crypto';
import type { BatchV1Api, CoreV1Api, V1CronJob, V1Job, V1Pod } from '@kubernetes/client-node';
import { ReconcileFailed } from '../controller/contract.ts';
import { statusOf } from '../kube/client.ts';
import { nullOn } from '../null-on.ts';
import type { Region } from '../resources.ts';

/** What a contract migration waits for in Kubernetes, and its Job. */
export interface ObservedContract {
  /** Of the Job that runs what is pending with the release's CronJob as it is now. */
  job: { name: string; state: 'absent' | 'running' | 'succeeded' | 'failed' };
  /** Names of the pods of the region that run another image than the CronJob's. */
  otherPods: string[];
}

/** Where contract migrations run: Jobs made of the CronJob that the Region names. */
export function createContractJobs(options: { batch: BatchV1Api; core: CoreV1Api; namespace: string }) {
  const { batch, core, namespace } = options;

  async function readCronJob(region: Region): Promise<V1CronJob> {
    const name = region.spec.migrations?.cronJob ?? '';
    const cronJob = await allow(`CronJob ${name}`, nullOn(404, batch.readNamespacedCronJob({ namespace, name })));
    if (cronJob === null) throw new ReconcileFailed('ContractBlocked', `There is no CronJob ${name}.`);
    return cronJob;
  }

  return {
    /** @throws ReconcileFailed without the CronJob, or without the right to read what it needs. */
    async read(region: Region, pending: readonly string[]): Promise<ObservedContract> {
      const cronJob = await readCronJob(region);
      const name = jobNameOf(cronJob, pending);
      const found = await allow('Jobs', nullOn(404, batch.readNamespacedJob({ namespace, name })));
      // Also those of another release, which use the same database.
      const labelSelector = `org-api/region=${region.spec.region}`;
      const { items } = await allow('pods', core.listNamespacedPod({ namespace, labelSelector }));
      return { job: { name, state: stateOf(found) }, otherPods: findOtherPods(items, cronJob) };
    },

    /**
     * Creates the Job. Does nothing when it exists. @throws ReconcileFailed without the right to
     * create Jobs, or when the CronJob changed since it was read: the next pass then decides again.
     */
    async start(region: Region, { job, pending }: { job: string; pending: readonly string[] }): Promise<void> {
      const cronJob = await readCronJob(region);
      const { metadata, spec } = cronJob.spec?.jobTemplate ?? {};
      if (jobNameOf(cronJob, pending) !== job || spec === undefined)
        throw new ReconcileFailed('ContractBlocked', `CronJob ${cronJob.metadata?.name} changed; tried again.`);
      const body = { metadata: { ...metadata, name: job, namespace, ownerReferences: [ownerOf(cronJob)] }, spec };
      await allow('Jobs', nullOn(409, batch.createNamespacedJob({ namespace, body })));
    },
  };
}

export type ContractJobs = ReturnType<typeof createContractJobs>;

async function allow<T>(what: string, request: Promise<T>): Promise<T> {
  return request.catch((cause: unknown) => {
    if (statusOf(cause) !== 403) throw cause;
    throw new ReconcileFailed('ContractBlocked', `The operator's Role does not allow it to use ${what}.`, { cause });
  });
}

/** As `kubectl create job --from` sets it: the Job is deleted with the CronJob. */
const ownerOf = ({ metadata }: V1CronJob) => ({
  apiVersion: 'batch/v1',
  kind: 'CronJob',
  name: metadata?.name ?? '',
  uid: metadata?.uid ?? '',
  controller: true,
});

/** Names the Job by what it would run, so that each change of the release tries once. */
function jobNameOf({ metadata }: V1CronJob, pending: readonly string[]): string {
  const what = [metadata?.uid, metadata?.generation, ...pending].join(' ');
  return `${metadata?.name}-${createHash('sha256').update(what).digest('hex').slice(0, 10)}`;
}

function stateOf(job: V1Job | null): ObservedContract['job']['state'] {
  if (job === null) return 'absent';
  const has = (type: string) => job.status?.conditions?.some((one) => one.type === type && one.status === 'True');
  if (has('Complete')) return 'succeeded';
  return has('Failed') ? 'failed' : 'running';
}

/** A pod that stops still serves, so it counts until it is gone. */
function findOtherPods(pods: readonly V1Pod[], { spec }: V1CronJob): string[] {
  const image = spec?.jobTemplate.spec?.template.spec?.containers[0]?.image;
  return pods
    .filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed')
    .filter((pod) => !pod.spec?.containers.some((container) => container.image === image))
    .map(({ metadata }) => metadata?.name ?? '')
    .toSorted();
}
