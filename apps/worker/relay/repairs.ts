import type { Pool } from 'pg';
import type { LostAttempt } from '#workflows/deliver-event/activities.ts';
import { type Reconciled, reconcile } from './reconciler.ts';
import { sweepRunning } from './sweep.ts';
import type { OpenTemporal } from './temporal.ts';

/**
 * How often overdue deliveries are looked for, in parts of the time after which they count as
 * overdue: every 15 s with the default of 60 s.
 */
const reconcilesPerOverdue = 4;

export interface RepairsOptions {
  pool: Pool;
  temporal: Pick<OpenTemporal, 'getStatus' | 'retryNow' | 'terminate' | 'cancel' | 'listRunning'>;
  /**
   * How late a delivery is before it is looked after; workflows that run this long are asked for
   * once in as much time, by one worker of all.
   */
  overdueMs: number;
  onReconciled: (reconciled: Reconciled) => void;
  /** Told how many workflows that nobody owes any more were ended. */
  onCancelled: (workflows: number) => void;
  onLost: (lost: LostAttempt) => void;
  onError: (cause: unknown) => void;
}

/**
 * Brings PostgreSQL and Temporal together again and again: what is owed runs, what runs is owed.
 * `stop` waits for the round under way; safe to call twice, and before `start`.
 */
export function createRepairs(options: RepairsOptions) {
  const { pool, temporal, overdueMs, onReconciled, onCancelled, onLost, onError } = options;
  const { getStatus, retryNow, terminate, cancel, listRunning } = temporal;
  const stopping = new AbortController();
  const { signal } = stopping;
  let timer: NodeJS.Timeout | undefined;
  let repairing: Promise<void> | null = null;

  async function repair(): Promise<void> {
    try {
      onReconciled(await reconcile({ pool, getStatus, retryNow, terminate, overdueMs, signal, onLost }));
      if (signal.aborted) return;
      onCancelled(await sweepRunning({ pool, listRunning, cancel, everyMs: overdueMs, signal }));
    } catch (cause) {
      onError(cause);
    }
  }

  return {
    start(): void {
      timer = setInterval(() => {
        repairing ??= repair().finally(() => {
          repairing = null;
        });
      }, overdueMs / reconcilesPerOverdue);
    },
    async stop(): Promise<void> {
      clearInterval(timer);
      stopping.abort();
      await repairing;
    },
  };
}
