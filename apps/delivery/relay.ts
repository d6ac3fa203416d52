import type { Pool } from 'pg';
import type { DeliveryRun } from '#workflows/deliver-event/types.ts';
import { Poll } from './poll.ts';
import { listedAtOnce, Scan } from './scan.ts';
import {
  type ClaimedDelivery,
  claimDeliveriesSql,
  listQueuedSql,
  type QueuedWebhook,
  returnClaimsSql,
} from './sql/claim.ts';
import { type Claim, Starts } from './starts.ts';
import { reservedMs } from './times.ts';

interface RelayOptions {
  pool: Pool;
  /** Starts a delivery's run, and ends an older one. Resolves whether its first task came with the reply. */
  startRun: (delivery: ClaimedDelivery) => Promise<boolean>;
  /** Returns whether Temporal does not answer, and not only this start failed. */
  isUnavailable?: (cause: unknown) => boolean;
  /** First attempts of runs that this process makes at once for healthy webhooks. */
  workerSlots: number;
  /** How often (ms) it claims for concurrency slots that other workers free. */
  claimEveryMs?: number;
  onClaimed?: (deliveries: number) => void;
  /** Called for each delivery whose run has started; Unix, ms. */
  onStarted?: (claim: Claim, startedAtMs: number) => void;
  /** Called with the first error of a series of failures. */
  onError: (cause: unknown) => void;
}

/** The wait between tries while Temporal or PostgreSQL is unavailable. */
const retryEveryMs = 250;

/**
 * Claims due deliveries and starts a run for each that has a concurrency slot. Claiming does not
 * wait for starting, which takes tens of milliseconds, and no transaction is open meanwhile.
 *
 * It finds work by polling an index (`poll.ts`), and is woken when an attempt of this worker ends.
 * NOTIFY would be faster by milliseconds, but it takes a cluster-wide lock until the writer's
 * commit is durable, so commits of the platform could not share a flush.
 */
export class Relay {
  readonly #options: Required<RelayOptions>;
  readonly #poll = new Poll({ poll: () => this.#claimNext(), retryEveryMs });
  readonly #starts: Starts;
  readonly #scan: Scan;
  readonly #deleted = new Set<string>();
  #isTemporalUnavailable = false;
  #failedAt = Number.NEGATIVE_INFINITY;
  #isFailing = false;

