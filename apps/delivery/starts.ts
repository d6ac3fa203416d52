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
 * Claims of healthy webhooks whose attempts have not begun here. A process begins about a hundred
 * attempts a second, and what it has claimed no other worker can begin: with 200, an event waited a
 * second behind a backlog of other organizations, with 32 a quarter of that, at the same rate.
 */
const pendingAtMost = 32;

/**
 * Deliveries of degraded webhooks start one by one, at most 20 a second: they become due together
 * when attempts time out together, and once spread out, they stay so.
 */
const degradedAtMost = 8;
const degradedRestMs = 50;

interface StartsOptions {
  /** Resolves whether the run's first task came with the reply, so that its attempt begins here. Never rejects. */
  start: (claim: Claim) => Promise<boolean>;
  /** First attempts of runs that this process makes at once for healthy webhooks. */
  slots: number;
  /** Called after no more could be claimed: when half of the attempts have begun, or the queue is empty. */
  onFree: () => void;
}

const nameOf = ({ webhookId, eventId, run }: DeliveryRun): string => `${webhookId}/${eventId}/${run}`;

/**
 * Starts the runs of claimed deliveries: those of healthy webhooks at once, those of degraded ones
 * in a queue, so others do not wait for their pauses.
 *
 * It takes only what this process can attempt soon: its first tasks arrive with the replies to its
 * starts, and would wait there while their claims expire.
 */
export function createStarts({ start, slots, onFree }: StartsOptions) {
  /** Runs of healthy webhooks whose attempts have not begun here, and until when they are reserved. */
  const pending = new Map<string, number>();
  /** Runs of healthy webhooks whose attempts are in progress here. */
  const begun = new Set<string>();
  /** Degraded ones; the first is starting. */
  const queued: Claim[] = [];
  const starting = new Set<Promise<void>>();
  let wasFull = false;
  let wasQueueFull = false;

  async function startHealthy(claim: Claim): Promise<void> {
    const name = nameOf(claim.delivery);
    pending.set(name, performance.now() + reservedMs);
    wasFull ||= pending.size >= pendingAtMost;
    if (!(await start(claim))) endPending(name);
  }

  function endPending(name: string): boolean {
    const wasPending = pending.delete(name);
    if (wasFull && 2 * pending.size <= pendingAtMost) {
      wasFull = false;
      onFree();
    }
    return wasPending;
  }

  async function startQueued(): Promise<void> {
    for (let claim = queued[0]; claim !== undefined; claim = queued[0]) {
      await start(claim);
      await sleep(degradedRestMs);
      queued.shift();
    }
    if (!wasQueueFull) return;
    wasQueueFull = false;
    onFree();
  }

  function track(start: Promise<void>): void {
    const tracked = start.finally(() => starting.delete(tracked));
    starting.add(tracked);
  }

  return {
    add(claim: Claim): void {
      if (!claim.delivery.isDegraded) track(startHealthy(claim));
      else if (queued.push(claim) === 1) track(startQueued());
      wasQueueFull ||= queued.length >= degradedAtMost;
    },
    isBusy: (): boolean => starting.size > 0,
    /** Returns how many more deliveries of healthy and of degraded webhooks may be claimed. */
    free() {
      const now = performance.now();
      for (const [run, until] of pending) if (until < now) pending.delete(run);
      const healthy = Math.min(pendingAtMost - pending.size, slots - pending.size - begun.size);
      return { healthy: Math.max(0, healthy), degraded: Math.max(0, degradedAtMost - queued.length) };
    },
    attemptStarted(run: DeliveryRun): void {
      if (endPending(nameOf(run))) begun.add(nameOf(run));
    },
    /** Returns whether it ended while every slot was taken. */
    attemptEnded(run: DeliveryRun): boolean {
      const isFull = pending.size + begun.size >= slots;
      return begun.delete(nameOf(run)) && isFull;
    },
    /** Removes and returns what has not begun to start. */
    drop: (): Claim[] => queued.splice(1),
    /** Resolves when everything is started or dropped. */
    drained: () => Promise.all(starting),
  };
}
