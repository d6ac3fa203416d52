import pg, { type Pool } from 'pg';
import { type DatabaseUrl, urlNow } from '#domain/db/connect.ts';
import { claimDeliveriesSql, recordStartedSql } from '#domain/db/queries/claim-deliveries.ts';
import type { DeliveryKey } from '#workflows/deliver-event/types.ts';

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

/** Unix times in ms of the way from the table to a running workflow. */
export interface StartTimes {
  /** When the claim was asked for, and when it was answered. */
  askedAtMs: number;
  claimedAtMs: number;
  startedAtMs: number;
}

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

  /** Asks for a round of claims; one that is under way is followed by another. */
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
        if ((await claimOnce()) > 0) wanted = true;
      }
    } catch (cause) {
      onError(cause); // the next poll tries again
    }
  }

  async function claimOnce(): Promise<number> {
    const askedAtMs = Date.now();
    const { rows } = await pool.query<ClaimedDelivery>({
      name: 'claimDeliveries',
      text: claimDeliveriesSql,
      values: [webhooksPerClaim, leaseSeconds],
    });
    if (rows.length === 0) return 0;
    onClaimed(rows.length);
    const claimedAtMs = Date.now();
    const start = async (delivery: ClaimedDelivery): Promise<void> => {
      await startWorkflow(delivery);
      onStarted(delivery, { askedAtMs, claimedAtMs, startedAtMs: Date.now() });
    };
    const tried = await Promise.allSettled(rows.map(start));
    const started = rows.filter((_, index) => tried[index]?.status === 'fulfilled');
    if (started.length > 0) await recordStarted(started);
    const failure = tried.find((result) => result.status === 'rejected');
    if (failure !== undefined) throw failure.reason;
    return started.length;
  }

  function recordStarted(started: ClaimedDelivery[]): Promise<unknown> {
    const column = (name: 'organizationId' | 'webhookId' | 'eventId' | 'round') =>
      started.map((delivery) => delivery[name]);
    return pool.query({
      name: 'recordStarted',
      text: recordStartedSql,
      values: [column('organizationId'), column('webhookId'), column('eventId'), column('round')],
    });
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
    /** Claims nothing more and waits for the claims under way. Safe to call twice, and before `start`. */
    async stop(): Promise<void> {
      stopped = true;
      clearInterval(timer);
      await working;
      await listener?.end().catch(() => {});
      listener = null;
    },
  };
}