  constructor(options: RelayOptions) {
    this.#options = { isUnavailable: () => false, claimEveryMs: 500, onClaimed() {}, onStarted() {}, ...options };
    this.#starts = new Starts({
      start: (claim) => this.#start(claim),
      workerSlots: options.workerSlots,
      onFree: this.wake,
    });
    this.#scan = new Scan({ retryAllEveryMs: this.#options.claimEveryMs });
  }

  readonly start = (): void => this.#poll.start();
  /** Claims at once: deliveries of this organization, or of all, may have a slot. */
  readonly wake = (organizationId: string | null = null): void => {
    this.#scan.retry(organizationId);
    this.#poll.wake();
  };
  readonly attemptStarted = (run: DeliveryRun): void => this.#starts.attemptStarted(run);

  /** Claims at once for its organization. */
  attemptEnded(run: DeliveryRun): void {
    this.#starts.attemptEnded(run);
    this.wake(run.organizationId);
  }

  /** Returns the deleted webhooks that had queued deliveries since the last call. */
  drainDeleted(): string[] {
    const ids = [...this.#deleted];
    this.#deleted.clear();
    return ids;
  }

  /**
   * Stops claiming, returns claims that have not started, and waits for the others. Can be called
   * twice, and before `start`.
   */
  async stop(): Promise<void> {
    await this.#poll.stop();
    await Promise.all([this.#returnClaims(this.#starts.drop()), this.#starts.drained()]);
  }

  /** Claims once for what waits, except for saturated webhooks. Returns whether it claimed any delivery. */
  async #claimNext(): Promise<boolean> {
    try {
      // Degraded ones wait, too: a claim would pass the page without a worker slot for its healthy ones.
      if (this.#starts.free().healthy === 0) return false;
      const isResting = performance.now() - this.#failedAt < retryEveryMs;
      if (this.#isTemporalUnavailable && (this.#starts.isBusy() || isResting)) return false;
      const after = this.#scan.next();
      const values = [after.organizationId, after.webhookId, listedAtOnce];
      const query = { name: 'listQueued', text: listQueuedSql, values };
      const { rows: listed } = await this.#options.pool.query<QueuedWebhook>(query);
      for (const { webhookId, state } of listed) if (state === 'deleted') this.#deleted.add(webhookId);
      this.#isFailing = this.#isTemporalUnavailable;
      const selected = this.#scan.select(listed);
      return selected.length > 0 && (await this.#claim(selected)) > 0;
    } catch (cause) {
      this.#fail(cause);
      throw cause;
    }
  }

  /** Claims deliveries of these webhooks. Returns how many. */
  async #claim(webhooks: QueuedWebhook[]): Promise<number> {
    const { healthy, degraded } = this.#starts.free();
    // One of each shows whether Temporal is back.
    const atMost = this.#isTemporalUnavailable ? 1 : Number.POSITIVE_INFINITY;
    const requestedAtMs = Date.now();
    const bounds = [Math.min(healthy, atMost), Math.min(degraded, atMost), reservedMs / 1_000];
    const values = [...listColumns(webhooks, ['organizationId', 'webhookId']), ...bounds];
    const query = { name: 'claimDeliveries', text: claimDeliveriesSql, values };
    const { rows } = await this.#options.pool.query<ClaimedDelivery>(query);
    const isAtLimit = rows.filter(({ isDegraded }) => !isDegraded).length === bounds[0];
    this.#scan.note(webhooks, rows, isAtLimit);
    if (rows.length > 0) this.#options.onClaimed(rows.length);
    const claimedAtMs = Date.now();
    for (const delivery of rows) this.#starts.add({ delivery, requestedAtMs, claimedAtMs });
    return rows.length;
  }

  /** Returns whether the run's first task came with the reply. */
  async #start(claim: Claim): Promise<boolean> {
    // The delivery may have a newer run, which a late start would end.
    if (Date.now() - claim.requestedAtMs > reservedMs) return false;
    let hasFirstTask: boolean;
    try {
      hasFirstTask = await this.#options.startRun(claim.delivery);
    } catch (cause) {
      this.#fail(cause);
      // Only this delivery: it is claimed again after its reservation.
      if (!this.#options.isUnavailable(cause)) return false;
      this.#isTemporalUnavailable = true;
      this.#failedAt = performance.now();
      await this.#returnClaims([claim, ...this.#starts.drop()]); // the others would only wait for Temporal too
      return false;
    }
    if (this.#isTemporalUnavailable) {
      this.#isTemporalUnavailable = false;
      this.wake();
    }
    this.#options.onStarted(claim, Date.now());
    return hasFirstTask;
  }

  /** Returns claims, so that no delivery has to wait until its reservation ends. */
  async #returnClaims(claims: Claim[]): Promise<void> {
    const deliveries = claims.map(({ delivery }) => delivery);
    for (const delivery of deliveries) this.#starts.attemptEnded(delivery);
    if (claims.length === 0) return;
    const columns = listColumns(deliveries, ['organizationId', 'webhookId', 'eventId', 'run']);
    await this.#options.pool.query(returnClaimsSql, columns).catch((cause) => this.#fail(cause));
  }

  #fail(cause: unknown): void {
    if (!this.#isFailing) this.#options.onError(cause);
    this.#isFailing = true;
  }
}

const listColumns = <Row>(rows: readonly Row[], names: readonly (keyof Row)[]): unknown[][] =>
  names.map((name) => rows.map((row) => row[name]));
