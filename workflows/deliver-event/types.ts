/**
 * Everything that enters Temporal is here: ids, numbers and codes, never a body, a secret, a URL or
 * a name.
 */
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
  /**
   * When this round became due (of a first round: the event's own time), Unix time in ms, by
   * PostgreSQL's clock. Absent like `type`.
   */
  begunAtMs?: number;
  /**
   * Where the first attempt is made: `local` in the worker that has the workflow's first task, else
   * by a task of its own. Absent in workflows that began before 2026-11-22.
   */
  firstAttempt?: 'local';
  /**
   * Where the run before stood that continued as this one; absent in a round's first run, whose
   * first attempt is still to be made.
   */
  progress?: DeliveryProgress;
  /**
   * A run continues as a new one at so many events of history, too, instead of only when Temporal
   * suggests it (at about 4,000). For tests.
   */
  eventsPerRun?: number;
}

/** What a round's workflow has behind it. */
export interface DeliveryProgress {
  /** Failed attempts; the next wait of the schedule is that of this number. */
  failed: number;
  /** Internal errors in a row, since an attempt last reached the receiver. */
  internalErrors: number;
  /** How often the schedule's last attempt was lost. */
  lostLast: number;
}

/**
 * `closed`: the delivery was settled, cancelled or parked elsewhere, or another round took over.
 */
export type DeliveryEnd = 'delivered' | 'exhausted' | 'closed';

export interface AttemptInput extends DeliveryKey {
  round: number;
  /**
   * The wait that follows a failure, jitter included; null when this is the schedule's last
   * attempt.
   */
  nextDelayMs: number | null;
  /** Admitted only if its round has no attempt yet; a repetition gets `begun`. */
  onlyAsFirst?: boolean;
  /**
   * Internal errors in a row before it, which make the wait after another one longer; absent: none.
   */
  internalErrors?: number;
}

export interface LostAttemptInput extends AttemptInput {
  /**
   * How often the schedule's last attempt was lost before; absent when a worker of before asks,
   * which would not count its repeats: it is not repeated.
   */
  lostLast?: number;
}

/** How long a receiver has for everything of one attempt. */
export const postDeadlineMs = 10_000;
/**
 * For how long one attempt may take: the receiver's time, and the rest covers reads and writes of
 * the service. An admitted attempt without an outcome expires when it is this old, by PostgreSQL's
 * clock; only then it is closed as lost, and another one may be admitted. So two posts of a
 * delivery are never under way.
 */
export const attemptTimeoutMs = 20_000;

/**
 * How an attempt ended. `failed` waits and goes to the schedule's next attempt; `postponed` (no
 * free concurrency slot, an internal error) waits and tries the same one again, so that it does not use up the
 * receiver's attempts. `because` is absent when no concurrency slot was free; `internalError`: it could not
 * be tried; `lost`: it was the schedule's last, and the process that made it died, so that the receiver
 * may never have had it.
 */
export type AttemptResult =
  | { kind: 'delivered' }
  | { kind: 'exhausted' }
  | { kind: 'closed' }
  | { kind: 'failed'; waitMs: number }
  | { kind: 'postponed'; waitMs: number; because?: 'internalError' | 'lost' };

/**
 * The round's first attempt was begun before, by the first worker that had this step of the
 * workflow; it may still be under way there.
 */
export interface Begun {
  kind: 'begun';
}

/**
 * An attempt is under way that may have a process which makes it: in `waitMs` it counts as lost.
 */
export interface UnderWay {
  kind: 'underWay';
  waitMs: number;
}

export interface DeliveryActivities {
  /**
   * Admits, signs, posts and records one attempt. Refusals of the receiver are results; only an
   * internal error throws.
   */
  attemptDelivery(input: AttemptInput): Promise<AttemptResult | Begun>;
  /**
   * Closes what a worker that died left under way, as `lost`, once it has expired, and says how to
   * go on. An attempt that was never admitted (our database was away) does not use up one of the
   * schedule; one whose outcome is on record already goes on from there. The schedule's last
   * attempt is repeated a few times when it was lost, and only then exhausts the delivery.
   */
  recordLostAttempt(input: LostAttemptInput): Promise<AttemptResult | UnderWay>;
}

/**
 * How a round ended, for traces. `type` and `begunAtMs` are null for a workflow that began
 * before they were known.
 */
export interface RoundEnd extends DeliveryKey {
  round: number;
  type: string | null;
  begunAtMs: number | null;
  end: DeliveryEnd;
  /** Failed attempts of this round. */
  failed: number;
}

/**
 * What a workflow reports to the worker that runs it: outside of its history, once, and not when it is
 * replayed.
 */
export interface DeliverySinks extends Sinks {
  delivery: { ended(end: RoundEnd): void };
}

/** Where workflows, activities and the relay meet. */
export const deliverQueue = 'deliver';
/**
 * Retries, and deliveries to webhooks that are failing: slots of their own, so that slow receivers
 * cannot take the others'.
 */
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
