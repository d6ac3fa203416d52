import type { Pool } from 'pg';
import { createIntervalLoop, type IntervalLoop } from '#runtime/interval-loop.ts';
import type { LostAttempt } from '#workflows/deliver-event/activities.ts';
import { type Reconciled, reconcile } from './reconciler.ts';
import { sweepRunning } from './sweep.ts';
import type { OpenTemporal } from './temporal.ts';

/** Runs in the time after which a delivery is overdue: every 15 s with the default of 60 s. */
const runsPerOverdue = 4;

interface RepairsOptions {
  pool: Pool;
  temporal: Pick<OpenTemporal, 'getStatus' | 'retryNow' | 'terminate' | 'cancel' | 'listRunning'>;
  /** How late a delivery is before it is repaired, and how often running workflows are listed. */
  overdueMs: number;
  onReconciled: (reconciled: Reconciled) => void;
  /** Called with the number of orphaned workflows that were ended. */
  onCancelled: (workflows: number) => void;
  onLost: (lost: LostAttempt) => void;
  onError: (cause: unknown) => void;
}

/**
 * Returns the loop that ensures that each waiting delivery has a workflow that makes progress, and
 * each workflow a delivery that needs it.
 */
export function createRepairs(options: RepairsOptions): IntervalLoop {
  const { pool, temporal, overdueMs, onReconciled, onCancelled, onLost, onError } = options;
  const { getStatus, retryNow, terminate, cancel, listRunning } = temporal;

  async function repair(signal: AbortSignal): Promise<void> {
    onReconciled(await reconcile({ pool, getStatus, retryNow, terminate, overdueMs, signal, onLost }));
    if (signal.aborted) return;
    onCancelled(await sweepRunning({ pool, listRunning, cancel, everyMs: overdueMs, signal }));
  }

  return createIntervalLoop({ run: repair, everyMs: overdueMs / runsPerOverdue, onError });
}
