import pg from 'pg';
import { type CurrentServer, connectionOptions, type PostgresServer, serverNow } from '#domain/db/server.ts';
import { Session } from '#domain/db/session.ts';
import { createIntervalLoop, type IntervalLoop } from '#runtime/flow/interval-loop.ts';
import {
  type MaintenanceStep,
  maintenanceSteps,
  type Step,
  type StepOptions,
  stepsOfMaintenance,
} from './maintenance-steps.ts';
import { addStepsSql, type ClaimedStep, claimStepSql, finishStepSql } from './step-statements.ts';

/** How many intervals a failed step pauses, so that one that times out leaves time to the others. */
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
 * ten intervals and does not affect the others.
 *
 * Every worker runs the loop. Each claims one step that is due after another, for a minute: a
 * worker that dies or hangs holds one step for so long, and the others continue. Steps are safe to
 * repeat.
 */
export function createMaintenance(options: MaintenanceOptions): Pick<IntervalLoop, 'start' | 'stop'> {
  const { server, everyMs = 1000, onRun = () => {}, onError } = options;
  const steps = new Map<string, Step>(stepsOfMaintenance({ ...options, everyMs }).map((step) => [step.name, step]));
  let client: pg.Client | null = null;
  let openedBy: PostgresServer | null = null;
  /** What this worker has claimed and not finished: after a lost connection it need not wait for its end. */
  let claimed: ClaimedStep | null = null;

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
    await opened.query(addStepsSql, [maintenanceSteps]);
    return opened;
  }

  function drop(lost: pg.Client): void {
    if (client === lost) client = null;
    lost.end().catch(() => {});
  }

  async function work(signal: AbortSignal): Promise<void> {
    if (client !== null && openedBy !== serverNow(server)) drop(client); // its login is being replaced
    client ??= await connect();
    for (let tried = 0; tried < steps.size && !signal.aborted; tried += 1) {
      if (claimed !== null) await finish(client, claimed, 0);
      const { rows }: { rows: ClaimedStep[] } = await client.query<ClaimedStep>(claimStepSql, [maintenanceSteps]);
      claimed = rows[0] ?? null;
      const step = steps.get(claimed?.name ?? '');
      if (claimed === null || step === undefined) break;
      await finish(client, claimed, await runStep(step, client));
    }
    onRun();
  }

  async function finish(holder: pg.Client, { name, until }: ClaimedStep, pauseMs: number): Promise<void> {
    await holder.query(finishStepSql, [name, until, pauseMs / 1_000, null]);
    claimed = null;
  }

  /**
   * Returns after how many ms the step is due again.
   *
   * @throws the error of the connection itself, after which no step can run.
   */
  async function runStep({ name, everyMs: againMs, run }: Step, holder: pg.Client): Promise<number> {
    try {
      const { isAllDone } = await run(holder);
      return isAllDone ? Math.max(everyMs, againMs) : everyMs;
    } catch (cause) {
      if (client !== holder || !(cause instanceof pg.DatabaseError)) throw cause;
      onError(cause, name);
      return pausedRuns * everyMs;
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
    },
  };
}
