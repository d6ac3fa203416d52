import { isGrpcServiceError, ServiceError } from '@temporalio/client';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import { openWorkflowClient, type WorkflowClient } from '#workflows/client.ts';
import { WorkflowRefused } from '#workflows/refused.ts';

/**
 * What the console tells workflows that run, and asks of them: the client that all share, opened by
 * its first use, so that the console starts and serves all else while Temporal is away. Every call
 * throws `WorkflowsAway` when it could not be carried out.
 */
export interface Workflows extends WorkflowClient {
  /** Whether this installation of the console knows a Temporal at all. */
  isConfigured: boolean;
}

/**
 * Why workflows could not be told or asked: a sentence with the remedy, for the person who asked.
 */
export class WorkflowsAway extends Error {
  override name = 'WorkflowsAway';
  readonly reason = 'workflows_away';
}

/**
 * How long a signal may take. The two that wait for a receiver have limits of their own, and a
 * little is added for the way.
 */
const patienceMs = { signal: 5_000, sendTest: 45_000, checkSignatures: 65_000 } as const;

/** What people are told: in their words, without the names of what runs here. */
export const awaySentences = {
  notConfigured: 'Sending is not available on this installation. Contact support.',
  away: 'Sending is temporarily unavailable. No events are lost. Try again in a moment.',
  no_worker: 'The event was not sent in time. Try again in a moment. If this continues, contact support.',
  old_worker: 'Sending is being updated. Try again in a few minutes.',
};

/** For an operator's log, where there is no Temporal; people are told what it means for them. */
export const withoutTemporal =
  'TEMPORAL_ADDRESS is not set, so this console sends no test event, checks no signatures and hurries no delivery: set it to the Temporal that the workers use';

/** `temporal` null: the installation has none, and says so when it is asked for. */
export function createWorkflows(temporal: TemporalServer | null): Workflows {
  let opening: Promise<WorkflowClient> | null = null;

  async function open(): Promise<WorkflowClient> {
    if (temporal === null) throw new WorkflowsAway(awaySentences.notConfigured);
    opening ??= openWorkflowClient(temporal);
    try {
      return await opening;
    } catch (error) {
      opening = null; // the next call tries anew
      throw error;
    }
  }

  /** Calls the client, within a time: the SDK itself tries for long while nobody answers. */
  async function ask<Result>(limitMs: number, call: (client: WorkflowClient) => Promise<Result>): Promise<Result> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new WorkflowsAway(awaySentences.away)), limitMs);
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
    retryNow: (delivery, round) => ask(patienceMs.signal, (client) => client.retryNow(delivery, round)),
    cancelDelivery: (delivery, round) => ask(patienceMs.signal, (client) => client.cancelDelivery(delivery, round)),
    cancelRedelivery: (redeliveryId) => ask(patienceMs.signal, (client) => client.cancelRedelivery(redeliveryId)),
    sendTest: (input) => ask(patienceMs.sendTest, (client) => client.sendTest(input)),
    checkSignatures: (input) => ask(patienceMs.checkSignatures, (client) => client.checkSignatures(input)),
    async close() {
      const client = await opening?.catch(() => null);
      await client?.close();
    },
  };
}

/**
 * The shared client's refusals name addresses and commands for operators; people of an organization
 * are told what it means for them.
 */
function explained(cause: unknown): unknown {
  if (cause instanceof WorkflowRefused)
    return new WorkflowsAway(cause.reason === 'temporal_away' ? awaySentences.away : awaySentences[cause.reason], {
      cause,
    });
  const isAway = cause instanceof ServiceError || isGrpcServiceError(cause);
  return isAway ? new WorkflowsAway(awaySentences.away, { cause }) : cause;
}
