import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from 'pg';
import {
  claimDeliveriesSql,
  listUnclaimedSql,
  recordStartedSql,
  releaseClaimsSql,
} from '#domain/db/statements/claim-deliveries.ts';
import type { ClaimedDelivery, ClaimTimes } from './claimed-delivery.ts';
import { createPoll } from './poll.ts';
import { createStartQueue, type HeldDelivery } from './start-queue.ts';
import { createTurns, type WaitingWebhook } from './turns.ts';

/** One row of a claim. */
interface ClaimRow extends ClaimedDelivery {
  /** Whether its webhook has no slot left after this claim, until an attempt ends. */
  isFull: boolean;
}

/** Unix times in ms of a delivery's steps from the table to a running workflow. */
export interface StartTimes extends ClaimTimes {
  startedAtMs: number;
}

interface RelayOptions {
  pool: Pool;
  /** Starts a delivery's workflow. Resolves also when it already runs. */
  startWorkflow: (delivery: ClaimedDelivery) => Promise<void>;
  /** Returns whether Temporal does not answer, and not only this start failed. */
  isAway?: (cause: unknown) => boolean;
  /** How often it claims for expired leases, and slots that other workers free. */
  claimEveryMs?: number;
  leaseSeconds?: number;
  onClaimed?: (deliveries: number) => void;
  /** Called for each delivery whose workflow has started. */
  onStarted?: (delivery: ClaimedDelivery, times: StartTimes) => void;
  /** Called with the first error of a series of failures. */
  onError: (cause: unknown) => void;
}

/** The wait between tries while Temporal or PostgreSQL is away. */
const retryEveryMs = 250;
/** How long a started workflow has to admit its first attempt, which records the start as well. */
const recordAfterMs = 500;
const recordAfterShare = 0.1;

/**
 * Claims due deliveries and starts a workflow for each that has a concurrency slot.
 *
 * It finds work by polling an index (`poll.ts`), and is woken when an attempt of this worker ends.
 * NOTIFY would be faster by milliseconds, but it takes a cluster-wide lock until the writer's
 * commit is durable, so commits of the platform could not share a flush.
 *
 * No transaction is open during a call to Temporal: a claim is a lease. When this process dies, its
 * deliveries are claimed again after the lease, under the same workflow id.
 *
 * Claiming does not wait for starting, which takes tens of milliseconds.
 */
