/** Everything that enters Temporal is here: ids, numbers and codes, never a body, a secret, a URL or a name. Source: design, section 6. */
import type { Sinks } from '@temporalio/workflow';

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
  /** The event's type; absent in workflows that began before 2026-11-21. */
  type?: string;
  /** When this round became due (of a first round: the event's own time), Unix time in ms, by PostgreSQL's clock. Absent like `type`. */
  begunAtMs?: number;
  /** Where the first attempt is made: `local` in the worker that has the workflow's first task, else by a task of its own. Absent in workflows that began before 2026-11-22. */
  firstAttempt?: 'local';
}

/** `closed`: the delivery was settled, cancelled or parked elsewhere, or another round took over. */
export type DeliveryEnd = 'delivered' | 'exhausted' | 'closed';

export interface AttemptInput extends DeliveryKey {
  round: number;
  /** The wait that follows a failure, jitter included; null when this is the schedule's last attempt. */
  nextDelayMs: number | null;
  /** Admitted only if its round has no attempt yet: whoever repeats it unseen gets `begun`. */
  onlyAsFirst?: boolean;
}

export interface LostAttemptInput extends AttemptInput {
  /** For how long an attempt must have been under way to count as lost; absent: any time, as whoever asks knows that nobody makes it any more. */
  lostAfterMs?: number;
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

/** The round's first attempt was begun before, by whoever had this step of the workflow first; it may still be under way there. */
export interface Begun {
  kind: 'begun';
}

/** An attempt is under way that may have a process which makes it: in `waitMs` it counts as lost. */
export interface UnderWay {
  kind: 'underWay';
  waitMs: number;
}

export interface DeliveryActivities {
  /** Admits, signs, posts and records one attempt. Refusals of the receiver are results; only a fault of ours throws. */
  attemptDelivery(input: AttemptInput): Promise<AttemptResult | Begun>;
  /**
   * Closes what a worker that died left under way, as `lost`, and says how to go on. An attempt that was never admitted (our database was away) does not use up one of the
   * schedule; one whose outcome is on record already goes on from there.
   */
  recordLostAttempt(input: LostAttemptInput): Promise<AttemptResult | UnderWay>;
}

/** How a round ended, for whoever watches. `type` and `begunAtMs` are null for a workflow that began before they were known. */
export interface RoundEnd extends DeliveryKey {
  round: number;
  type: string | null;
  begunAtMs: number | null;
  end: DeliveryEnd;
  /** Failed attempts of this round. */
  failed: number;
}

/** What a workflow tells the worker that runs it: outside of its history, once, and not when it is replayed. */
export interface DeliverySinks extends Sinks {
  delivery: { ended(end: RoundEnd): void };
}

/** Where workflows, activities and the relay meet. */
export const deliverQueue = 'deliver';
/** Retries, and deliveries to webhooks that are failing: slots of their own, so that slow receivers cannot take the others'. */
export const deliverSlowQueue = 'deliver-slow';

/** The workflow of a delivery's round: one id a round, and one round runs at a time. */
export function workflowIdOf({ webhookId, eventId }: DeliveryKey, round: number): string {
  return round === 1 ? `delivery/${webhookId}/${eventId}` : `delivery/${webhookId}/${eventId}/r${round}`;
}

const uuid = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const deliveryWorkflowId = new RegExp(`^delivery/(${uuid})/(${uuid})(?:/r([1-9][0-9]{0,8}))?$`);

/** The reverse of `workflowIdOf`; null for an id that is of no delivery. */
export function parseWorkflowId(workflowId: string): { webhookId: string; eventId: string; round: number } | null {
  const [, webhookId, eventId, round = '1'] = deliveryWorkflowId.exec(workflowId) ?? [];
  return webhookId === undefined || eventId === undefined ? null : { webhookId, eventId, round: Number(round) };
}
