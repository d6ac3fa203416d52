import type { ClaimedDelivery, ClaimTimes } from './relay.ts';

/** A delivery that waits for its start. */
export interface HeldDelivery {
  delivery: ClaimedDelivery;
  times: ClaimTimes;
}

/**
 * Starts under way at once, and the rest after each in milliseconds. Those of failing webhooks go one by one, at most 20 a second: they come together when attempts have run into
 * their time limit together, what Temporal and this process do for those is what the others' would wait for, and apart they stay when they run into the next one.
 */
const paces = { prompt: { atOnce: 16, restMs: 0 }, slow: { atOnce: 1, restMs: 50 } } as const;

/**
 * Starts what was claimed: so many at once, the webhooks in turn, and those that are failing in a lane of their own. So a delivery waits for the starts under way and one of each other
 * webhook, and never for all that was claimed before it.
 *
 * @param start never rejects.
 */
export function createStartLanes(start: (held: HeldDelivery) => Promise<void>) {
  const prompt = createLane(paces.prompt, start);
  const slow = createLane(paces.slow, start);
  return {
    add: (held: HeldDelivery): void => (held.delivery.slow ? slow : prompt).add(held),
    /** Forgets what is not under way, and returns it. Its leases end, and somebody claims it again. */
    drop: (): HeldDelivery[] => [...prompt.drop(), ...slow.drop()],
    /** Resolves when all is started, or dropped. */
    async drained(): Promise<void> {
      await Promise.all([prompt.drained(), slow.drained()]);
    },
  };
}

function createLane(
  { atOnce, restMs }: { atOnce: number; restMs: number },
  start: (held: HeldDelivery) => Promise<void>,
) {
  /** By webhook, the one whose turn it is first. None is empty. */
  const queued = new Map<string, HeldDelivery[]>();
  let underWay = 0;
  let waiters: (() => void)[] = [];

  function takeNext(): HeldDelivery | undefined {
    const [turn] = queued;
    if (turn === undefined) return undefined;
    const [webhookId, [held, ...others]] = turn;
    queued.delete(webhookId);
    if (others.length > 0) queued.set(webhookId, others);
    return held;
  }

  async function startAndRest(held: HeldDelivery): Promise<void> {
    await start(held);
    if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs));
  }

  function fill(): void {
    while (underWay < atOnce) {
      const held = takeNext();
      if (held === undefined) break;
      underWay += 1;
      void startAndRest(held).then(() => {
        underWay -= 1;
        fill();
      });
    }
    if (underWay > 0) return;
    for (const resolve of waiters) resolve();
    waiters = [];
  }

  return {
    add(held: HeldDelivery): void {
      const { webhookId, eventId, round } = held.delivery;
      const others = queued.get(webhookId) ?? [];
      // Claimed a second time, because it has been queued for longer than its lease.
      if (others.some(({ delivery }) => delivery.eventId === eventId && delivery.round === round)) return;
      queued.set(webhookId, [...others, held]);
      fill();
    },
    drop(): HeldDelivery[] {
      const dropped = [...queued.values()].flat();
      queued.clear();
      return dropped;
    },
    drained: () => (underWay === 0 ? Promise.resolve() : new Promise<void>((resolve) => waiters.push(resolve))),
  };
}
