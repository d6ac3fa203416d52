import { randomUUID } from 'node:crypto';

/** One event by one of two webhooks of an organization, which number it apart. */
export interface Delivery {
  event: { id: string; type: string; createdAt: string; data: Record<string, string> };
  endpoint: string;
  sequence: number;
}

/**
 * Invents events of grants with two seats each, one after the other. Of every fifth grant all happen within one
 * millisecond. Returns them once per webhook, with numbers that mostly contradict what happened, the ids of the events,
 * and the last state of each seat and grant.
 */
export function inventEvents(grants: number): {
  deliveries: Delivery[];
  eventIds: string[];
  states: Map<string, string>;
} {
  const events: Delivery['event'][] = [];
  const states = new Map<string, string>();
  let clockMs = Date.parse('2026-01-01T00:00:00.000Z');
  for (let grant = 0; grant < grants; grant += 1) {
    const grantId = randomUUID();
    const [first, second] = [randomUUID(), randomUUID()];
    const steps: [type: string, data: Record<string, string>][] = [
      ['client.started', { grantId }],
      ['seat.given', { grantId, seatId: first }],
      ['seat.ended', { grantId, seatId: first }],
      ['seat.given', { grantId, seatId: second }],
      ...(grant % 2 === 0 ? [['client.ended', { grantId }] as [string, Record<string, string>]] : []),
      ...(grant % 3 === 0 ? [['seat.ended', { grantId, seatId: second }] as [string, Record<string, string>]] : []),
    ];
    clockMs += 1;
    for (const [type, data] of steps) {
      if (grant % 5 !== 0) clockMs += 1;
      // Ascending, as the service's ids of one subject are.
      const id = `${events.length.toString(16).padStart(8, '0')}${randomUUID().slice(8)}`;
      events.push({ id, type, createdAt: new Date(clockMs).toISOString(), data });
      states.set(data.seatId ?? grantId, type.endsWith('.ended') ? 'ended' : 'active');
    }
  }
  const deliveries = [randomUUID(), randomUUID()].flatMap((endpoint) => number(events, endpoint));
  return { deliveries, eventIds: events.map(({ id }) => id), states };
}

/** Numbers the events of a webhook in any order, but those of one subject within a millisecond in theirs. */
function number(events: readonly Delivery['event'][], endpoint: string): Delivery[] {
  const numbers = shuffle(events.map((_, index) => index + 1));
  const bySubject = Map.groupBy(events.keys(), (index) => {
    const { createdAt, data } = events[index] as Delivery['event'];
    return `${createdAt} ${data.seatId ?? data.grantId}`;
  });
  for (const indexes of bySubject.values()) {
    const sorted = indexes.map((index) => numbers[index] ?? 0).sort((a, b) => a - b);
    for (const [place, index] of indexes.entries()) numbers[index] = sorted[place] ?? 0;
  }
  return events.map((event, index) => ({ event, endpoint, sequence: numbers[index] ?? 0 }));
}

/** Returns a copy in a random order. */
export function shuffle<Item>(items: readonly Item[]): Item[] {
  const shuffled = [...items];
  for (let index = shuffled.length - 1; index > 0; index -= 1) {
    const other = Math.floor(Math.random() * (index + 1));
    [shuffled[index], shuffled[other]] = [shuffled[other] as Item, shuffled[index] as Item];
  }
  return shuffled;
}
