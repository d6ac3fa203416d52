import type { WorkflowService } from '@temporalio/client';
import { nullOn } from '../null-on.ts';

/** States of a build, by Temporal's number; it gives 0 to a build without one. */
const states = ['Inactive', 'Inactive', 'Current', 'Ramping', 'Draining', 'Drained'] as const;
const grpcNotFound = 5;

/** The builds of the workers, as Temporal knows them. */
export interface Workers {
  currentBuild: string | null;
  ramping: { buildId: string; percent: number } | null;
  /** Newest first. */
  builds: { buildId: string; state: (typeof states)[number] }[];
}

/** Returns the builds of a worker deployment; null when Temporal knows none of that name. */
export async function readWorkers(
  service: WorkflowService,
  request: { namespace: string; deploymentName: string },
): Promise<Workers | null> {
  const described = await nullOn(grpcNotFound, service.describeWorkerDeployment(request));
  if (described === null) return null;
  const { routingConfig, versionSummaries } = described.workerDeploymentInfo ?? {};
  const ramping = routingConfig?.rampingDeploymentVersion?.buildId;
  const builds = (versionSummaries ?? [])
    .toSorted((a, b) => Number(b.createTime?.seconds ?? 0) - Number(a.createTime?.seconds ?? 0))
    .map(({ deploymentVersion, status }) => ({
      buildId: deploymentVersion?.buildId ?? '',
      state: states[Number(status)] ?? 'Inactive',
    }));
  return {
    currentBuild: routingConfig?.currentDeploymentVersion?.buildId || null,
    ramping: ramping ? { buildId: ramping, percent: routingConfig?.rampingVersionPercentage ?? 0 } : null,
    builds: builds.slice(0, 20),
  };
}
