import { DomainError } from '#domain/contract/domain-error.ts';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import { openWorkflowClient, type WorkflowClient } from '#workflows/client.ts';
import { WorkflowError } from '#workflows/errors.ts';
import type { SendTestInput, SignatureCheck, TestResult } from '#workflows/send-test/types.ts';

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

/**
 * The shared client of Temporal, opened on first use, so that the console starts and serves its
 * other pages while Temporal is unavailable. Every call throws `WorkflowsUnavailableError` if it cannot
 * be carried out.
 */
export class Workflows implements Pick<WorkflowClient, 'sendTest' | 'checkSignatures' | 'close'> {
  readonly #temporal: TemporalServer | null;
  #opening: Promise<WorkflowClient> | null = null;

  /** `temporal` null: the installation has no Temporal server, and each call says so. */
  constructor(temporal: TemporalServer | null) {
    this.#temporal = temporal;
  }

  /** Whether this installation has a Temporal server. */
  get isConfigured(): boolean {
    return this.#temporal !== null;
  }

  sendTest(input: SendTestInput): Promise<TestResult | null> {
    return this.#call(deadlineMs.sendTest, (client) => client.sendTest(input));
  }

  checkSignatures(input: SendTestInput): Promise<SignatureCheck | null> {
    return this.#call(deadlineMs.checkSignatures, (client) => client.checkSignatures(input));
  }

  async close(): Promise<void> {
    const client = await this.#opening?.catch(() => null);
    await client?.close();
  }

  /** Calls the client with a time limit: the SDK alone retries for long without a server. */
  async #call<Result>(limitMs: number, call: (client: WorkflowClient) => Promise<Result>): Promise<Result> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new WorkflowsUnavailableError(unavailableSentences.temporal_unavailable)),
        limitMs,
      );
    });
    try {
      return await Promise.race([this.#open().then(call), late]);
    } catch (cause) {
      throw explained(cause);
    } finally {
      clearTimeout(timer);
    }
  }

  async #open(): Promise<WorkflowClient> {
    if (this.#temporal === null) throw new WorkflowsUnavailableError(unavailableSentences.notConfigured);
    this.#opening ??= openWorkflowClient(this.#temporal);
    try {
      return await this.#opening;
    } catch (error) {
      this.#opening = null; // the next call tries again
      throw error;
    }
  }
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
