import { randomUUIDv7 } from 'node:crypto';
import { Client, Connection, ServiceError, WorkflowFailedError, WorkflowNotFoundError } from '@temporalio/client';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import { connectionOptions, describeAway, describeRefusal, isRefusal } from './connection.ts';
import { type DeliveryKey, deliverQueue, workflowIdOf } from './deliver-event/types.ts';
import { redeliveryWorkflowId } from './redeliver/types.ts';
import { WorkflowRefused } from './refused.ts';
import type { SendTestInput, SignatureCheck, TestResult } from './send-test/types.ts';

/** Signals and starts of workflows from outside of the worker. */
export interface WorkflowClient {
  /**
   * Makes a delivery's next attempt now. False when its workflow ended meanwhile; then the
   * reconciler looks after the delivery within a minute or so.
   */
  retryNow(delivery: DeliveryKey, round: number): Promise<boolean>;
  /**
   * Ends a delivery's workflow, which its caller has settled in the database first. False when it
   * had ended.
   */
  cancelDelivery(delivery: DeliveryKey, round: number): Promise<boolean>;
  /**
   * Has a redelivery look at once whether it is to stop, which the database says; without this it
   * does before its next page. False when it had ended.
   */
  cancelRedelivery(redeliveryId: string): Promise<boolean>;
  /**
   * Sends a test event through a worker and waits for what came of it, 40 s at most. Null when the
   * webhook is deleted meanwhile. @throws WorkflowRefused when no worker carried it out.
   */
  sendTest(input: SendTestInput): Promise<TestResult | null>;
  /**
   * Finds out whether the receiver verifies signatures; waits 60 s at most. Null when the webhook
   * is deleted meanwhile. @throws WorkflowRefused when no worker that can do it carried it out.
   */
  checkSignatures(input: SendTestInput): Promise<SignatureCheck | null>;
  close(): Promise<void>;
}

const connectTimeoutMs = 5_000;

/**
 * Connects to Temporal. @throws WorkflowRefused when it does not answer within 5 s, or does not let
 * us in; the message says why.
 */
export async function openWorkflowClient(temporal: TemporalServer): Promise<WorkflowClient> {
  const options = { ...connectionOptions(temporal), connectTimeout: connectTimeoutMs };
  const connection = Connection.lazy(temporal.apiKey ? { ...options, apiKey: temporal.apiKey } : options);
  try {
    await connection.ensureConnected();
  } catch (cause) {
    await connection.close();
    const isRefused = isRefusal(cause instanceof ServiceError ? cause.cause : cause);
    const reason = isRefused ? describeRefusal(temporal) : describeAway(temporal);
    throw new WorkflowRefused('temporal_away', `${reason}.`, { cause });
  }
  const client = new Client({ connection, namespace: temporal.namespace });
  return {
    retryNow: (delivery, round) => retryNow(client, delivery, round),
    cancelDelivery: (delivery, round) => signal(client, workflowIdOf(delivery, round), 'cancel'),
    cancelRedelivery: (redeliveryId) => signal(client, redeliveryWorkflowId(redeliveryId), 'cancel'),
    async sendTest(input) {
      const result = await executeTest(client, input, '40s');
      return result === null || 'eventId' in result ? result : result.good;
    },
    async checkSignatures(input) {
      const result = await executeTest(client, { ...input, checkSignatures: true }, '60s');
      if (result === null || 'result' in result) return result;
      // A worker of the version before this knows no check, and sent a test event.
      throw new WorkflowRefused(
        'old_worker',
        'An older worker answered, which cannot check signatures yet: ask again once all are new.',
      );
    },
    close: () => connection.close(),
  };
}

/**
 * Makes a delivery's next attempt now, over an open client. False when its workflow ended
 * meanwhile.
 */
export function retryNow(client: Client, delivery: DeliveryKey, round: number): Promise<boolean> {
  return signal(client, workflowIdOf(delivery, round), 'retryNow');
}

async function signal(client: Client, workflowId: string, name: 'retryNow' | 'cancel'): Promise<boolean> {
  try {
    await client.workflow.getHandle(workflowId).signal(name);
    return true;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return false;
    throw error;
  }
}

/** @throws WorkflowRefused when the workflow failed, or no worker carried it out in time. */
async function executeTest(
  client: Client,
  input: SendTestInput,
  workflowExecutionTimeout: '40s' | '60s',
): Promise<TestResult | SignatureCheck | null> {
  const workflowId = `test/${input.webhookId}/${randomUUIDv7()}`;
  const options = { taskQueue: deliverQueue, workflowId, args: [input] as [SendTestInput], workflowExecutionTimeout };
  try {
    return await client.workflow.execute<(input: SendTestInput) => Promise<TestResult | SignatureCheck | null>>(
      'sendTest',
      options,
    );
  } catch (error) {
    if (!(error instanceof WorkflowFailedError)) throw error;
    throw new WorkflowRefused(
      'no_worker',
      'No worker could send the test event: see that one runs, and its log, and ask again.',
      { cause: error },
    );
  }
}
