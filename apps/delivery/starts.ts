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
/** How long a claim without a reply counts among these: a start that hangs must not hold back others. */
const unansweredMs = 2_000;

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
  workerSlots: number;
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
export class Starts {
  readonly #options: StartsOptions;
  /** Runs of healthy webhooks that use a worker slot, and until when (`performance.now()`). */
  readonly #occupied = new Map<string, number>();
  /** Those whose attempts have not begun and may begin here, and until when they count. */
  readonly #pending = new Map<string, number>();
  /** Claims of degraded webhooks; the first is starting. */
  readonly #queued: Claim[] = [];
  readonly #starting = new Set<Promise<void>>();

  constructor(options: StartsOptions) {
    this.#options = options;
  }

  add(claim: Claim): void {
    const { isDegraded } = claim.delivery;
    if (isDegraded && this.#queued.push(claim) > 1) return;
    const started = (isDegraded ? this.#startQueued() : this.#startHealthy(claim)).finally(() =>
      this.#starting.delete(started),
    );
    this.#starting.add(started);
  }

  isBusy(): boolean {
    return this.#pending.size + this.#queued.length > 0;
  }

  /** Returns how many more deliveries of healthy and of degraded webhooks may be claimed. */
  free(): { healthy: number; degraded: number } {
    const now = performance.now();
    for (const [run, until] of this.#pending) if (until < now) this.#pending.delete(run);
    for (const [run, until] of this.#occupied) if (until < now) this.#end(run);
    const healthy = Math.min(
      claimable(this.#pending.size, pendingAtMost),
      this.#options.workerSlots - this.#occupied.size,
    );
    return { healthy: Math.max(0, healthy), degraded: claimable(this.#queued.length, degradedAtMost) };
  }

  /** Keeps a run's worker slot until its attempt ends. */
  attemptStarted(delivery: DeliveryRun): void {
    const run = formatRunName(delivery);
    if (this.#occupied.has(run)) this.#occupied.set(run, Number.POSITIVE_INFINITY);
    this.#endPending(run);
  }

  attemptEnded(delivery: DeliveryRun): void {
    this.#end(formatRunName(delivery));
  }

  /** Removes and returns what has not begun to start. */
  drop(): Claim[] {
    return this.#queued.splice(1);
  }

  /** Resolves when everything is started or dropped. */
  async drained(): Promise<void> {
    await Promise.all(this.#starting);
  }

  async #startHealthy(claim: Claim): Promise<void> {
    const run = formatRunName(claim.delivery);
    const reservedUntil = performance.now() + reservedMs;
    this.#occupied.set(run, reservedUntil);
    this.#pending.set(run, performance.now() + unansweredMs);
    const hasFirstTask = await this.#options.start(claim);
    // A run without its first task uses a worker slot until its attempt ends here, or its reservation.
    if (!hasFirstTask) this.#endPending(run);
    // Its task waits here for a processor, so more claims would expire beside it.
    else if (this.#occupied.get(run) === reservedUntil) this.#pending.set(run, reservedUntil);
  }

  async #startQueued(): Promise<void> {
    for (let claim = this.#queued[0]; claim !== undefined; claim = this.#queued[0]) {
      await this.#options.start(claim);
      await sleep(degradedRestMs);
      this.#queued.shift();
      if (2 * this.#queued.length === degradedAtMost) this.#options.onFree();
    }
  }

  #end(run: string): void {
    this.#occupied.delete(run);
    this.#endPending(run);
  }

  #endPending(run: string): void {
    if (this.#pending.delete(run) && 2 * this.#pending.size === pendingAtMost) this.#options.onFree();
  }
}
