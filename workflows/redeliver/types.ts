import type { RedeliveryProgress } from '#domain/webhooks/redelivery-page.ts';

/** Every type of a redelivery that enters Temporal is here: ids and numbers. */

export type { RedeliveryProgress } from '#domain/webhooks/redelivery-page.ts';

export interface RedeliveryKey {
  organizationId: string;
  redeliveryId: string;
}

/** The pace of a redelivery. */
interface Pace {
  /** Deliveries of one page, which are sent together. */
  perPage: number;
  /** Deliveries in a second, on average. */
  perSecond: number;
}

export interface RedeliverInput extends RedeliveryKey {
  /** Number of pages that its starter knows to be done. */
  page: number;
  pace: Pace;
  /** After this number of pages it continues as a new run, so that its history stays small. */
  pagesPerRun: number;
  /** The progress at the end of the run before; null for the first one. */
  progress: RedeliveryProgress | null;
}

export interface PageInput extends RedeliveryKey {
  page: number;
  perPage: number;
}

export type RedeliveryEnd = 'done' | 'cancelled' | 'ended';

export interface RedeliveryActivities {
  /** Carries out a page and notifies its running workflows. May be repeated. */
  redeliverPage(input: PageInput): Promise<RedeliveryProgress>;
}

/**
 * The default pace: it does not overload a receiver that takes 20 posts a second beside its usual
 * events, and 100,000 deliveries take 84 minutes.
 */
export const rateLimit: Pace = { perPage: 20, perSecond: 20 };
/** A page is 11 events of history; Temporal warns at 10,240. */
export const pagesPerRun = 300;

/** Returns the workflow id of a redelivery. */
export const redeliveryWorkflowId = (redeliveryId: string): string => `redelivery/${redeliveryId}`;
