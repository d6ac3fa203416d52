import { type Client, WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import type { RunningRound } from '#domain/db/queries/unowed-workflows.ts';
import { priorityOfRound } from '#workflows/deliver-event/priority.ts';
import {
  type DeliverEventInput,
  type DeliveryKey,
  deliverQueue,
  parseWorkflowId,
  workflowIdOf,
} from '#workflows/deliver-event/types.ts';
import type { ClaimedDelivery } from './relay.ts';
import type { DeliverySearchAttributes } from './search-attributes.ts';

/** What a round's workflow is at: `busy` has work that a worker is doing or is to do, `waiting` sits on a timer, `ended` may also never have been. */
export type RoundStatus = 'ended' | 'busy' | 'waiting';
type Round = DeliveryKey & { round: number };

/** Workflows that Temporal lists in one answer. */
const pageSize = 500;
const runningQuery = (before: Date) =>
  `WorkflowType = 'deliverEvent' AND ExecutionStatus = 'Running' AND StartTime < '${before.toISOString()}'`;

/** What relay and reconciler ask of Temporal about deliveries. Each rejects when Temporal does not answer. */
export function createDeliveryWorkflows(options: {
  client: Client;
  delaysMs: readonly number[];
  attributes: DeliverySearchAttributes;
}) {
  const { client, delaysMs, attributes } = options;
  const handleOf = (delivery: Round) => client.workflow.getHandle(workflowIdOf(delivery, delivery.round));

  async function start(delivery: ClaimedDelivery): Promise<void> {
    const { organizationId, webhookId, eventId, round, slow, type, begunAtMs } = delivery;
    const ids = { organizationId, webhookId, eventId, round };
    const input: DeliverEventInput = { ...ids, delaysMs: [...delaysMs], slow, type, begunAtMs, firstAttempt: 'local' };
    const typedSearchAttributes = attributes.of(delivery);
    await client.workflow.start('deliverEvent', {
      taskQueue: deliverQueue,
      workflowId: workflowIdOf(delivery, round),
      args: [input],
      requestEagerStart: true,
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      priority: priorityOfRound(delivery),
      ...(typedSearchAttributes === undefined ? {} : { typedSearchAttributes }),
    });
  }

  return {
    /** Starts a delivery's workflow; one that runs already under this id is what was wanted. */
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

    /** `ended` also when Temporal knows no such workflow. */
    async getStatus(delivery: Round): Promise<RoundStatus> {
      try {
        const { status, raw } = await handleOf(delivery).describe();
        if (status.name !== 'RUNNING') return 'ended';
        return raw.pendingWorkflowTask || (raw.pendingActivities?.length ?? 0) > 0 ? 'busy' : 'waiting';
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return 'ended';
        throw error;
      }
    },

    /** Ends the wait of a round if it began before this Unix time in ms; see `retryNowSignal`. Nothing for one that has ended. */
    retryNow: (delivery: Round, waitingSinceBeforeMs: number): Promise<void> =>
      unlessGone(handleOf(delivery).signal('retryNow', waitingSinceBeforeMs)),

    /** Ends a round; an attempt that is under way ends first. Nothing for one that has ended. */
    cancel: ({ webhookId, eventId, round }: RunningRound): Promise<void> =>
      unlessGone(handleOf({ organizationId: '', webhookId, eventId, round }).signal('cancel')),

    /** Every round whose workflow runs and began before `before`, the newest first, as Temporal lists what runs; `startedAtMs` is Unix time. */
    async *listRunning(before: Date): AsyncGenerator<RunningRound & { startedAtMs: number }> {
      for await (const { workflowId, startTime } of client.workflow.list({ query: runningQuery(before), pageSize })) {
        const round = parseWorkflowId(workflowId);
        if (round !== null) yield { ...round, startedAtMs: startTime.getTime() };
      }
    },
  };
}

async function unlessGone(signalled: Promise<void>): Promise<void> {
  try {
    await signalled;
  } catch (error) {
    if (!(error instanceof WorkflowNotFoundError)) throw error;
  }
}
