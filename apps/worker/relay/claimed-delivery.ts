import type { DeliveryKey } from '#workflows/deliver-event/types.ts';

/** A delivery that the relay has claimed in order to start its workflow. */
export interface ClaimedDelivery extends DeliveryKey {
  round: number;
  /** Whether its webhook is failing or slow, so that every attempt goes to the slow queue. */
  slow: boolean;
  /** The event's type. */
  type: string;
  /**
   * When the round became due; for a first round, the event's own time. Unix time in ms, by
   * PostgreSQL's clock.
   */
  begunAtMs: number;
}

/** When a claim was requested and answered: Unix times in ms. */
export interface ClaimTimes {
  askedAtMs: number;
  claimedAtMs: number;
}
