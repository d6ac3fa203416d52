import type { RedeliveryProgress } from '#domain/webhooks/redelivery-page.ts';

/**
 * Everything of a redelivery that enters Temporal is here: ids and numbers.
 */

export type { RedeliveryProgress } from '#domain/webhooks/redelivery-page.ts';

export interface RedeliveryKey {
  organizationId: string;
  redeliveryId: string;
}

/** How quickly deliveries are sent again. */
export interface Pace {
  /** Deliveries of one page, which are sent together. */
  perPage: number;
  /** Deliveries in a second, on average. */
  perSecond: number;
}

export interface RedeliverInput extends RedeliveryKey {
  /** How many pages are done, as far as its starter knows. */
  page: number;
  pace: Pace;
  /** After so many pages it goes on as a new run, so that its history stays small. */
  pagesPerRun: number;
  /** How it stood at the end of the run before; null for the first one. */
  progress: RedeliveryProgress | null;
}

export interface PageInput extends RedeliveryKey {
  page: number;
  perPage: number;
}

export type RedeliveryEnd = 'done' | 'cancelled' | 'ended';

export interface RedeliveryActivities {
  /**
   * Carries out a page, notifies the running workflows among its deliveries, and says how the
   * redelivery stands. Done twice, it does nothing the second time.
   */
  redeliverPage(input: PageInput): Promise<RedeliveryProgress>;
}

/**
 * So quickly a redelivery goes: a receiver that takes 20 posts a second beside its usual events is
 * not overrun, and 100,000 deliveries take 84 minutes.
 */
export const rateLimit: Pace = { perPage: 20, perSecond: 20 };
/** A page is 11 events of history; Temporal warns at 10,240. */
export const pagesPerRun = 300;

/** The workflow of a redelivery. */
export const redeliveryWorkflowId = (redeliveryId: string): string => `redelivery/${redeliveryId}`;
