import type { Client } from '@temporalio/client';
import type { Pool } from 'pg';
import type { Behavior } from '../chaos/plan.ts';

/** One delivery of a scenario's own, and what may be done to it. */
export interface Stage {
  pool: Pool;
  client: Client;
  organizationId: string;
  webhookId: string;
  /** What the receiver does with the `nth` post, from 1; 200 until it is set. */
  receive: (plan: (nth: number) => Behavior) => void;
  /** Begins a grant, whose event this delivery is of. Returns its id. */
  makeEvent: () => Promise<string>;
  /** Waits until this many attempts of the delivery are in the table, `open` of them under way. */
  attempts: (count: number, open: 0 | 1) => Promise<void>;
  /** Waits until the delivery has this state. */
  state: (state: string) => Promise<void>;
  /** Kills the worker, which comes up again by itself. */
  killWorker: () => Promise<void>;
  killPostgres: () => Promise<void>;
  restartPostgres: () => Promise<void>;
}

/**
 * Brings a workflow to its end in one particular way. Returns which is to be kept: that of a
 * delivery's round, or another by its id.
 */
export interface Scenario {
  /** Names the saved history. */
  kind: string;
  run: (stage: Stage) => Promise<{ eventId: string; round: number } | { workflowId: string; runId?: string }>;
}
