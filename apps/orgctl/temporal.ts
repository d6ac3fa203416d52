import { randomUUIDv7 } from 'node:crypto';
import { Client, Connection, WorkflowFailedError, WorkflowNotFoundError } from '@temporalio/client';
import { type DeliveryKey, deliverQueue, workflowIdOf } from '#workflows/deliver-event/types.ts';
import type { SendTestInput, TestResult } from '#workflows/send-test/types.ts';
import { Refused } from './refused.ts';

/** Tells workflows that run. */
export interface DeliverySignals {
  /** Makes a delivery's next attempt now. False when its workflow ended meanwhile; then the reconciler looks after the delivery within a minute or so. */
  retryNow(delivery: DeliveryKey, round: number): Promise<boolean>;
  /** Sends a test event through a worker and waits for what came of it, 40 s at most. Null when the webhook is deleted meanwhile. @throws Refused when no worker carried it out. */
  sendTest(input: SendTestInput): Promise<TestResult | null>;
  close(): Promise<void>;
}

const connectTimeoutMs = 5_000;

/** Connects to Temporal. Rejects when it does not answer within 5 s. */
export async function openDeliverySignals(temporal: { address: string; namespace: string }): Promise<DeliverySignals> {
  const connection = await Connection.connect({ address: temporal.address, connectTimeout: connectTimeoutMs });
  const client = new Client({ connection, namespace: temporal.namespace });
  return {
    async retryNow(delivery, round) {
      try {
        await client.workflow.getHandle(workflowIdOf(delivery, round)).signal('retryNow');
        return true;
      } catch (error) {
        if (error instanceof WorkflowNotFoundError) return false;
        throw error;
      }
    },
    async sendTest(input) {
      try {
        const workflowId = `test/${input.webhookId}/${randomUUIDv7()}`;
        return await client.workflow.execute<(input: SendTestInput) => Promise<TestResult | null>>('sendTest', {
          ...{ taskQueue: deliverQueue, workflowId, args: [input], workflowExecutionTimeout: '40s' },
        });
      } catch (error) {
        if (error instanceof WorkflowFailedError)
          throw new Refused('No worker could send the test event: see that one runs, and its log, and ask again.');
        throw error;
      }
    },
    close: () => connection.close(),
  };
}
