import pg from 'pg';
import { type CurrentServer, connectionOptions, type PostgresServer, serverNow } from '#domain/db/server.ts';
import { Session } from '#domain/db/session.ts';
import { createIntervalLoop, type IntervalLoop } from '#runtime/interval-loop.ts';
import { type MaintenanceStep, type Step, type StepOptions, stepsOfMaintenance } from './maintenance-steps.ts';

/** The advisory lock of maintenance: one process per database. It is "orgm" in ASCII. */
const maintenanceLock = 0x6f72676d;
/** How many runs a failed step skips, so that one that times out leaves time to the others. */
const pausedRuns = 10;
/** The server's limit keeps the connection usable; the client's is for a hanging server. */
const statementTimeoutMs = 25_000;
const queryTimeoutMs = 30_000;

interface MaintenanceOptions extends Omit<StepOptions, 'everyMs'> {
  server: CurrentServer;
  everyMs?: number;
  /** Called after each run, also when steps failed. */
  onRun?: () => void;
  /** Called when `step` failed and the others continue; null: none could be tried. */
  onError: (cause: unknown, step: MaintenanceStep | null) => void;
}

/**
 * Returns the loop that runs the steps of maintenance. A step that fails is reported, pauses for
 * ten runs and does not affect the others.
 *
 * One process at a time runs them, by an advisory lock on the connection that does the work. When
 * that connection ends, another worker takes over within a second.
 */
export function createMaintenance(options: MaintenanceOptions): Pick<IntervalLoop, 'start' | 'stop'> {
  const { server, everyMs = 1000, onRun = () => {}, onError } = options;
  const steps = stepsOfMaintenance({ ...options, everyMs });
  const dueAtMs = new Map<MaintenanceStep, number>();
  let client: pg.Client | null = null;
  let openedBy: PostgresServer | null = null;
  let isHolder = false;

  async function connect(): Promise<pg.Client> {
    openedBy = serverNow(server);
    const opened = new Session(
      connectionOptions(openedBy, {
        applicationName: 'org-api-maintenance',
        connectTimeoutMs: 2_000,
        statementTimeoutMs,
        queryTimeoutMs,
      }),
    );
    for (const event of ['error', 'away']) opened.on(event as 'error', () => drop(opened));
    await opened.connect();
    return opened;
  }

  function drop(lost: pg.Client): void {
    if (client === lost) client = null;
    isHolder = false;
    lost.end().catch(() => {});
  }

  async function work(): Promise<void> {
    if (client !== null && openedBy !== serverNow(server)) drop(client); // its login is being replaced
    client ??= await connect();
    if (!isHolder) {
      const { rows } = await client.query<{ taken: boolean }>('select pg_try_advisory_lock($1) as taken', [
        maintenanceLock,
      ]);
      isHolder = rows[0]?.taken === true;
    }
    if (!isHolder) return;
    for (const step of steps) {
      if (performance.now() >= (dueAtMs.get(step.name) ?? 0)) await runStep(step, client);
    }
    onRun();
  }

  /** @throws the error of the connection itself, after which no step can run. */
  async function runStep({ name, everyMs: againMs, run }: Step, holder: pg.Client): Promise<void> {
    try {
      const { isAllDone } = await run(holder);
      dueAtMs.set(name, isAllDone ? performance.now() + againMs : 0);
    } catch (cause) {
      if (client !== holder || !(cause instanceof pg.DatabaseError)) throw cause;
      dueAtMs.set(name, performance.now() + pausedRuns * everyMs);
      onError(cause, name);
    }
  }

  const loop = createIntervalLoop({
    run: work,
    everyMs,
    onError(cause) {
      if (client !== null) drop(client);
      onError(cause, null);
    },
  });
  return {
    start: loop.start,
    async stop(): Promise<void> {
      await loop.stop();
      await client?.end().catch(() => {});
      client = null;
      isHolder = false;
    },
  };
}
