/** Everything that enters Temporal is here: ids and numbers, never a body, a secret, a URL or a name. Source: design, section 6. */

/** One delivery: an event to a webhook. */
export interface DeliveryKey {
  organizationId: string;
  webhookId: string;
  eventId: string;
}

export interface DeliverEventInput extends DeliveryKey {
  /** Which round of the delivery this workflow is; an attempt of an older one is not admitted. */
  round: number;
  /** Milliseconds from each failed attempt to the next; one attempt more than there are waits. */
  delaysMs: number[];
  /** True for a webhook that is failing: its first attempts too go to the slow queue. */
  slow: boolean;
}

/** `closed`: the delivery was settled, cancelled or parked elsewhere, or another round took over. */
export type DeliveryEnd = 'delivered' | 'exhausted' | 'closed';

export interface AttemptInput extends DeliveryKey {
  round: number;
  /** The wait that follows a failure, jitter included; null when this is the schedule's last attempt. */
  nextDelayMs: number | null;
}

/**
 * How an attempt ended. `failed` waits and goes to the schedule's next attempt; `postponed` (no free place, a fault of our own) waits and tries
 * the same one again, so that it does not use up the receiver's attempts.
 */
export type AttemptResult =
  | { kind: 'delivered' }
  | { kind: 'exhausted' }
  | { kind: 'closed' }
  | { kind: 'failed'; waitMs: number }
  | { kind: 'postponed'; waitMs: number };

export interface DeliveryActivities {
  /** Admits, signs, posts and records one attempt. Refusals of the receiver are results; only a fault of ours throws. */
  attemptDelivery(input: AttemptInput): Promise<AttemptResult>;
  /**
   * Closes what a worker that died left under way, as `lost`, and says how to go on. An attempt that was never admitted (our database was away) does not use up one of the
   * schedule; one whose outcome is on record already goes on from there.
   */
  recordLostAttempt(input: AttemptInput): Promise<AttemptResult>;
}

/** Where workflows, activities and the relay meet. */
export const deliverQueue = 'deliver';
/** Retries, and deliveries to webhooks that are failing: slots of their own, so that slow receivers cannot take the others'. */
export const deliverSlowQueue = 'deliver-slow';

/** The workflow of a delivery's round: one id a round, and one round runs at a time. */
export function workflowIdOf({ webhookId, eventId }: DeliveryKey, round: number): string {
  return round === 1 ? `delivery/${webhookId}/${eventId}` : `delivery/${webhookId}/${eventId}/r${round}`;
}
