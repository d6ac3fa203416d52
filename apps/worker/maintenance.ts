import pg from 'pg';
import { type DatabaseUrl, urlNow } from '#domain/db/connect.ts';
import {
  dropOldActivitySql,
  endDueGrantsSql,
  eraseSignInLeftoversSql,
  keepPartitionsSql,
} from '#domain/db/queries/maintenance.ts';
import { eraseExpiredSecretsSql, mendDeliveriesSql, parkFailingWebhooksSql } from '#domain/db/queries/park-webhooks.ts';
import { personWindowHours, sessionIdleMinutes } from '#domain/identity/limits.ts';
import { deliveriesPerMend, parkAfterSeconds, parkMinimumEvents } from '#domain/webhooks/limits.ts';

/** The advisory lock of whoever maintains: one process a database. The constant spells "orgm" in ASCII. */
const maintenanceLock = 0x6f72676d;
const hourMs = 3_600_000;
/** It may read a webhook's whole history (80 ms for 300,000 attempts), and of 72 hours ten seconds are nothing. */
const parkEveryRounds = 10;

export interface MaintenanceOptions {
  databaseUrl: DatabaseUrl;
  activityRetentionDays: number;
  everyMs?: number;
  onEnded?: (grants: number) => void;
  /** Webhooks that were parked because they only fail. */
  onParked?: (webhooks: number) => void;
  /** Deliveries that were moved to `state`, where their webhook's wants them. */
  onMended?: (state: string, deliveries: number) => void;
  onRound?: () => void;
  onError: (cause: unknown) => void;
}

interface MovedRow {
  state: string;
  deliveries: number;
}

/**
 * What time does by itself (design, section 3): each second it ends the grants that are due, moves deliveries to where their webhook's state wants
 * them and erases secrets whose overlap is over; each ten it parks webhooks that only fail; each hour it keeps the log's partitions ahead,
 * applies its retention and erases what is over of signing in.
 *
 * One process at a time, by an advisory lock on the connection that does the work: when that process or its connection dies, the lock
 * goes with it, and another worker takes over within a second. `start` resolves once the first round has been tried.
 */
export function createMaintenance(options: MaintenanceOptions) {
  const {
    databaseUrl,
    activityRetentionDays,
    everyMs = 1000,
    onEnded = () => {},
    onParked = () => {},
    onMended = () => {},
    onRound = () => {},
    onError,
  } = options;
  let client: pg.Client | null = null;
  let openedBy = '';
  let isHolder = false;
  let rounds = 0;
  let housekeptAtMs = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let round: Promise<void> = Promise.resolve();

  async function connect(): Promise<pg.Client> {
    openedBy = urlNow(databaseUrl);
    const opened = new pg.Client({
      connectionString: openedBy,
      application_name: 'org-api-maintenance',
      connectionTimeoutMillis: 2_000,
      query_timeout: 30_000,
    });
    opened.on('error', () => forget(opened));
    await opened.connect();
    return opened;
  }

  function forget(lost: pg.Client): void {
    if (client === lost) client = null;
    isHolder = false;
    lost.end().catch(() => {});
  }

  async function work(): Promise<void> {
    if (client !== null && openedBy !== urlNow(databaseUrl)) forget(client); // its login is being replaced
    client ??= await connect();
    if (!isHolder) {
      const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [
        maintenanceLock,
      ]);
      isHolder = rows[0]?.taken === true;
    }
    if (!isHolder) return;
    const ended = await client.query(endDueGrantsSql);
    onEnded(ended.rowCount ?? 0);
    if (rounds % parkEveryRounds === 0) {
      const parked = await client.query(parkFailingWebhooksSql, [parkAfterSeconds, parkMinimumEvents]);
      onParked(parked.rowCount ?? 0);
    }
    rounds += 1;
    const mended = await client.query<MovedRow>(mendDeliveriesSql, [deliveriesPerMend, null]);
    for (const { state, deliveries } of mended.rows) onMended(state, deliveries);
    await client.query(eraseExpiredSecretsSql);
    if (performance.now() - housekeptAtMs >= hourMs) {
      await client.query(keepPartitionsSql);
      await client.query(dropOldActivitySql, [activityRetentionDays]);
      await client.query(eraseSignInLeftoversSql, [sessionIdleMinutes, personWindowHours]);
      housekeptAtMs = performance.now();
    }
    onRound();
  }

  async function tryRound(): Promise<void> {
    try {
      await work();
    } catch (cause) {
      if (client !== null) forget(client);
      onError(cause);
    }
  }

  function schedule(): void {
    timer = setTimeout(() => {
      round = tryRound().then(() => {
        if (!stopped) schedule();
      });
    }, everyMs);
  }

  return {
    async start(): Promise<void> {
      stopped = false;
      await tryRound();
      schedule();
    },
    /** Waits for the round under way. Safe to call twice, and before `start`. */
    async stop(): Promise<void> {
      stopped = true;
      clearTimeout(timer);
      await round;
      await client?.end().catch(() => {});
      client = null;
      isHolder = false;
    },
  };
}
