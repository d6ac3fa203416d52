import { setTimeout as sleep } from 'node:timers/promises';
import type { DeliveryRun } from '#workflows/deliver-event/types.ts';
import type { ClaimedDelivery } from './sql/claim.ts';
import { reservedMs } from './times.ts';

/** A claimed delivery, and when its claim was requested and returned (Unix, ms). */
export interface Claim {
  delivery: ClaimedDelivery;
  requestedAtMs: number;
  claimedAtMs: number;
}

interface QueueLimits {
  /** How many start at once. */
  atOnce: number;
  /** The pause after each, in milliseconds. */
  restMs: number;
  /** The most deliveries in it, including those that are starting. */
  atMost: number;
}

/**
 * Deliveries of degraded webhooks start one by one, at most 20 a second: they become due together
 * when attempts time out together, and once spread out, they stay so.
 */
const limits = {
  healthy: { atOnce: 16, restMs: 0, atMost: 64 },
  degraded: { atOnce: 1, restMs: 50, atMost: 8 },
} satisfies Record<string, QueueLimits>;

interface StartsOptions {
  /** Never rejects. */
  start: (claim: Claim) => Promise<void>;
  /** First attempts of runs that this process makes at once for healthy webhooks. */
  slots: number;
  /** Called when a queue that was full is half empty. */
  onFree: () => void;
}

const nameOf = ({ webhookId, eventId, run }: DeliveryRun): string => `${webhookId}/${eventId}/${run}`;

/**
 * Starts the runs of claimed deliveries, a bounded number at once; degraded webhooks have a queue
 * of their own, so others do not wait for their pauses.
 *
 * It queues only what this process can attempt at once: its first tasks arrive with the
 * replies to its starts, and without a free slot they would wait there while their claims expire.
 * A claim that is older than its reservation is not started: the delivery may have a newer one.
 */
export function createStarts({ start, slots, onFree }: StartsOptions) {
  const healthy = createQueue(limits.healthy, { start, onFree });
  const degraded = createQueue(limits.degraded, { start, onFree });
  /** Runs of healthy webhooks that take a slot here, and until when (`performance.now()`). */
  const occupied = new Map<string, number>();

  function freeSlots(): number {
    const now = performance.now();
    for (const [run, until] of occupied) if (until < now) occupied.delete(run);
    return slots - occupied.size;
  }

  return {
    add(claim: Claim): void {
      if (!claim.delivery.isDegraded) occupied.set(nameOf(claim.delivery), performance.now() + reservedMs);
      (claim.delivery.isDegraded ? degraded : healthy).add(claim);
    },
    isBusy: (): boolean => healthy.isBusy() || degraded.isBusy(),
    /** Returns how many more deliveries of healthy and of degraded webhooks may be claimed. */
    free: () => ({ healthy: Math.max(0, Math.min(healthy.free(), freeSlots())), degraded: degraded.free() }),
    /** Keeps a run's slot until its attempt ends. */
    attemptStarted(run: DeliveryRun): void {
      if (occupied.has(nameOf(run))) occupied.set(nameOf(run), Number.POSITIVE_INFINITY);
    },
    attemptEnded: (run: DeliveryRun): void => void occupied.delete(nameOf(run)),
    /** Removes and returns what has not started. */
    drop: (): Claim[] => [...healthy.drop(), ...degraded.drop()],
    /** Resolves when everything is started or dropped. */
    drained: () => Promise.all([healthy.drained(), degraded.drained()]),
  };
}

function createQueue({ atOnce, restMs, atMost }: QueueLimits, { start, onFree }: Omit<StartsOptions, 'slots'>) {
  const queued: Claim[] = [];
  const starting = new Set<Promise<void>>();
  let wasFull = false;

  async function startAndRest(claim: Claim): Promise<void> {
    await start(claim);
    if (restMs > 0) await sleep(restMs);
  }

  function fill(): void {
    while (starting.size < atOnce && queued.length > 0) {
      const claim = queued.shift() as Claim;
      if (Date.now() - claim.requestedAtMs > reservedMs) continue;
      const started = startAndRest(claim).then(() => {
        starting.delete(started);
        fill();
        if (!wasFull || 2 * (queued.length + starting.size) > atMost) return;
        wasFull = false;
        onFree();
      });
      starting.add(started);
    }
  }

  return {
    add(claim: Claim): void {
      queued.push(claim);
      fill();
      wasFull ||= queued.length + starting.size >= atMost;
    },
    free: () => Math.max(0, atMost - queued.length - starting.size),
    isBusy: () => starting.size > 0,
    drop: () => queued.splice(0),
    drained: () => Promise.all(starting),
  };
}
