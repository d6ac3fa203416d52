/** What enters Temporal: ids, numbers and codes, and never a body, a secret, a URL or a name. */
import type { Sinks } from '@temporalio/workflow';

/** One delivery: an event to a webhook. */
export interface DeliveryKey {
  organizationId: string;
  webhookId: string;
  eventId: string;
}

/** A round of a delivery; attempts of an older one are not admitted. */
export interface DeliveryRound extends DeliveryKey {
  round: number;
}

/** Returns the round alone. */
export const roundOf = ({ organizationId, webhookId, eventId, round }: DeliveryRound): DeliveryRound => ({
  organizationId,
  webhookId,
  eventId,
  round,
});

export interface DeliverEventInput extends DeliveryRound {
  /** Milliseconds from each failed attempt to the next; there is one attempt more. */
  delaysMs: number[];
  /** Whether the webhook is failing or slow: its first attempts also go to the slow queue. */
  slow: boolean;
  /** The event's type. */
  type: string;
  /** When this round became due (the first: the event's time), Unix time by PostgreSQL's clock. */
  begunAtMs: number;
  /** The progress of the run that continued as this one; absent in a round's first run. */
  progress?: DeliveryProgress;
  /** For tests: events after which a run continues as a new one. By default about 4,000. */
  eventsPerRun?: number;
}

/** The progress of a round's workflow. */
export interface DeliveryProgress {
  /** Failed attempts; the index of the schedule's next wait. */
  failed: number;
  /** Consecutive internal errors since an attempt last reached the receiver. */
  internalErrors: number;
  /** How often the schedule's last attempt was lost. */
  lostLast: number;
}

/** `closed`: the delivery was settled, cancelled or parked elsewhere, or has another round. */
export type DeliveryEnd = 'delivered' | 'exhausted' | 'closed';

export interface AttemptInput extends DeliveryRound {
  /** The wait after a failure, including jitter; null when this is the schedule's last attempt. */
  nextDelayMs: number | null;
  /** Whether it is admitted only if its round has no attempt yet; a repetition gets `begun`. */
  onlyAsFirst?: boolean;
  /** Consecutive internal errors before it, which lengthen the wait after another one. */
  internalErrors: number;
}

export interface LostAttemptInput extends Omit<AttemptInput, 'internalErrors'> {
  /** How often the schedule's last attempt was lost before. */
  lostLast: number;
}

/**
 * How long one attempt may take: the receiver's time, and reads and writes of the service. An
 * admitted attempt without an outcome is closed as lost at this age, by PostgreSQL's clock, and
 * only then may another one be admitted. So two posts of a delivery are never in progress at once.
 */
export const attemptTimeoutMs = 20_000;

/**
 * How an attempt ended. `failed` waits for the schedule's next attempt. `postponed` makes the same
 * attempt again, so that it does not use up the receiver's: without `because` no concurrency slot
 * was free; `internalError`: it could not be made; `lost`: it was the schedule's last and its
 * process died, so that the receiver may not have got it.
 */
export type AttemptResult =
  | { kind: 'delivered' }
  | { kind: 'exhausted' }
  | { kind: 'closed' }
  | { kind: 'failed'; waitMs: number }
  | { kind: 'postponed'; waitMs: number; because?: 'internalError' | 'lost' };

/** The round's first attempt has begun in another worker, and may still be in progress there. */
export interface Begun {
  kind: 'begun';
}

/** An attempt is in progress whose process may be alive; after `waitMs` it counts as lost. */
export interface UnderWay {
  kind: 'underWay';
  waitMs: number;
}

export interface DeliveryActivities {
  /** Admits, signs, posts and records one attempt. Only an internal error throws. */
  attemptDelivery(input: AttemptInput): Promise<AttemptResult | Begun>;
  /**
   * Closes an expired attempt of a worker that died as `lost`, and returns how to continue. An
   * attempt that was never admitted (the database was away) does not use up one of the schedule,
   * and a recorded outcome counts. The schedule's last attempt is repeated a few times when it was
   * lost.
   */
  recordLostAttempt(input: LostAttemptInput): Promise<AttemptResult | UnderWay>;
}

/** How a round ended, for traces. */
export interface RoundEnd extends DeliveryRound, Pick<DeliverEventInput, 'type' | 'begunAtMs'> {
  end: DeliveryEnd;
  /** Failed attempts of this round. */
  failed: number;
}

/** What a workflow reports to its worker: outside its history, once, and not during replay. */
export interface DeliverySinks extends Sinks {
  delivery: { ended(end: RoundEnd): void };
}

/** The task queue of first attempts. */
export const deliverQueue = 'deliver';
/** The task queue of retries and failing webhooks: slow receivers cannot use the others' slots. */
export const deliverSlowQueue = 'deliver-slow';

/** Returns the workflow id of a delivery's round. One run of it exists at a time. */
export function workflowIdOf({ webhookId, eventId }: DeliveryKey, round: number): string {
  return round === 1 ? `delivery/${webhookId}/${eventId}` : `delivery/${webhookId}/${eventId}/r${round}`;
}

const uuid = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const deliveryWorkflowId = new RegExp(`^delivery/(${uuid})/(${uuid})(?:/r([1-9][0-9]{0,8}))?$`);

/** Parses an id of `workflowIdOf`; null for another id. */
export function parseWorkflowId(workflowId: string): { webhookId: string; eventId: string; round: number } | null {
  const [, webhookId, eventId, round = '1'] = deliveryWorkflowId.exec(workflowId) ?? [];
  return webhookId === undefined || eventId === undefined ? null : { webhookId, eventId, round: Number(round) };
}
