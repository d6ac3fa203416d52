import { randomUUIDv7 } from 'node:crypto';
import { Client, Connection, NamespaceNotFoundError, ServiceError, WorkflowFailedError } from '@temporalio/client';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import { connectionOptions, describeRejection, describeUnavailable, isRejection } from './connection.ts';
import { deliverQueue } from './deliver-event/types.ts';
import { WorkflowError } from './errors.ts';
import type { SendTestInput, SignatureCheck, TestResult } from './send-test/types.ts';

/** Starts workflows from outside the worker. */
export type WorkflowClient = Awaited<ReturnType<typeof openWorkflowClient>>;

const connectTimeoutMs = 5_000;

/**
 * Connects to Temporal.
 *
 * @throws WorkflowError with the reason when it does not answer within 5 s or rejects.
 */
export async function openWorkflowClient(temporal: TemporalServer) {
  const options = { ...connectionOptions(temporal), connectTimeout: connectTimeoutMs };
  const connection = Connection.lazy(temporal.apiKey ? { ...options, apiKey: temporal.apiKey } : options);
  try {
    await connection.ensureConnected();
  } catch (cause) {
    await connection.close();
    const reason = isRejection(cause) ? describeRejection(temporal) : describeUnavailable(temporal);
    throw new WorkflowError('temporal_unavailable', `${reason}.`, { cause });
  }
  const client = new Client({ connection, namespace: temporal.namespace });
  return {
    /**
     * Sends a test event through a worker and waits at most 40 s for the result. Returns null when
     * the webhook is deleted meanwhile.
     *
     * @throws WorkflowError when Temporal or a worker did not carry it out.
     */
    sendTest: (input: SendTestInput) => executeTest<TestResult>(client, input, '40s'),

    /** Checks whether the receiver verifies signatures, as `sendTest`; waits at most 60 s. */
    checkSignatures: (input: SendTestInput) =>
      executeTest<SignatureCheck>(client, { ...input, checkSignatures: true }, '60s'),

    close: () => connection.close(),
  };
}

/** @throws WorkflowError when Temporal did not run the workflow, or no worker carried it out in time. */
async function executeTest<Result extends TestResult | SignatureCheck>(
  client: Client,
  input: SendTestInput,
  workflowExecutionTimeout: '40s' | '60s',
): Promise<Result | null> {
  const workflowId = `test/${input.webhookId}/${randomUUIDv7()}`;
  const options = { taskQueue: deliverQueue, workflowId, args: [input] as [SendTestInput], workflowExecutionTimeout };
  try {
    return await client.workflow.execute<(input: SendTestInput) => Promise<Result | null>>('sendTest', options);
  } catch (cause) {
    if (cause instanceof WorkflowFailedError)
      throw new WorkflowError(
        'no_worker',
        'No worker could send the test event: see that one runs, and its log, and ask again.',
        { cause },
      );
    if (cause instanceof ServiceError || cause instanceof NamespaceNotFoundError)
      throw new WorkflowError(
        'temporal_unavailable',
        'Temporal did not start the test event, or did not tell its result: see its log, that each of its services ' +
          `runs, and that it has the namespace ${client.options.namespace}.`,
        { cause },
      );
    throw cause;
  }
}
