import type { Client } from '@temporalio/client';
import type { Pool } from 'pg';
import type { Behavior } from '../chaos/plan.ts';

/** A delivery for one scenario, and its controls. */
export interface Stage {
  pool: Pool;
  client: Client;
  organizationId: string;
  webhookId: string;
  /** How the receiver answers the `nth` post, from 1; 200 until it is set. */
  receive: (plan: (nth: number) => Behavior) => void;
  /** Starts a grant, which creates this delivery's event. Returns its id. */
  makeEvent: () => Promise<string>;
  /**
   * Waits until this many attempts of the delivery are in the table, `open` of them in progress.
   */
  attempts: (count: number, open: 0 | 1) => Promise<void>;
  /** Waits until the delivery has this state. */
  state: (state: string) => Promise<void>;
  /** Kills the worker, which restarts by itself. */
  killWorker: () => Promise<void>;
  killPostgres: () => Promise<void>;
  restartPostgres: () => Promise<void>;
}

/**
 * Completes a workflow in one particular way. Returns the one to save: the last one of a
 * delivery, or another by its id.
 */
export interface Scenario {
  /** The name of the saved history. */
  kind: string;
  run: (stage: Stage) => Promise<{ eventId: string } | { workflowId: string; runId?: string }>;
}
