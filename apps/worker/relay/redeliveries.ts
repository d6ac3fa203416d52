import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { Pool } from 'pg';
import { claimRedeliveriesSql } from '#domain/db/statements/redelivery-progress.ts';
import { createIntervalLoop } from '#runtime/interval-loop.ts';
import { deliverQueue } from '#workflows/deliver-event/types.ts';
import {
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

/** How often requested redeliveries and expired leases are looked for. */
const pollEveryMs = 500;
/** How long a claim lasts. Afterwards each page renews the lease. */
const leaseSeconds = 15;
/** Each has another webhook, and one start takes milliseconds. */
const perClaim = 20;

/**
 * Returns the loop that starts a workflow for each redelivery without a lease: one that was
 * requested, or whose workflow was lost. As with deliveries, no transaction is open during a call
 * to Temporal.
 */
export function createRedeliveryStarter(options: {
  pool: Pool;
  client: Client;
  strandedAfterMs: number;
  onError: (cause: unknown) => void;
}) {
  const { pool, client, strandedAfterMs, onError } = options;

  async function startAll(): Promise<void> {
    const { rows } = await pool.query<ClaimedRedelivery>(claimRedeliveriesSql, [perClaim, leaseSeconds]);
    const tried = await Promise.allSettled(rows.map((row) => startWorkflow(client, row, strandedAfterMs)));
    const failure = tried.find((result) => result.status === 'rejected');
    if (failure !== undefined) throw failure.reason;
    if (rows.length === perClaim) loop.runNow();
  }

  const loop = createIntervalLoop({ run: startAll, everyMs: pollEveryMs, onError });
  return loop;
}

/**
 * Starts a redelivery's workflow at its own pace, or at the default one. A running workflow stays,
 * unless it makes no progress: then it is terminated and started again. No page is carried out
 * twice.
 */
async function startWorkflow(
  client: Client,
  { organizationId, redeliveryId, page, perSecond, nowMs }: ClaimedRedelivery,
  strandedAfterMs: number,
): Promise<void> {
  const pace = perSecond === null ? rateLimit : { perPage: Math.min(rateLimit.perPage, perSecond), perSecond };
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
    const status = await getWorkflowStatus(client, workflowId, nowMs, strandedAfterMs);
    if (status === 'failing' || status === 'stranded') await start('TERMINATE_EXISTING');
  }
}