export function createRelay(options: RelayOptions) {
  const { pool, startWorkflow, isAway = () => false, onError } = options;
  const { onClaimed = () => {}, onStarted = () => {} } = options;
  const { claimEveryMs = 500, leaseSeconds = 5 } = options;
  const poll = createPoll({ look, retryEveryMs });
  const queue = createStartQueue({ start, leaseMs: leaseSeconds * 1_000, onRoom: poll.wake });
  const turns = createTurns({ sweepEveryMs: claimEveryMs });
  let temporalIsAway = false;
  let failedAt = Number.NEGATIVE_INFINITY;
  let isFailing = false;
  const recordAfter = Math.min(recordAfterMs, recordAfterShare * leaseSeconds * 1_000);
  const started: ClaimedDelivery[] = [];
  let recording: Promise<void> | null = null;
  let stopped = true;
  let stopping = new AbortController();

  /**
   * Claims for webhooks with new work and, when an attempt has ended (`isWoken`) and every
   * `claimEveryMs`, for those that are held up. Returns whether it claimed any delivery.
   */
  async function look(isWoken: boolean): Promise<boolean> {
    try {
      if (temporalIsAway && (queue.isBusy() || performance.now() - failedAt < retryEveryMs)) return false;
      const turn = turns.next(isWoken);
      const values = [turn.after.organizationId, turn.after.webhookId, turn.atMost, turn.isSweep];
      const query = { name: 'listUnclaimed', text: listUnclaimedSql, values };
      const { rows: listed } = await pool.query<WaitingWebhook>(query);
      isFailing = temporalIsAway;
      const covered = turns.choose(turn, listed);
      const claimed = covered.length > 0 ? await claim(covered) : [];
      if (claimed === null) return false;
      turns.advance(turn, listed, covered);
      return claimed.length > 0;
    } catch (cause) {
      fail(cause);
      throw cause;
    }
  }

  /** Claims deliveries of these webhooks. Returns them, or null when the queues have no room. */
  async function claim(webhooks: WaitingWebhook[]): Promise<ClaimRow[] | null> {
    const { prompt, slow } = queue.room();
    if (prompt === 0 && slow === 0) return null;
    const atMost = temporalIsAway ? 1 : Number.POSITIVE_INFINITY; // one of each queue shows whether Temporal is back
    const askedAtMs = Date.now();
    const columns = [webhooks.map(({ organizationId }) => organizationId), webhooks.map(({ webhookId }) => webhookId)];
    const values = [Math.min(prompt, atMost), Math.min(slow, atMost), leaseSeconds, ...columns];
    const { rows } = await pool.query<ClaimRow>({ name: 'claimDeliveries', text: claimDeliveriesSql, values });
    const full = new Set(rows.filter(({ isFull }) => isFull).map(({ webhookId }) => webhookId));
    const free = rows.map(({ webhookId }) => webhookId).filter((webhookId) => !full.has(webhookId));
    turns.note(webhooks, free);
    if (rows.length === 0) return rows;
    onClaimed(rows.length);
    const times = { askedAtMs, claimedAtMs: Date.now() };
    for (const { isFull: _, ...delivery } of rows) queue.add({ delivery, times });
    queue.room(); // notes which queues are full, so that they report when they have room
    return rows;
  }

  async function start(held: HeldDelivery): Promise<void> {
    const { delivery, times } = held;
    try {
      await startWorkflow(delivery);
    } catch (cause) {
      fail(cause);
      if (!isAway(cause)) return; // only this delivery failed: it is claimed again after its lease
      temporalIsAway = true;
      failedAt = performance.now();
      await release([held, ...queue.drop()]); // the others would only wait for Temporal too
      return;
    }
    if (temporalIsAway) {
      temporalIsAway = false;
      poll.wake();
    }
    onStarted(delivery, { ...times, startedAtMs: Date.now() });
    started.push(delivery);
    recording ??= recordAll().finally(() => {
      recording = null;
    });
  }

  /**
   * Records starts whose first attempt was not admitted soon, many in a statement. One that is not
   * recorded is claimed again after its lease, and found running.
   */
  async function recordAll(): Promise<void> {
    while (started.length > 0) {
      const batch = started.splice(0);
      await pause(recordAfter, undefined, { signal: stopping.signal }).catch(() => {});
      try {
        await pool.query({ name: 'recordStarted', text: recordStartedSql, values: columnsOf(batch) });
      } catch (cause) {
        fail(cause);
        if (stopped) return;
        started.unshift(...batch);
        await new Promise((resolve) => setTimeout(resolve, retryEveryMs));
      }
    }
  }

  /** Returns claims, so that another worker need not wait for their leases to expire. */
  async function release(held: HeldDelivery[]): Promise<void> {
    if (held.length === 0) return;
    try {
      await pool.query(releaseClaimsSql, columnsOf(held.map(({ delivery }) => delivery)));
    } catch (cause) {
      fail(cause);
    }
  }

  function fail(cause: unknown): void {
    if (!isFailing) onError(cause);
    isFailing = true;
  }

  return {
    start(): void {
      stopped = false;
      stopping = new AbortController();
      poll.start();
    },
    /** Claims at once: an attempt ended, or a delivery became due. */
    wake: poll.wake,
    /**
     * Stops claiming, returns claims that have not begun (hundreds of slow starts would take longer
     * than a pod has to end), and waits for the others. Can be called twice, and before `start`.
     */
    async stop(): Promise<void> {
      stopped = true;
      await poll.stop();
      await Promise.all([release(queue.drop()), queue.drained()]);
      stopping.abort();
      await recording;
    },
  };
}

/** Organizations, webhooks, events and rounds, each as an array. */
function columnsOf(deliveries: ClaimedDelivery[]): unknown[][] {
  const names = ['organizationId', 'webhookId', 'eventId', 'round'] as const;
  return names.map((name) => deliveries.map((delivery) => delivery[name]));
}
