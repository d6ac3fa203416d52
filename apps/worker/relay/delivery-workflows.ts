import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { RunningRound } from '#domain/db/statements/orphaned-workflows.ts';
import { unlessEnded } from '#workflows/client.ts';
import { priorityOfRound } from '#workflows/deliver-event/priority.ts';
import {
  type DeliverEventInput,
  type DeliveryRound,
  deliverQueue,
  parseWorkflowId,
  roundOf,
  workflowIdOf,
} from '#workflows/deliver-event/types.ts';
import type { ClaimedDelivery } from './claimed-delivery.ts';
import { getWorkflowStatus, type WorkflowStatus } from './progress.ts';
import type { DeliverySearchAttributes } from './search-attributes.ts';

/**
 * How long Temporal waits for a worker that has taken a workflow task: one that is killed before
 * the first admission holds the delivery for this time. The worker extends it during a local
 * activity.
 */
const workflowTaskTimeout = '5s';
/** Workflows in one page of Temporal's list. */
const pageSize = 500;
const runningQuery = (before: Date) =>
  `WorkflowType = 'deliverEvent' AND ExecutionStatus = 'Running' AND StartTime < '${before.toISOString()}'`;

/** The calls of relay and reconciler to Temporal. Each rejects when Temporal does not answer. */
export function createDeliveryWorkflows(options: {
  client: Client;
  delaysMs: readonly number[];
  attributes: DeliverySearchAttributes;
  /** How much older than its queue's backlog a task may be; 60 s. */
  strandedAfterMs?: number;
}) {
  const { client, delaysMs, attributes, strandedAfterMs = 60_000 } = options;
  const getStatus = (workflowId: string, nowMs: number) =>
    getWorkflowStatus(client, workflowId, nowMs, strandedAfterMs);
  const handleOf = (delivery: DeliveryRound) => client.workflow.getHandle(workflowIdOf(delivery, delivery.round));

  async function start(delivery: ClaimedDelivery): Promise<void> {
    const { slow, type, begunAtMs } = delivery;
    const input: DeliverEventInput = { ...roundOf(delivery), delaysMs: [...delaysMs], slow, type, begunAtMs };
    const typedSearchAttributes = attributes.of(delivery);
    await client.workflow.start('deliverEvent', {
      taskQueue: deliverQueue,
      workflowId: workflowIdOf(delivery, delivery.round),
      args: [input],
      requestEagerStart: true,
      workflowTaskTimeout,
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      priority: priorityOfRound(delivery),
      ...(typedSearchAttributes === undefined ? {} : { typedSearchAttributes }),
    });
  }

  return {
    /** Starts a delivery's workflow. Succeeds also when a workflow with this id already runs. */
    async startWorkflow(delivery: ClaimedDelivery): Promise<void> {
      try {
        await start(delivery).catch((error: unknown) => {
          if (!attributes.wereRefused(error)) throw error;
          return start(delivery);
        });
      } catch (error) {
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      }
    },

    /** `nowMs` is Unix time by PostgreSQL's clock, because a worker's may be wrong. */
    getStatus: (delivery: DeliveryRound, nowMs: number): Promise<WorkflowStatus> =>
      getStatus(workflowIdOf(delivery, delivery.round), nowMs),

    /** Terminates the workflow of a round that was replaced because it makes no progress. */
    terminate: (delivery: DeliveryRound): Promise<unknown> =>
      unlessEnded(handleOf(delivery).terminate('it makes no progress; its delivery is in another round')),

    /** Ends the wait of a round if it began before this Unix time in ms; see `retryNowSignal`. */
    retryNow: (delivery: DeliveryRound, waitingSinceBeforeMs: number): Promise<unknown> =>
      unlessEnded(handleOf(delivery).signal('retryNow', waitingSinceBeforeMs)),

    /**
     * Ends the workflow of an orphaned round; an attempt in progress ends first. One that makes no
     * progress would never see the signal, and is terminated. `nowMs` as for `getStatus`.
     */
    async cancel({ webhookId, eventId, round }: RunningRound, nowMs: number): Promise<void> {
      const handle = handleOf({ organizationId: '', webhookId, eventId, round });
      const status = await getStatus(handle.workflowId, nowMs);
      const isStuck = status === 'failing' || status === 'stranded';
      await unlessEnded(isStuck ? handle.terminate('it makes no progress and is not needed') : handle.signal('cancel'));
    },

    /** Lists rounds whose workflow runs and began before this time, newest first. */
    async *listRunning(before: Date): AsyncGenerator<RunningRound & { startedAtMs: number }> {
      for await (const { workflowId, startTime } of client.workflow.list({ query: runningQuery(before), pageSize })) {
        const round = parseWorkflowId(workflowId);
        if (round !== null) yield { ...round, startedAtMs: startTime.getTime() };
      }
    },
  };
}
