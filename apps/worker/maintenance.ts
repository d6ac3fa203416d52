import pg from 'pg';
import { PrimaryConnection } from '#domain/db/driver/primary-connection.ts';
import { type CurrentServer, connectionOptions, type PostgresServer, serverNow } from '#domain/db/server.ts';
import { IntervalLoop } from '#runtime/flow/interval-loop.ts';
import {
  createMaintenanceSteps,
  type MaintenanceStep,
  maintenanceSteps,
  type Step,
  type StepOptions,
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
  /** Called after each run that carried out a step, also when others failed. */
  onRun?: () => void;
  /** Called when `step` failed and the others continue; null: none could be tried. */
  onError: (cause: unknown, step: MaintenanceStep | null) => void;
}

/**
 * Runs the steps of maintenance. A step that fails is reported, pauses for ten intervals and does
 * not affect the others.
 *
 * Every worker runs the loop. Each claims one step that is due after another, for a minute: a
 * worker that dies or hangs holds one step for so long, and the others continue. Steps are safe to
 * repeat.
 */
export class Maintenance {
  readonly #server: CurrentServer;
  readonly #everyMs: number;
  readonly #onRun: () => void;
  readonly #onError: MaintenanceOptions['onError'];
  readonly #steps: ReadonlyMap<string, Step>;
  readonly #loop: IntervalLoop;
  #client: pg.Client | null = null;
  #openedBy: PostgresServer | null = null;
  /** What this worker has claimed and not finished: after a lost connection it need not wait for its end. */
  #claimed: ClaimedStep | null = null;

  constructor(options: MaintenanceOptions) {
    const { server, everyMs = 1000, onRun = () => {}, onError } = options;
    this.#server = server;
    this.#everyMs = everyMs;
    this.#onRun = onRun;
    this.#onError = onError;
    this.#steps = new Map(createMaintenanceSteps({ ...options, everyMs }).map((step) => [step.name, step]));
    this.#loop = new IntervalLoop({
      run: (signal) => this.#work(signal),
      everyMs,
      onError: (cause) => {
        if (this.#client !== null) this.#drop(this.#client);
        onError(cause, null);
      },
    });
  }

  /** Resolves when the first run has ended. */
  start(): Promise<void> {
    return this.#loop.start();
  }

  async stop(): Promise<void> {
    await this.#loop.stop();
    await this.#client?.end().catch(() => {});
    this.#client = null;
  }

  async #work(signal: AbortSignal): Promise<void> {
    // Its login is being replaced.
    if (this.#client !== null && this.#openedBy !== serverNow(this.#server)) this.#drop(this.#client);
    const client = this.#client ?? (await this.#connect());
    let isWorkDone = false;
    for (let tried = 0; tried < this.#steps.size && !signal.aborted; tried += 1) {
      if (this.#claimed !== null) await this.#finish(client, this.#claimed, 0);
      const { rows }: { rows: ClaimedStep[] } = await client.query<ClaimedStep>(claimStepSql, [maintenanceSteps]);
      this.#claimed = rows[0] ?? null;
      const step = this.#steps.get(this.#claimed?.name ?? '');
      if (this.#claimed === null || step === undefined) break;
      const { pauseMs, isDone } = await this.#runStep(step, client);
      await this.#finish(client, this.#claimed, pauseMs);
      isWorkDone ||= isDone;
    }
    if (isWorkDone) this.#onRun();
  }

  /**
   * Returns after how many ms the step is due again, and whether it was carried out.
   *
   * @throws the error of the connection itself, after which no step can run.
   */
  async #runStep({ name, everyMs: againMs, run }: Step, client: pg.Client) {
    try {
      const { isAllDone } = await run(client);
      return { pauseMs: isAllDone ? Math.max(this.#everyMs, againMs) : this.#everyMs, isDone: true };
    } catch (cause) {
      if (this.#client !== client || !(cause instanceof pg.DatabaseError)) throw cause;
      this.#onError(cause, name);
      return { pauseMs: pausedRuns * this.#everyMs, isDone: false };
    }
  }

  async #finish(client: pg.Client, { name, until }: ClaimedStep, pauseMs: number): Promise<void> {
    await client.query(finishStepSql, [name, until, pauseMs / 1_000, null]);
    this.#claimed = null;
  }

  async #connect(): Promise<pg.Client> {
    this.#openedBy = serverNow(this.#server);
    const opened = new PrimaryConnection(
      connectionOptions(this.#openedBy, {
        applicationName: 'org-api-maintenance',
        connectTimeoutMs: 2_000,
        statementTimeoutMs,
        queryTimeoutMs,
      }),
    );
    this.#client = opened; // from here on, so that whatever fails next ends it
    for (const event of ['error', 'unavailable']) opened.on(event as 'error', () => this.#drop(opened));
    await opened.connect();
    await opened.query(addStepsSql, [maintenanceSteps]);
    return opened;
  }

  #drop(lost: pg.Client): void {
    if (this.#client === lost) this.#client = null;
    lost.end().catch(() => {});
  }
}
