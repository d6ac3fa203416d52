import type { ClaimedDelivery, ClaimTimes } from './relay.ts';

/** A delivery that waits for its start. */
export interface HeldDelivery {
  delivery: ClaimedDelivery;
  times: ClaimTimes;
}

/** How many more deliveries may be claimed, of prompt and of slow webhooks. */
export interface Room {
  prompt: number;
  slow: number;
}

interface Pace {
  /** Starts under way at once. */
  atOnce: number;
  /** The rest after each, in milliseconds. */
  restMs: number;
  /** Deliveries held at most, those under way included. */
  atMost: number;
}

/**
 * Deliveries of slow webhooks go one by one, at most 20 a second: they come together when attempts
 * have run into their time limit together, what Temporal and this process do for those is what the
 * others' would wait for, and apart they stay when they run into the next one.
 */
const paces: { prompt: Pace; slow: Pace } = {
  prompt: { atOnce: 16, restMs: 0, atMost: 64 },
  slow: { atOnce: 1, restMs: 50, atMost: 8 },
};

/** How much the last start says about the next ones, beside those before it. */
const lastStartWeight = 0.2;
/** What a start is expected to take before one was made, in milliseconds. */
const expectedStartMs = 50;

export interface StartLanesOptions {
  /** Never rejects. */
  start: (held: HeldDelivery) => Promise<void>;
  /** How long a claim holds, in milliseconds. */
  leaseMs: number;
  /** Called after a start when a lane that was full has room for half of what it may hold. */
  onRoom: () => void;
}

/**
 * Starts what was claimed: so many at once, the webhooks in turn, and those that are slow in a lane
 * of their own. So a delivery waits for the starts under way and one of each other webhook, and
 * never for all that was claimed before it.
 *
 * A lane has room for no more than it can start in half of a lease, going by how long starts have
 * taken lately. One that is held past its lease all the same is not started: any relay may have
 * claimed it meanwhile.
 */
export function createStartLanes(options: StartLanesOptions) {
  const prompt = createLane(paces.prompt, options);
  const slow = createLane(paces.slow, options);
  return {
    add: (held: HeldDelivery): void => (held.delivery.slow ? slow : prompt).add(held),
    isBusy: (): boolean => prompt.isBusy() || slow.isBusy(),
    room: (): Room => ({ prompt: prompt.room(), slow: slow.room() }),
    /** Forgets what is not under way, and returns it. */
    drop: (): HeldDelivery[] => [...prompt.drop(), ...slow.drop()],
    /** Resolves when all is started, or dropped. */
    async drained(): Promise<void> {
      await Promise.all([prompt.drained(), slow.drained()]);
    },
  };
}

function createLane({ atOnce, restMs, atMost }: Pace, { start, leaseMs, onRoom }: StartLanesOptions) {
  /** By webhook, the one whose turn it is first. None is empty. */
  const queued = new Map<string, HeldDelivery[]>();
  let queuedCount = 0;
  let underWay = 0;
  let startMs = expectedStartMs;
  let wasFull = false;
  let waiters: (() => void)[] = [];

  function takeNext(): HeldDelivery | undefined {
    const [turn] = queued;
    if (turn === undefined) return undefined;
    const [webhookId, [held, ...others]] = turn;
    queuedCount -= 1;
    queued.delete(webhookId);
    if (others.length > 0) queued.set(webhookId, others);
    return held;
  }

  async function startAndRest(held: HeldDelivery): Promise<void> {
    const begunAt = performance.now();
    await start(held);
    startMs += lastStartWeight * (performance.now() - begunAt - startMs);
    if (restMs > 0) await new Promise((resolve) => setTimeout(resolve, restMs));
  }

  function capacity(): number {
    const inTime = Math.floor((atOnce * leaseMs) / 2 / (startMs + restMs));
    return Math.max(1, Math.min(atMost, inTime));
  }

  function room(): number {
    const free = Math.max(0, capacity() - queuedCount - underWay);
    wasFull = free === 0;
    return free;
  }

  function fill(): void {
    while (underWay < atOnce) {
      const held = takeNext();
      if (held === undefined) break;
      if (Date.now() - held.times.askedAtMs > leaseMs) continue;
      underWay += 1;
      void startAndRest(held).then(() => {
        underWay -= 1;
        fill();
        if (wasFull && 2 * (queuedCount + underWay) <= capacity()) {
          wasFull = false;
          onRoom();
        }
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
      queuedCount += 1;
      fill();
    },
    room,
    isBusy: () => underWay > 0,
    drop(): HeldDelivery[] {
      const dropped = [...queued.values()].flat();
      queued.clear();
      queuedCount = 0;
      return dropped;
    },
    drained: () => (underWay === 0 ? Promise.resolve() : new Promise<void>((resolve) => waiters.push(resolve))),
  };
}
