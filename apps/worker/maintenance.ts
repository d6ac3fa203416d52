import pg from 'pg';
import { dropOldActivitySql, endDueGrantsSql, keepPartitionsSql } from '#domain/db/queries/maintenance.ts';

/** The advisory lock of whoever maintains: one process a database. The constant spells "orgm" in ASCII. */
const maintenanceLock = 0x6f72676d;
const hourMs = 3_600_000;

export interface MaintenanceOptions {
  databaseUrl: string;
  activityRetentionDays: number;
  everyMs?: number;
  onEnded?: (grants: number) => void;
  onRound?: () => void;
  onError: (cause: unknown) => void;
}

/**
 * What time does by itself (design, section 3): each second it ends the grants that are due; each hour it keeps the log's partitions ahead and
 * applies its retention.
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
    onRound = () => {},
    onError,
  } = options;
  let client: pg.Client | null = null;
  let isHolder = false;
  let housekeptAtMs = Number.NEGATIVE_INFINITY;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let round: Promise<void> = Promise.resolve();

  async function connect(): Promise<pg.Client> {
    const opened = new pg.Client({
      connectionString: databaseUrl,
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
    if (performance.now() - housekeptAtMs >= hourMs) {
      await client.query(keepPartitionsSql);
      await client.query(dropOldActivitySql, [activityRetentionDays]);
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
