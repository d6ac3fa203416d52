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

/**
 * Claims of healthy webhooks whose attempts have not begun, which no other process can begin: with
 * 200, others' backlog kept a new event for a second, with 32 for a quarter of that at the same rate.
 */
const pendingAtMost = 32;
/** After how long a claim no longer counts among these: a start that hangs must not hold back others. */
const pendingMs = 2_000;

/**
 * Deliveries of degraded webhooks start one by one, at most 20 a second: they become due together
 * when attempts time out together, and once spread out, they stay so.
 */
const degradedAtMost = 8;
const degradedRestMs = 50;

/** How many more may be claimed: none until half of those before are gone, so that claims are of many. */
const claimable = (count: number, atMost: number): number => (2 * count > atMost ? 0 : atMost - count);

interface StartsOptions {
  /** Resolves whether the run's first task came with the reply, so that its attempt begins here. Never rejects. */
  start: (claim: Claim) => Promise<boolean>;
  /** First attempts of runs that this process makes at once for healthy webhooks. */
  slots: number;
  /** Called when half of the claims are gone, so that more may come; not when time has passed. */
  onFree: () => void;
}

const formatRunName = ({ webhookId, eventId, run }: DeliveryRun): string => `${webhookId}/${eventId}/${run}`;

/**
 * Starts the runs of claimed deliveries: those of healthy webhooks at once, those of degraded ones
 * in a queue, so others do not wait for their pauses.
 *
 * It allows claims of what this process can attempt soon: its first tasks arrive with the replies to its
 * starts, and would wait there while their claims expire.
 */
export function createStarts({ start, slots, onFree }: StartsOptions) {
  /** Runs of healthy webhooks that use a slot here, and until when (`performance.now()`). */
  const occupied = new Map<string, number>();
  /** Those whose attempts have not begun and may begin here, and until when they count. */
  const pending = new Map<string, number>();
  /** Claims of degraded webhooks; the first is starting. */
  const queued: Claim[] = [];
  const starting = new Set<Promise<void>>();

  async function startHealthy(claim: Claim): Promise<void> {
    const run = formatRunName(claim.delivery);
    occupied.set(run, performance.now() + reservedMs);
    pending.set(run, performance.now() + pendingMs);
    // A run without its first task uses a slot here until its attempt ends here, or its reservation.
    if (!(await start(claim))) endPending(run);
  }

  function endPending(run: string): void {
    if (pending.delete(run) && 2 * pending.size === pendingAtMost) onFree();
  }

  async function startQueued(): Promise<void> {
    for (let claim = queued[0]; claim !== undefined; claim = queued[0]) {
      await start(claim);
      await sleep(degradedRestMs);
      queued.shift();
      if (2 * queued.length === degradedAtMost) onFree();
    }
  }

  function end(run: string): void {
    occupied.delete(run);
    endPending(run);
  }

  return {
    add(claim: Claim): void {
      const { isDegraded } = claim.delivery;
      if (isDegraded && queued.push(claim) > 1) return;
      const started = (isDegraded ? startQueued() : startHealthy(claim)).finally(() => starting.delete(started));
      starting.add(started);
    },
    isBusy: (): boolean => pending.size + queued.length > 0,
    /** Returns how many more deliveries of healthy and of degraded webhooks may be claimed. */
    free() {
      const now = performance.now();
      for (const [run, until] of pending) if (until < now) pending.delete(run);
      for (const [run, until] of occupied) if (until < now) end(run);
      const healthy = Math.min(claimable(pending.size, pendingAtMost), slots - occupied.size);
      return { healthy: Math.max(0, healthy), degraded: claimable(queued.length, degradedAtMost) };
    },
    /** Keeps a run's slot until its attempt ends. */
    attemptStarted(delivery: DeliveryRun): void {
      const run = formatRunName(delivery);
      if (occupied.has(run)) occupied.set(run, Number.POSITIVE_INFINITY);
      endPending(run);
    },
    attemptEnded: (delivery: DeliveryRun): void => end(formatRunName(delivery)),
    /** Removes and returns what has not begun to start. */
    drop: (): Claim[] => queued.splice(1),
    /** Resolves when everything is started or dropped. */
    drained: () => Promise.all(starting),
  };
}
