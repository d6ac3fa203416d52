import { fileURLToPath } from 'node:url';
import { Client, WorkflowExecutionAlreadyStartedError, WorkflowNotFoundError } from '@temporalio/client';
import {
  bundleWorkflowCode,
  DefaultLogger,
  makeTelemetryFilterString,
  NativeConnection,
  Runtime,
  Worker,
  type WorkflowBundleWithSourceMap,
} from '@temporalio/worker';
import type { Logger } from '#runtime/log.ts';
import {
  type DeliverEventInput,
  type DeliveryActivities,
  type DeliveryKey,
  deliverQueue,
  deliverSlowQueue,
  workflowIdOf,
} from '#workflows/deliver-event/types.ts';
import type { TestActivities } from '#workflows/send-test/types.ts';
import type { ClaimedDelivery } from './relay.ts';

export interface TemporalOptions {
  address: string;
  namespace: string;
  activities: DeliveryActivities & Partial<TestActivities>;
  delaysMs: readonly number[];
  /** Attempts under way at once, on the prompt queue and on the slow one. */
  promptSlots: number;
  slowSlots: number;
  /** Workflow code, bundled before; null bundles it now (2 s). */
  bundle: WorkflowBundleWithSourceMap | null;
}

/** Bundles `workflows/` for a worker. */
export function bundleWorkflows(): Promise<WorkflowBundleWithSourceMap> {
  return bundleWorkflowCode({
    workflowsPath: fileURLToPath(import.meta.resolve('#workflows/index.ts')),
    logger: new DefaultLogger('ERROR'),
  });
}

/**
 * Two workers on one connection, one per queue, so that retries and failing webhooks have slots of their own; and what the relay asks of Temporal.
 * Workflows are started eagerly: the worker that starts one gets its first task with the answer, which spares the round trip through the queue.
 */
export async function openTemporal(options: TemporalOptions) {
  const { address, namespace, activities, delaysMs, promptSlots, slowSlots } = options;
  const connection = await NativeConnection.connect({ address });
  const workflowBundle = options.bundle ?? (await bundleWorkflows());
  const common = { connection, namespace, activities, shutdownGraceTime: '25s' } as const;
  const prompt = await Worker.create({
    ...common,
    taskQueue: deliverQueue,
    workflowBundle,
    maxConcurrentActivityTaskExecutions: promptSlots,
    maxCachedWorkflows: 2_000,
  });
  const slow = await Worker.create({
    ...common,
    taskQueue: deliverSlowQueue,
    maxConcurrentActivityTaskExecutions: slowSlots,
  });
  const client = new Client({ connection, namespace });
  const running = Promise.all([prompt.run(), slow.run()]);

  let stopping: Promise<void> | undefined;
  async function close(): Promise<void> {
    for (const worker of [prompt, slow]) if (worker.getState() === 'RUNNING') worker.shutdown();
    await running;
    await connection.close();
  }

  return {
    /** Rejects when a worker fails for good; resolves after `stop`. */
    running,

    /** Starts a delivery's workflow; one that runs already under this id is what was wanted. */
    async startWorkflow(delivery: ClaimedDelivery): Promise<void> {
      const { organizationId, webhookId, eventId, round, slow: isFailing } = delivery;
      const input: DeliverEventInput = {
        organizationId,
        webhookId,
        eventId,
        round,
        delaysMs: [...delaysMs],
        slow: isFailing,
      };
      try {
        await client.workflow.start('deliverEvent', {
          taskQueue: deliverQueue,
          workflowId: workflowIdOf(delivery, round),
          args: [input],
          requestEagerStart: true,
          workflowIdReusePolicy: 'REJECT_DUPLICATE',
        });
      } catch (error) {
        if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      }
    },

    /** Whether the workflow of this round runs; false when it ended or Temporal knows none. */
    async isRunning(delivery: DeliveryKey & { round: number }): Promise<boolean> {
      try {
        const { status } = await client.workflow.getHandle(workflowIdOf(delivery, delivery.round)).describe();
        return status.name === 'RUNNING';
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return false;
        throw error;
      }
    },

    stop: () => {
      stopping ??= close();
      return stopping;
    },
  };
}

/**
 * Sends what the SDK and its native core have to say to our log, warnings and worse only; the core would otherwise write to standard error itself. The SDK's runtime is one a process and cannot be replaced, so this is
 * called once, by the process's main or a test file's set-up, before anything opens Temporal.
 */
export function installTemporalLog(log: Logger): void {
  Runtime.install({
    telemetryOptions: {
      logging: { filter: makeTelemetryFilterString({ core: 'WARN', other: 'ERROR' }), forward: {} },
    },
    logger: new DefaultLogger('WARN', ({ level, message }) => log.warn({ sdkLevel: level }, `temporal: ${message}`)),
  });
}
