import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { Pool } from 'pg';
import { claimRedeliveriesSql } from '#domain/db/statements/redelivery-progress.ts';
import { deliverQueue } from '#workflows/deliver-event/types.ts';
import {
  type Pace,
  pagesPerRun,
  type RedeliverInput,
  type RedeliveryKey,
  redeliveryWorkflowId,
  steadyPace,
} from '#workflows/redeliver/types.ts';
import { failingFromAttempt, getWorkflowStatus } from './progress.ts';

/** A redelivery that is to be begun, or begun again after so many pages. */
export type ClaimedRedelivery = RedeliveryKey & {
  page: number;
  /** Unix time by PostgreSQL's clock. */
  nowMs: number;
};

export interface RedeliveryStarterOptions {
  pool: Pool;
  /**
   * Starts a redelivery's workflow. Resolves also when it runs already; rejects when Temporal does
   * not answer.
   */
  startWorkflow: (redelivery: ClaimedRedelivery) => Promise<void>;
  onError: (cause: unknown) => void;
  /** How often it looks for redeliveries that were asked for and leases that have expired. */
  pollEveryMs?: number;
  /**
   * How long a claim holds; then another worker claims it. Afterwards each page gives its own
   * lease.
   */
  leaseSeconds?: number;
}

/** Each has a webhook of its own, and one start takes milliseconds. */
const perClaim = 20;

/**
 * Starts a workflow for each redelivery that nobody looks after: one that was asked for, and one
 * whose workflow was lost. As with deliveries a claim is a lease, and no transaction is open during
 * a call to Temporal. A workflow that runs after all, only late, is found running by its id, and
 * nothing happens.
 */
export function createRedeliveryStarter(options: RedeliveryStarterOptions) {
  const { pool, startWorkflow, onError, pollEveryMs = 500, leaseSeconds = 15 } = options;
  let timer: NodeJS.Timeout | undefined;
  let working: Promise<void> | null = null;
  let wanted = false;
  let stopped = true;

  function wake(): void {
    wanted = true;
    if (stopped || working !== null) return;
    working = work().finally(() => {
      working = null;
      if (wanted && !stopped) wake();
    });
  }

  async function work(): Promise<void> {
    wanted = false;
    try {
      const { rows } = await pool.query<ClaimedRedelivery>(claimRedeliveriesSql, [perClaim, leaseSeconds]);
      const tried = await Promise.allSettled(rows.map(startWorkflow));
      const failure = tried.find((result) => result.status === 'rejected');
      if (failure !== undefined) throw failure.reason;
      if (rows.length === perClaim) wanted = true;
    } catch (cause) {
      onError(cause); // the next poll tries again
    }
  }

  return {
    start(): void {
      stopped = false;
      wake();
      timer = setInterval(wake, pollEveryMs);
    },
    /**
     * Claims nothing more and waits for what is under way. Safe to call twice, and before `start`.
     */
    async stop(): Promise<void> {
      stopped = true;
      clearInterval(timer);
      await working;
    },
  };
}

/**
 * Starts a redelivery's workflow at this pace. One that runs already is what was wanted, unless it
 * makes no progress: then it is terminated and started again under its id, as is one that ended or
 * was lost before the redelivery did. A page that its predecessor carried out is not carried out
 * twice.
 */
export function redeliveryWorkflows(client: Client, strandedAfterMs: number, pace: Pace = steadyPace) {
  const limits = { failingFromAttempt, strandedAfterMs };
  return async ({ organizationId, redeliveryId, page, nowMs }: ClaimedRedelivery): Promise<void> => {
    const input: RedeliverInput = { organizationId, redeliveryId, page, pace, pagesPerRun, progress: null };
    const workflowId = redeliveryWorkflowId(redeliveryId);
    const start = (workflowIdConflictPolicy: 'FAIL' | 'TERMINATE_EXISTING') =>
      client.workflow.start('redeliver', {
        taskQueue: deliverQueue,
        workflowId,
        args: [input],
        workflowIdConflictPolicy,
        workflowIdReusePolicy: 'ALLOW_DUPLICATE',
      });
    try {
      await start('FAIL');
    } catch (error) {
      if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
      const status = await getWorkflowStatus(client, workflowId, nowMs, limits);
      if (status === 'failing' || status === 'stranded') await start('TERMINATE_EXISTING');
    }
  };
}
