import type { WorkflowService } from '@temporalio/client';

/** A build of the workers, as Temporal knows it. */
interface WorkerBuild {
  buildId: string;
  state: 'Current' | 'Ramping' | 'Draining' | 'Drained' | 'Inactive';
}

export interface Workers {
  currentBuild: string | null;
  ramping: { buildId: string; percent: number } | null;
  /** Newest first. */
  builds: WorkerBuild[];
}

const states: Record<number, WorkerBuild['state']> = {
  1: 'Inactive',
  2: 'Current',
  3: 'Ramping',
  4: 'Draining',
  5: 'Drained',
};
const grpcNotFound = 5;

/** Returns the builds of a worker deployment; null when Temporal knows none of that name. */
export async function readWorkers(
  service: WorkflowService,
  request: { namespace: string; deploymentName: string },
): Promise<Workers | null> {
  const described = await service.describeWorkerDeployment(request).catch((cause: { code?: number }) => {
    if (cause.code === grpcNotFound) return null;
    throw cause;
  });
  if (described === null) return null;
  const { routingConfig, versionSummaries } = described.workerDeploymentInfo ?? {};
  const ramping = routingConfig?.rampingDeploymentVersion?.buildId;
  const builds = (versionSummaries ?? [])
    .toSorted((a, b) => Number(b.createTime?.seconds ?? 0) - Number(a.createTime?.seconds ?? 0))
    .map(({ deploymentVersion, status }) => ({
      buildId: deploymentVersion?.buildId ?? '',
      state: states[status ?? 0] ?? 'Inactive',
    }));
  return {
    currentBuild: routingConfig?.currentDeploymentVersion?.buildId || null,
    ramping: ramping ? { buildId: ramping, percent: routingConfig?.rampingVersionPercentage ?? 0 } : null,
    builds: builds.slice(0, 20),
  };
}
