import type { ClaimedDelivery, ClaimTimes } from './claimed-delivery.ts';

/** A delivery that waits for its start. */
export interface HeldDelivery {
  delivery: ClaimedDelivery;
  times: ClaimTimes;
}

interface QueueLimits {
  /** How many start at once. */
  atOnce: number;
  /** The pause after each, in milliseconds. */
  restMs: number;
  /** The most deliveries held, including those that are starting. */
  atMost: number;
}

/**
 * Deliveries of slow webhooks start one by one, at most 20 a second: they become due together when
 * attempts time out together, and once spread out, they stay so.
 */
const limits = {
  prompt: { atOnce: 16, restMs: 0, atMost: 64 },
  slow: { atOnce: 1, restMs: 50, atMost: 8 },
} satisfies Record<string, QueueLimits>;

/** The weight of the last start in the expected duration. */
const lastStartWeight = 0.2;
/** The expected duration of a start before the first one, in milliseconds. */
const expectedStartMs = 50;

interface StartQueueOptions {
  /** Never rejects. */
  start: (held: HeldDelivery) => Promise<void>;
  leaseMs: number;
  /** Called after a start when a queue that was full has room for half of its limit. */
  onRoom: () => void;
}

/**
 * Starts claimed deliveries, a bounded number at once. Webhooks alternate, and slow ones have a
 * separate queue, so a delivery waits for the starts in progress and one of each other webhook
 * only.
 *
 * A queue has room for what it can start in half of a lease, by the duration of the latest starts.
 * A delivery that is held past its lease is not started: another relay may have claimed it.
 */
export function createStartQueue(options: StartQueueOptions) {
  const prompt = createQueue(limits.prompt, options);
  const slow = createQueue(limits.slow, options);
  return {
    add: (held: HeldDelivery): void => (held.delivery.slow ? slow : prompt).add(held),
    isBusy: (): boolean => prompt.isBusy() || slow.isBusy(),
    /** Returns how many more deliveries of prompt and of slow webhooks may be claimed. */
    room: () => ({ prompt: prompt.room(), slow: slow.room() }),
    /** Removes and returns what has not started. */
    drop: (): HeldDelivery[] => [...prompt.drop(), ...slow.drop()],
    /** Resolves when everything is started or dropped. */
    async drained(): Promise<void> {
      await Promise.all([prompt.drained(), slow.drained()]);
    },
  };
}

function createQueue({ atOnce, restMs, atMost }: QueueLimits, { start, leaseMs, onRoom }: StartQueueOptions) {
  /** By webhook; the next one to start comes first. No list is empty. */
  const queued = new Map<string, HeldDelivery[]>();
  let queuedCount = 0;
  let underWay = 0;
  let startMs = expectedStartMs;
  let wasFull = false;
  let waiters: (() => void)[] = [];

  function takeNext(): HeldDelivery | undefined {
    const [next] = queued;
    if (next === undefined) return undefined;
    const [webhookId, [held, ...others]] = next;
    queuedCount -= 1;
    queued.delete(webhookId);
    if (others.length > 0) queued.set(webhookId, others);
    return held;
  }

  async function startAndPause(held: HeldDelivery): Promise<void> {
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
      void startAndPause(held).then(() => {
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
      // Claimed a second time, because it was queued for longer than its lease.
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
