import type { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { keywordType } from '#workflows/deliver-event/search-attributes.ts';
import { deliverSlowQueue } from '#workflows/deliver-event/types.ts';
import { compareSearchAttributes } from '#workflows/server-needs.ts';
import { ReconcileFailed } from '../controller/contract.ts';
import { nullOn } from '../null-on.ts';
import type { Region } from '../resources.ts';

/** Limits of the task queue of retries; a limit that is absent does not apply. */
export type QueueLimits = NonNullable<Region['spec']['temporal']['queueLimits']>;

/** What Temporal has for a namespace. Parts that the spec does not declare are null. */
export interface ObservedNamespace {
  retentionSeconds: number;
  /** Names of the service's search attributes that are absent, or that have another type. */
  attributes: { missing: string[]; conflicting: string[] } | null;
  limits: QueueLimits | null;
}

/** A change of the namespace. */
export type TemporalAction =
  | { kind: 'createNamespace'; retentionSeconds: number }
  | { kind: 'setRetention'; retentionSeconds: number }
  | { kind: 'addSearchAttributes'; names: string[] }
  | { kind: 'setQueueLimits'; limits: QueueLimits };

/** `TASK_QUEUE_TYPE_ACTIVITY` of Temporal's API. The server limits no queue of workflow tasks. */
const activityQueue = 2;
const grpcNotFound = 5;
const grpcAlreadyExists = 6;
/** Deadline exceeded, unavailable. */
const grpcUnanswered = new Set([4, 14]);

/** Returns what Temporal has for the Region's namespace; null when there is no such namespace. */
export async function readNamespace(
  connection: Connection,
  { spec: { temporal } }: Region,
): Promise<ObservedNamespace | null> {
  const { namespace, searchAttributes, queueLimits } = temporal;
  const described = await nullOn(grpcNotFound, connection.workflowService.describeNamespace({ namespace }));
  if (described === null) return null;
  return {
    retentionSeconds: Number(described.config?.workflowExecutionRetentionTtl?.seconds ?? 0),
    attributes: searchAttributes === 'Managed' ? await compareSearchAttributes(connection, namespace) : null,
    limits: queueLimits === undefined ? null : await readLimits(connection, namespace),
  };
}

async function readLimits({ workflowService }: Connection, namespace: string): Promise<QueueLimits> {
  const { config } = await workflowService.describeTaskQueue({
    namespace,
    taskQueue: { name: deliverSlowQueue },
    taskQueueType: activityQueue,
    reportConfig: true,
  });
  const all = config?.queueRateLimit?.rateLimit?.requestsPerSecond;
  const each = config?.fairnessKeysRateLimitDefault?.rateLimit?.requestsPerSecond;
  return {
    ...(all == null ? {} : { retriesPerSecond: all }),
    ...(each == null ? {} : { retriesPerSecondPerOrganization: each }),
  };
}

/** Carries out an action; safe to repeat. @throws ReconcileFailed when Temporal refuses it. */
export async function changeNamespace(
  connection: Connection,
  namespace: string,
  action: TemporalAction,
): Promise<void> {
  try {
    await change(connection, namespace, action);
  } catch (cause) {
    const { code } = cause as { code?: number };
    if (code === grpcAlreadyExists && action.kind === 'createNamespace') return;
    const request = `${requests[action.kind]} (${code})`;
    if (code !== undefined && grpcUnanswered.has(code))
      throw new ReconcileFailed('TemporalUnreachable', `Temporal did not answer ${request}.`, { cause });
    throw new ReconcileFailed('TemporalRefused', `Temporal refused ${request}.`, { cause });
  }
}

/** The requests of Temporal's API, by which its permissions are given. */
const requests: Record<TemporalAction['kind'], string> = {
  createNamespace: 'RegisterNamespace',
  setRetention: 'UpdateNamespace',
  addSearchAttributes: 'AddSearchAttributes',
  setQueueLimits: 'UpdateTaskQueueConfig',
};

async function change(
  { workflowService, operatorService }: Connection,
  namespace: string,
  action: TemporalAction,
): Promise<unknown> {
  switch (action.kind) {
    case 'createNamespace': {
      const workflowExecutionRetentionPeriod = msToTs(action.retentionSeconds * 1_000);
      return workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod });
    }
    case 'setRetention': {
      const workflowExecutionRetentionTtl = msToTs(action.retentionSeconds * 1_000);
      return workflowService.updateNamespace({ namespace, config: { workflowExecutionRetentionTtl } });
    }
    case 'addSearchAttributes': {
      const searchAttributes = Object.fromEntries(action.names.map((name) => [name, keywordType]));
      return operatorService.addSearchAttributes({ namespace, searchAttributes });
    }
    case 'setQueueLimits':
      return workflowService.updateTaskQueueConfig({
        namespace,
        taskQueue: deliverSlowQueue,
        taskQueueType: activityQueue,
        identity: 'org-api-operator',
        updateQueueRateLimit: limit(action.limits.retriesPerSecond),
        updateFairnessKeyRateLimitDefault: limit(action.limits.retriesPerSecondPerOrganization),
      });
  }
}

/** An update without a rate removes the limit. */
const limit = (requestsPerSecond: number | undefined) => ({
  rateLimit: requestsPerSecond === undefined ? null : { requestsPerSecond },
  reason: 'declared in the Region',
});
