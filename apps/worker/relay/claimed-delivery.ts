import type { DeliverEventInput } from '#workflows/deliver-event/types.ts';

/** A delivery that the relay has claimed in order to start its workflow. */
export type ClaimedDelivery = Omit<DeliverEventInput, 'delaysMs' | 'progress' | 'eventsPerRun'>;

/** When a claim was requested and answered: Unix times in ms. */
export interface ClaimTimes {
  askedAtMs: number;
  claimedAtMs: number;
}
