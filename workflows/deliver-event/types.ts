/** What enters Temporal: ids, numbers and codes, and never a body, a secret, a URL or a name. */

export interface DeliveryId {
  organizationId: string;
  webhookId: string;
  eventId: string;
}

/** A run of a delivery. Attempts of an older one are not admitted. */
export interface DeliveryRun extends DeliveryId {
  run: number;
}

export interface StartedRun extends DeliveryRun {
  /** Whether its receiver fails or is slow: no attempt takes a worker slot of first attempts of runs. */
  isDegraded: boolean;
  type: string;
  /** When it became due, Unix time in ms. */
  dueAtMs: number;
}

export interface DeliverEventInput extends StartedRun {
  /** Set in a continued execution: how many internal errors came one after another before it. */
  internalErrors?: number;
  /** After how many events of history it continues as a new execution; default: Temporal's. */
  eventsPerExecution?: number;
}

export interface AttemptInput extends Omit<StartedRun, 'isDegraded'> {
  /** Internal errors that came one after another before it, which lengthen the wait. */
  internalErrors: number;
}

/** What follows for the run. */
export type NextStep =
  /** It ends: the delivery is settled, queued, or has a newer run. */
  | { kind: 'end' }
  /** It asks again after `waitMs`. */
  | { kind: 'wait'; waitMs: number; isInternalError: boolean };

export interface DeliveryActivities {
  /** Asks whether an attempt may be made now; if so, signs, posts and records it. Returns what the run does next. */
  attemptDelivery(input: AttemptInput): Promise<NextStep>;
}

/** How long an attempt may take in all. Temporal counts a longer one as failed. */
export const attemptTimeoutMs = 20_000;

export const deliverQueue = 'deliver';

/** Returns the id of a delivery's workflow, the same for all its runs: Temporal executes one at a time. */
export const getWorkflowId = ({ organizationId, webhookId, eventId }: DeliveryId): string =>
  `delivery/${organizationId}/${webhookId}/${eventId}`;
