import { DomainError } from '#domain/contract/domain-error.ts';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import { openWorkflowClient, type WorkflowClient } from '#workflows/client.ts';
import { WorkflowError } from '#workflows/errors.ts';

/**
 * The shared client of Temporal, opened on first use, so that the console starts and serves its
 * other pages while Temporal is unavailable. Every call throws `WorkflowsUnavailableError` if it cannot be
 * carried out.
 */
export interface Workflows extends Pick<WorkflowClient, 'sendTest' | 'checkSignatures' | 'close'> {
  /** Whether this installation has a Temporal server. */
  isConfigured: boolean;
}

/** A call to Temporal that failed. The message tells the person what to do. */
export class WorkflowsUnavailableError extends DomainError<'workflows_unavailable'> {
  constructor(message: string, options?: ErrorOptions) {
    super('workflows_unavailable', message, options);
  }
}

/** How long (ms) a call may take; each waits for a receiver. */
const deadlineMs = { sendTest: 45_000, checkSignatures: 65_000 } as const;

/** The sentences for people. They name no part of the system. */
export const unavailableSentences = {
  notConfigured: 'Sending is not available on this installation. Contact support.',
  temporal_unavailable: 'Sending is temporarily unavailable. No events are lost. Try again in a moment.',
  no_worker: 'The event was not sent in time. Try again in a moment. If this continues, contact support.',
};

/** The warning in the operator's log when there is no Temporal server. */
export const withoutTemporal =
  'TEMPORAL_ADDRESS is not set, so this console sends no test event and checks no signatures: ' +
  'set it to the Temporal that the workers use';

/** `temporal` null: the installation has no Temporal server, and each call says so. */
export function createWorkflows(temporal: TemporalServer | null): Workflows {
  let opening: Promise<WorkflowClient> | null = null;

  async function open(): Promise<WorkflowClient> {
    if (temporal === null) throw new WorkflowsUnavailableError(unavailableSentences.notConfigured);
    opening ??= openWorkflowClient(temporal);
    try {
      return await opening;
    } catch (error) {
      opening = null; // the next call tries again
      throw error;
    }
  }

  /** Calls the client with a time limit: the SDK alone retries for long without a server. */
  async function ask<Result>(limitMs: number, call: (client: WorkflowClient) => Promise<Result>): Promise<Result> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new WorkflowsUnavailableError(unavailableSentences.temporal_unavailable)),
        limitMs,
      );
    });
    try {
      return await Promise.race([open().then(call), late]);
    } catch (cause) {
      throw explained(cause);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    isConfigured: temporal !== null,
    sendTest: (input) => ask(deadlineMs.sendTest, (client) => client.sendTest(input)),
    checkSignatures: (input) => ask(deadlineMs.checkSignatures, (client) => client.checkSignatures(input)),
    async close() {
      const client = await opening?.catch(() => null);
      await client?.close();
    },
  };
}

/**
 * Translates an error of the shared client, which names addresses and commands for operators, into
 * a sentence for people.
 */
function explained(cause: unknown): unknown {
  return cause instanceof WorkflowError
    ? new WorkflowsUnavailableError(unavailableSentences[cause.reason], { cause })
    : cause;
}
