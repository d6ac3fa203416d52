import { IntervalLoop } from '#runtime/flow/interval-loop.ts';

interface TrialOptions {
  /** How long the trial lasts without enough attempts; 0 passes it at once. */
  durationMs: number;
  /** Attempts without an internal error that end the trial. */
  attempts?: number;
  checkEveryMs?: number;
  /** Returns how many workflow tasks of this process have failed. */
  countFailedTasks: () => Promise<number>;
  /** Called once, with a sentence. */
  onFailed: (reason: string) => void;
  /** Called when the count could not be read; it is read again. */
  onError: (cause: unknown) => void;
}

/**
 * The trial of a new process: it delivers, and counts as ready only after enough attempts without
 * an internal error, or enough time. In a rolling update the pods before stay until then, so a
 * build that cannot replay histories, sign or post replaces none of them.
 *
 * What the environment does (PostgreSQL or Temporal unavailable, a receiver that rejects) is no failure, nor
 * is an attempt whose event, secret or delivery is missing, or the damaged secret of one webhook.
 * Later failures are for alerts: a data fault that one delivery has must not stop a fleet.
 */
export class Trial {
  readonly #options: TrialOptions;
  readonly #loop;
  #startedAt = Number.NaN;
  #state: 'underway' | 'passed' | 'failed';
  #attempts = 0;

  constructor(options: TrialOptions) {
    this.#options = options;
    this.#state = options.durationMs === 0 ? 'passed' : 'underway';
    const { checkEveryMs: everyMs = 1_000, onError } = options;
    this.#loop = new IntervalLoop({ run: () => this.#check(), everyMs, onError });
  }

  get state(): 'underway' | 'passed' | 'failed' {
    return this.#state;
  }

  /** Called when the process delivers: Temporal may have been unavailable since the process began. */
  start(): void {
    this.#startedAt = performance.now();
    if (this.#state === 'underway') void this.#loop.start();
  }

  readonly stop = (): Promise<void> => this.#loop.stop();

  /** Counts an attempt without an internal error, whatever the receiver answered. */
  countAttempt(): void {
    this.#attempts += 1;
  }

  /** Ends the trial, unless it has ended. `reason` is a sentence without a secret. */
  fail(reason: string): void {
    if (this.#state !== 'underway') return;
    this.#state = 'failed';
    this.#options.onFailed(reason);
  }

  async #check(): Promise<void> {
    const { durationMs, attempts = 20, countFailedTasks } = this.#options;
    if (this.#state !== 'underway') return;
    // Decided before the count: what ends afterwards may belong to a task that fails next.
    const isEnough = this.#attempts >= attempts || performance.now() - this.#startedAt >= durationMs;
    const failed = await countFailedTasks();
    if (failed > 0) return this.fail(`${failed} workflow tasks failed.`);
    if (isEnough && this.#state === 'underway') this.#state = 'passed';
  }
}
