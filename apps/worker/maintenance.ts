import pg from 'pg';
import { type DatabaseUrl, urlNow } from '#domain/db/connect.ts';
import { type MaintenanceStep, type Step, stepsOfMaintenance } from './maintenance-steps.ts';

/**
 * The advisory lock of whoever maintains: one process a database. The constant spells "orgm" in
 * ASCII.
 */
const maintenanceLock = 0x6f72676d;
/**
 * A step that failed rests for so many rounds: one that runs into its time limit each time must not
 * take the others' time.
 */
const restRounds = 10;
/**
 * Cancelled by the server, so the connection stays good for the steps that follow; the client's own
 * limit is for a server that does not answer.
 */
const statementTimeoutMs = 25_000;
const queryTimeoutMs = 30_000;

export interface MaintenanceOptions {
  databaseUrl: DatabaseUrl;
  activityRetentionDays: number;
  deliveryRetentionDays: number;
  /** How long a webhook fails, in time in which attempts could be made, before it is suspended. */
  suspendAfterSeconds: number;
  everyMs?: number;
  onEnded?: (grants: number) => void;
  /** Webhooks that were suspended because they only fail. */
  onSuspended?: (webhooks: number) => void;
  /**
   * Deliveries of resumed webhooks that are started again, or of deleted ones that were cancelled.
   */
  onMoved?: (how: 'restarted' | 'cancelled', deliveries: number) => void;
  /** Deliveries and events that were deleted because they are older than their retention. */
  onPurged?: (purged: { deliveries: number; events: number }) => void;
  /** A round is over, whether or not each of its steps succeeded. */
  onRound?: () => void;
  /** `step` failed, and the others go on; null: none could be tried. */
  onError: (cause: unknown, step: MaintenanceStep | null) => void;
}

/**
 * What time does by itself (design, section 3), each step on its own: one that fails is told, rests
 * for ten rounds and keeps none of the others from what they do.
 *
 * One process at a time, by an advisory lock on the connection that does the work: when that
 * process or its connection dies, the lock goes with it, and another worker takes over within a
 * second. `start` resolves once the first round has been tried.
 */
export function createMaintenance(options: MaintenanceOptions) {
  const { databaseUrl, everyMs = 1000, onRound = () => {}, onError } = options;
  const steps = stepsOfMaintenance({ ...options, everyMs });
  const dueAtMs = new Map<MaintenanceStep, number>();
  let client: pg.Client | null = null;
  let openedBy = '';
  let isHolder = false;
  let timer: NodeJS.Timeout | undefined;
  let stopped = false;
  let round: Promise<void> = Promise.resolve();

  async function connect(): Promise<pg.Client> {
    openedBy = urlNow(databaseUrl);
    const opened = new pg.Client({
      connectionString: openedBy,
      application_name: 'org-api-maintenance',
      connectionTimeoutMillis: 2_000,
      statement_timeout: statementTimeoutMs,
      query_timeout: queryTimeoutMs,
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
    for (const step of steps) {
      if (performance.now() >= (dueAtMs.get(step.name) ?? 0)) await take(step, client);
    }
    onRound();
  }

  /** @throws what the connection itself failed with: then there is nothing to go on with. */
  async function take({ name, everyMs: againMs, run }: Step, holder: pg.Client): Promise<void> {
    try {
      const { isAllDone } = await run(holder);
      dueAtMs.set(name, isAllDone ? performance.now() + againMs : 0);
    } catch (cause) {
      if (client !== holder || !isRefused(cause)) throw cause;
      dueAtMs.set(name, performance.now() + restRounds * everyMs);
      onError(cause, name);
    }
  }

  async function tryRound(): Promise<void> {
    try {
      await work();
    } catch (cause) {
      if (client !== null) forget(client);
      onError(cause, null);
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

/**
 * Whether PostgreSQL refused the statement and goes on answering: not so when it ends the session
 * (57P01 and its like), or says nothing.
 */
function isRefused(cause: unknown): boolean {
  return cause instanceof pg.DatabaseError && !cause.code?.startsWith('57P') && !cause.code?.startsWith('08');
}
