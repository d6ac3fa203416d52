import type { Connection } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { nullOn } from '../kube/client.ts';
import { ReconcileError } from '../kube/custom-resource.ts';
import type { Region } from '../kube/resources.ts';

export interface ObservedNamespace {
  retentionSeconds: number;
}

export type TemporalAction =
  | { kind: 'createNamespace'; retentionSeconds: number }
  | { kind: 'setRetention'; retentionSeconds: number };

const grpcNotFound = 5;
const grpcAlreadyExists = 6;
/** Deadline exceeded, unavailable. */
const grpcUnreachable = new Set([4, 14]);

/** Returns what Temporal has for the Region's namespace; null when there is no such namespace. */
export async function readNamespace(
  connection: Connection,
  { spec: { temporal } }: Region,
): Promise<ObservedNamespace | null> {
  const { namespace } = temporal;
  const described = await nullOn(grpcNotFound, connection.workflowService.describeNamespace({ namespace }));
  if (described === null) return null;
  return { retentionSeconds: Number(described.config?.workflowExecutionRetentionTtl?.seconds ?? 0) };
}

/** Carries out an action; safe to repeat. @throws ReconcileError when Temporal rejects it. */
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
    if (code !== undefined && grpcUnreachable.has(code))
      throw new ReconcileError('TemporalUnreachable', `Temporal did not answer ${request}.`, { cause });
    throw new ReconcileError('TemporalRejected', `Temporal rejected ${request}.`, { cause });
  }
}

/** The requests of Temporal's API, by which its permissions are given. */
const requests: Record<TemporalAction['kind'], string> = {
  createNamespace: 'RegisterNamespace',
  setRetention: 'UpdateNamespace',
};

async function change({ workflowService }: Connection, namespace: string, action: TemporalAction): Promise<unknown> {
  switch (action.kind) {
    case 'createNamespace': {
      const workflowExecutionRetentionPeriod = msToTs(action.retentionSeconds * 1_000);
      return workflowService.registerNamespace({ namespace, workflowExecutionRetentionPeriod });
    }
    case 'setRetention': {
      const workflowExecutionRetentionTtl = msToTs(action.retentionSeconds * 1_000);
      return workflowService.updateNamespace({ namespace, config: { workflowExecutionRetentionTtl } });
    }
  }
}
