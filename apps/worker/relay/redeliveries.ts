import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { Pool } from 'pg';
import { claimRedeliveriesSql } from '#domain/db/statements/redelivery-progress.ts';
import { createIntervalLoop } from '#runtime/interval-loop.ts';
import { deliverQueue } from '#workflows/deliver-event/types.ts';
import {
  type Pace,
  pagesPerRun,
  type RedeliverInput,
  type RedeliveryKey,
  rateLimit,
  redeliveryWorkflowId,
} from '#workflows/redeliver/types.ts';
import { getWorkflowStatus } from './progress.ts';

/** A redelivery to start, or to start again after its number of pages. */
type ClaimedRedelivery = RedeliveryKey & {
  page: number;
  /** Deliveries in a second; null for the worker's own rate. */
  perSecond: number | null;
  /** Unix time by PostgreSQL's clock. */
  nowMs: number;
};

interface RedeliveryStarterOptions {
  pool: Pool;
  /** Starts a redelivery's workflow, unless it runs; rejects when Temporal does not answer. */
  startWorkflow: (redelivery: ClaimedRedelivery) => Promise<void>;
  onError: (cause: unknown) => void;
  /** How often it polls for requested redeliveries and expired leases. */
  pollEveryMs?: number;
  /** How long a claim lasts. Afterwards each page renews the lease. */
  leaseSeconds?: number;
}

/** Each has another webhook, and one start takes milliseconds. */
const perClaim = 20;

/**
 * Returns the loop that starts a workflow for each redelivery without a lease: one that was
 * requested, or whose workflow was lost. As with deliveries, no transaction is open during a call
 * to Temporal.
 */
export function createRedeliveryStarter(options: RedeliveryStarterOptions) {
  const { pool, startWorkflow, onError, pollEveryMs = 500, leaseSeconds = 15 } = options;

  async function startAll(): Promise<void> {
    const { rows } = await pool.query<ClaimedRedelivery>(claimRedeliveriesSql, [perClaim, leaseSeconds]);
    const tried = await Promise.allSettled(rows.map(startWorkflow));
    const failure = tried.find((result) => result.status === 'rejected');
    if (failure !== undefined) throw failure.reason;
    if (rows.length === perClaim) loop.runNow();
  }

  const loop = createIntervalLoop({ run: startAll, everyMs: pollEveryMs, onError });
  return loop;
}

/**
 * Starts a redelivery's workflow at its own pace, or at this one. A running workflow stays, unless
 * it makes no progress: then it is terminated and started again. No page is carried out twice.
 */
export function redeliveryWorkflows(client: Client, strandedAfterMs: number, pace: Pace = rateLimit) {
  return async ({ organizationId, redeliveryId, page, perSecond, nowMs }: ClaimedRedelivery): Promise<void> => {
    const asked = perSecond === null ? pace : { perPage: Math.min(pace.perPage, perSecond), perSecond };
    const input: RedeliverInput = { organizationId, redeliveryId, page, pace: asked, pagesPerRun, progress: null };
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
      const status = await getWorkflowStatus(client, workflowId, nowMs, strandedAfterMs);
      if (status === 'failing' || status === 'stranded') await start('TERMINATE_EXISTING');
    }
  };
}
