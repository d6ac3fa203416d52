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
  /** Whether a later event of its seat or grant was accepted before it. A real receiver does not apply it. */
  late: boolean;
  /** Whether the last signature was valid, and if not, why. */
  verified: boolean;
  problem: string | null;
  /** The response to the last one: a status, `hang` or `reset`. */
  response: number | 'hang' | 'reset';
}

type Occurrence = NonNullable<Arrival['occurrence']>;

interface Position extends Pick<ReceivedEvent, 'endpoint' | 'eventId'> {
  sequence: number;
  createdAt: string;
}

/** One received request of an event. */
export type Arrival = Pick<
  ReceivedEvent,
  'endpoint' | 'eventId' | 'type' | 'sequence' | 'verified' | 'problem' | 'response'
> & {
  /** What it is about, and when it happened; null for a test event and what cannot be read. */
  occurrence: { subject: string; createdAt: string } | null;
};

/**
 * Remembers the last `atMost` events by endpoint and event id, in memory. The event that was
 * received longest ago is dropped first.
 */
export class ReceivedEvents {
  readonly #events: BoundedMap<string, ReceivedEvent & { accepted: boolean }>;
  readonly #latest: BoundedMap<string, Position>;

  constructor(atMost = 200) {
    this.#events = new BoundedMap(atMost);
    this.#latest = new BoundedMap(atMost);
  }

  /** Returns the event as it is now; `duplicate` when it had been accepted before. */
  record({ occurrence, ...arrival }: Arrival, at: Date): ReceivedEvent & { duplicate: boolean } {
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
      late: duplicate ? known.late : isAccepted && occurrence !== null && !this.#moveOn(arrival, occurrence),
      accepted: duplicate || isAccepted,
    };
    this.#events.set(key, event);
    const { accepted: _, ...shown } = event;
    return { ...shown, duplicate };
  }

  /** Makes an event the last one of its subject. Returns false when a later one is. */
  #moveOn({ endpoint, sequence, eventId }: Omit<Arrival, 'occurrence'>, occurrence: Occurrence): boolean {
    const position = { endpoint, sequence: sequence ?? 0, eventId, createdAt: occurrence.createdAt };
    const last = this.#latest.get(occurrence.subject);
    if (last !== undefined && !isLater(position, last)) return false;
    this.#latest.set(occurrence.subject, position);
    return true;
  }

  /** Returns the events, latest first. */
  list(): ReceivedEvent[] {
    return [...this.#events.values()].reverse().map(({ accepted: _, ...event }) => event);
  }
}

/**
 * Orders two events of one subject. Each endpoint counts for itself, so sequences of two say nothing about each other:
 * then the ids decide.
 */
function isLater(position: Position, last: Position): boolean {
  if (position.createdAt !== last.createdAt) return position.createdAt > last.createdAt;
  if (position.endpoint === last.endpoint && position.sequence !== last.sequence)
    return position.sequence > last.sequence;
  return position.eventId > last.eventId;
}
