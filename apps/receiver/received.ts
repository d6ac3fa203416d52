import { BoundedMap } from '#runtime/flow/bounded-map.ts';

/** One event that one endpoint received, once or more often. Times are ISO 8601, UTC. */
export interface ReceivedEvent {
  endpoint: string;
  eventId: string;
  type: string;
  /** `webhook-sequence`; null for a test event. */
  sequence: number | null;
  firstAt: string;
  lastAt: string;
  /** How often it was received. */
  times: number;
  /** How often it was received after it had been accepted. A real receiver ignores these. */
  duplicates: number;
  /** Whether the last signature was valid, and if not, why. */
  verified: boolean;
  problem: string | null;
  /** The response to the last one: a status, `hang` or `reset`. */
  response: number | 'hang' | 'reset';
}

/** One received request of an event. */
export type Arrival = Pick<
  ReceivedEvent,
  'endpoint' | 'eventId' | 'type' | 'sequence' | 'verified' | 'problem' | 'response'
>;

/**
 * Remembers the last `atMost` events by endpoint and event id, in memory. The event that was
 * received longest ago is dropped first.
 */
export class ReceivedEvents {
  readonly #events: BoundedMap<string, ReceivedEvent & { accepted: boolean }>;

  constructor(atMost = 200) {
    this.#events = new BoundedMap(atMost);
  }

  /** Returns the event as it is now; `duplicate` when it had been accepted before. */
  record(arrival: Arrival, at: Date): ReceivedEvent & { duplicate: boolean } {
    const key = `${arrival.endpoint}/${arrival.eventId}`;
    const known = this.#events.get(key);
    const duplicate = known?.accepted === true;
    const isAccepted = arrival.verified && typeof arrival.response === 'number' && arrival.response < 300;
    const event = {
      ...arrival,
      firstAt: known?.firstAt ?? at.toISOString(),
      lastAt: at.toISOString(),
      times: (known?.times ?? 0) + 1,
      duplicates: (known?.duplicates ?? 0) + (duplicate ? 1 : 0),
      accepted: duplicate || isAccepted,
    };
    this.#events.set(key, event);
    const { accepted: _, ...shown } = event;
    return { ...shown, duplicate };
  }

  /** Returns the events, latest first. */
  list(): ReceivedEvent[] {
    return [...this.#events.values()].reverse().map(({ accepted: _, ...event }) => event);
  }
}
