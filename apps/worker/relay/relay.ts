import pg, { type Pool } from 'pg';
import { type DatabaseUrl, urlNow } from '#domain/db/connect.ts';
import { claimDeliveriesSql, recordStartedSql, releaseClaimsSql } from '#domain/db/queries/claim-deliveries.ts';
import type { DeliveryKey } from '#workflows/deliver-event/types.ts';
import { createStartLanes, type HeldDelivery } from './start-lanes.ts';

/** A delivery that the relay holds: its workflow is to be started now. */
export interface ClaimedDelivery extends DeliveryKey {
  round: number;
  /** Its webhook is failing: every attempt goes to the slow queue. */
  slow: boolean;
  /** The event's type. */
  type: string;
  /** When the round became due; of a first round, the event's own time. Unix time in ms, by PostgreSQL's clock. */
  begunAtMs: number;
}

/** When a claim was asked for, and when it was answered: Unix times in ms. */
export interface ClaimTimes {
  askedAtMs: number;
  claimedAtMs: number;
}

/** Unix times in ms of the way from the table to a running workflow. */
export interface StartTimes extends ClaimTimes {
  startedAtMs: number;
}

/** What one relay does at once is bounded by the lanes; this bounds what claiming costs the database while much comes at once. */
const betweenClaimsMs = 5;

export interface RelayOptions {
  pool: Pool;
  /** For the connection that listens; the same login as the pool's. */
  databaseUrl: DatabaseUrl;
  /** Starts a delivery's workflow. Resolves also when it runs already; rejects when Temporal does not answer. */
  startWorkflow: (delivery: ClaimedDelivery) => Promise<void>;
  /** How often it looks without being told, for notifications that were lost and deliveries that become due. */
  pollEveryMs?: number;
  webhooksPerClaim?: number;
  leaseSeconds?: number;
  onClaimed?: (deliveries: number) => void;
  /** Told of each delivery whose workflow runs now. */
  onStarted?: (delivery: ClaimedDelivery, times: StartTimes) => void;
  /** Told that somebody asked for a redelivery of many, which comes over the same connection. */
  onRedelivery?: () => void;
  onError: (cause: unknown) => void;
}

/**
 * Takes obligations out of the table and starts a workflow for each that has a place.
 *
 * Woken by NOTIFY, and by a slow poll because a notification can be lost with its connection. No transaction is open during a call to Temporal: a claim
 * is a lease, and when this process dies its deliveries are claimed again once the lease is over, under the same workflow id.
 *
 * Claiming does not wait for starting: a start takes tens of milliseconds, and a claim may bring two thousand of them, for which a new event would have to wait.
 */
export function createRelay(options: RelayOptions) {
  const { pool, databaseUrl, startWorkflow, onError } = options;
  const { onClaimed = () => {}, onStarted = () => {}, onRedelivery = () => {} } = options;
  const { pollEveryMs = 1_000, webhooksPerClaim = 200, leaseSeconds = 15 } = options;
  let listener: pg.Client | null = null;
  let openedBy = '';
  let timer: NodeJS.Timeout | undefined;
  let wanted = false;
  let working: Promise<void> | null = null;
  let stopped = true;
  /** Of what the last claim gave, a start has failed and was told. */
  let isFailing = false;
  const started: ClaimedDelivery[] = [];
  let isRecording = false;
  let recording: Promise<void> = Promise.resolve();
  const lanes = createStartLanes(start);

  /** Asks for a claim; one that is under way is followed by another. */
  function wake(): void {
    wanted = true;
    if (stopped || working !== null) return;
    working = work().finally(() => {
      working = null;
      if (wanted && !stopped) wake();
    });
  }

  async function work(): Promise<void> {
    try {
      while (wanted && !stopped) {
        wanted = false;
        if (!(await claim())) continue;
        wanted = true;
        await new Promise((resolve) => setTimeout(resolve, betweenClaimsMs));
      }
    } catch (cause) {
      onError(cause); // the next poll tries again
    }
  }

  /** @returns whether there was anything. */
  async function claim(): Promise<boolean> {
    const askedAtMs = Date.now();
    const { rows } = await pool.query<ClaimedDelivery>({
      name: 'claimDeliveries',
      text: claimDeliveriesSql,
      values: [webhooksPerClaim, leaseSeconds],
    });
    if (rows.length === 0) return false;
    onClaimed(rows.length);
    const times = { askedAtMs, claimedAtMs: Date.now() };
    isFailing = false;
    for (const delivery of rows) lanes.add({ delivery, times });
    return true;
  }

  async function start({ delivery, times }: HeldDelivery): Promise<void> {
    try {
      await startWorkflow(delivery);
    } catch (cause) {
      lanes.drop(); // what else is claimed would only wait for Temporal too
      if (!isFailing) onError(cause);
      isFailing = true;
      return;
    }
    onStarted(delivery, { ...times, startedAtMs: Date.now() });
    started.push(delivery);
    if (!isRecording) recording = recordAll();
  }

  /** What is started while one statement runs shares the next. One that is not recorded is claimed again once its lease is over, and found running. */
  async function recordAll(): Promise<void> {
    isRecording = true;
    try {
      while (started.length > 0) await recordStarted(started.splice(0));
    } catch (cause) {
      onError(cause);
    } finally {
      isRecording = false;
    }
  }

  function recordStarted(deliveries: ClaimedDelivery[]): Promise<unknown> {
    return pool.query({ name: 'recordStarted', text: recordStartedSql, values: columnsOf(deliveries) });
  }

  /** Gives claims back, so that another worker need not wait for the end of their leases. When that fails, it does. */
  async function release(held: HeldDelivery[]): Promise<void> {
    if (held.length === 0) return;
    try {
      await pool.query(releaseClaimsSql, columnsOf(held.map(({ delivery }) => delivery)));
    } catch (cause) {
      onError(cause);
    }
  }

  async function listen(): Promise<void> {
    const url = urlNow(databaseUrl);
    if (stopped || (listener !== null && openedBy === url)) return;
    const client = new pg.Client({
      connectionString: url,
      application_name: 'org-api-relay',
      connectionTimeoutMillis: 2_000,
      keepAlive: true,
    });
    client.on('error', () => {
      if (listener === client) listener = null;
      client.end().catch(() => {});
    });
    client.on('notification', ({ payload }) => (payload === 'redelivery' ? onRedelivery() : wake()));
    await client.connect();
    await client.query('listen org_api_deliveries');
    const replaced = listener; // its login is being replaced
    listener = client;
    openedBy = url;
    await replaced?.end().catch(() => {});
  }

  function tick(): void {
    listen().catch(onError);
    wake();
  }

  return {
    /** Resolves when it listens, or has found that it cannot yet; it goes on trying. */
    async start(): Promise<void> {
      stopped = false;
      await listen().catch(onError);
      wake();
      timer = setInterval(tick, pollEveryMs);
    },
    wake,
    /**
     * Claims nothing more, gives back what is claimed and not begun, and waits for the starts under way: hundreds of slow ones would take longer than a pod is given to end. Safe to call
     * twice, and before `start`.
     */
    async stop(): Promise<void> {
      stopped = true;
      clearInterval(timer);
      await working;
      await Promise.all([release(lanes.drop()), lanes.drained()]);
      await recording;
      await listener?.end().catch(() => {});
      listener = null;
    },
  };
}

/** Organizations, webhooks, events and rounds, each as an array. */
function columnsOf(deliveries: ClaimedDelivery[]): unknown[][] {
  const names = ['organizationId', 'webhookId', 'eventId', 'round'] as const;
  return names.map((name) => deliveries.map((delivery) => delivery[name]));
}
