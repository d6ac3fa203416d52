import type { Pool } from 'pg';
import { createPoll } from './poll.ts';
import { createScan } from './scan.ts';
import {
  type ClaimedDelivery,
  claimDeliveriesSql,
  listQueuedSql,
  type QueuedWebhook,
  returnClaimsSql,
} from './sql/claim.ts';
import { type Claim, createStarts } from './starts.ts';
import { reservedMs } from './times.ts';

interface RelayOptions {
  pool: Pool;
  /** Starts a delivery's run, and ends an older one that still runs. */
  startRun: (delivery: ClaimedDelivery) => Promise<void>;
  /** Returns whether Temporal does not answer, and not only this start failed. */
  isAway?: (cause: unknown) => boolean;
  /** First attempts of healthy webhooks that this process makes at once. */
  slots: number;
  /** How often it claims for slots that other workers free. */
  claimEveryMs?: number;
  onClaimed?: (deliveries: number) => void;
  /** Called for each delivery whose run has started; Unix, ms. */
  onStarted?: (claim: Claim, startedAtMs: number) => void;
  /** Called with the first error of a series of failures. */
  onError: (cause: unknown) => void;
}

/** The wait between tries while Temporal or PostgreSQL is away. */
const retryEveryMs = 250;

/**
 * Claims due deliveries and starts a run for each that has a concurrency slot. Claiming does not
 * wait for starting, which takes tens of milliseconds, and no transaction is open meanwhile.
 *
 * It finds work by polling an index (`poll.ts`), and is woken when an attempt of this worker ends.
 * NOTIFY would be faster by milliseconds, but it takes a cluster-wide lock until the writer's
 * commit is durable, so commits of the platform could not share a flush.
 */
export function createRelay(options: RelayOptions) {
  const { pool, startRun, isAway = () => false, slots, claimEveryMs = 500, onError } = options;
  const { onClaimed = () => {}, onStarted = () => {} } = options;
  const poll = createPoll({ poll: claimNext, retryEveryMs });
  const starts = createStarts({ start, slots, onFree: poll.wake });
  const scan = createScan({ fullEveryMs: claimEveryMs });
  const deleted = new Set<string>();
  let temporalIsAway = false;
  let failedAt = Number.NEGATIVE_INFINITY;
  let isFailing = false;

  /**
   * Claims for webhooks with new work and, when an attempt has ended (`isWoken`) and every
   * `claimEveryMs`, for saturated ones. Returns whether it claimed any delivery.
   */
  async function claimNext(isWoken: boolean): Promise<boolean> {
    try {
      if (temporalIsAway && (starts.isBusy() || performance.now() - failedAt < retryEveryMs)) return false;
      const step = scan.next(isWoken);
      const values = [step.after.organizationId, step.after.webhookId, step.atMost];
      const { rows: listed } = await pool.query<QueuedWebhook>({ name: 'listQueued', text: listQueuedSql, values });
      for (const { webhookId, state } of listed) if (state === 'deleted') deleted.add(webhookId);
      isFailing = temporalIsAway;
      const covered = scan.select(step, listed);
      const claimed = covered.length > 0 ? await claim(covered) : 0;
      if (claimed === null) return false;
      scan.advance(step, listed, covered);
      return claimed > 0;
    } catch (cause) {
      fail(cause);
      throw cause;
    }
  }

  /**
   * Claims deliveries of these webhooks. Returns how many, or null when this process has no free capacity. */
  async function claim(webhooks: QueuedWebhook[]): Promise<number | null> {
    const { healthy, degraded } = starts.free();
    if (healthy === 0 && degraded === 0) return null;
    const atMost = temporalIsAway ? 1 : Number.POSITIVE_INFINITY; // one shows whether Temporal is back
    const requestedAtMs = Date.now();
    const degradedLimit = temporalIsAway && healthy > 0 ? 0 : degraded;
    const bounds = [Math.min(healthy, atMost), Math.min(degradedLimit, atMost), reservedMs / 1_000];
    const values = [...columnsOf(webhooks, ['organizationId', 'webhookId']), ...bounds];
    const { rows } = await pool.query<ClaimedDelivery>({ name: 'claimDeliveries', text: claimDeliveriesSql, values });
    scan.note(webhooks, rows);
    if (rows.length === 0) return 0;
    onClaimed(rows.length);
    const claimedAtMs = Date.now();
    for (const delivery of rows) starts.add({ delivery, requestedAtMs, claimedAtMs });
    starts.free(); // notes which queues are full, so that they report when they are half empty
    return rows.length;
  }

  async function start(claim: Claim): Promise<void> {
    try {
      await startRun(claim.delivery);
    } catch (cause) {
      fail(cause);
      if (!isAway(cause)) return; // only this delivery failed: it is claimed again after its reservation
      temporalIsAway = true;
      failedAt = performance.now();
      await returnClaims([claim, ...starts.drop()]); // the others would only wait for Temporal too
      return;
    }
    if (temporalIsAway) {
      temporalIsAway = false;
      poll.wake();
    }
    onStarted(claim, Date.now());
  }

  /** Returns claims, so that no delivery has to wait until its reservation ends. */
  async function returnClaims(claims: Claim[]): Promise<void> {
    const deliveries = claims.map(({ delivery }) => delivery);
    for (const delivery of deliveries) starts.attemptEnded(delivery);
    if (claims.length === 0) return;
    const columns = columnsOf(deliveries, ['organizationId', 'webhookId', 'eventId', 'run']);
    await pool.query(returnClaimsSql, columns).catch(fail);
  }

  function fail(cause: unknown): void {
    if (!isFailing) onError(cause);
    isFailing = true;
  }

  return {
    start: poll.start,
    /** Claims at once: an attempt ended, or a delivery became due. */
    wake: poll.wake,
    attemptStarted: starts.attemptStarted,
    attemptEnded(run: Parameters<typeof starts.attemptEnded>[0]): void {
      starts.attemptEnded(run);
      poll.wake();
    },
    /** Returns the deleted webhooks that had queued deliveries since the last call. */
    drainDeleted(): string[] {
      const ids = [...deleted];
      deleted.clear();
      return ids;
    },
    /**
     * Stops claiming, returns claims that have not started, and waits for the others. Can be called
     * twice, and before `start`.
     */
    async stop(): Promise<void> {
      await poll.stop();
      await Promise.all([returnClaims(starts.drop()), starts.drained()]);
    },
  };
}

/** Returns an array of values for each name. */
const columnsOf = <Row>(rows: readonly Row[], names: readonly (keyof Row)[]): unknown[][] =>
  names.map((name) => rows.map((row) => row[name]));
