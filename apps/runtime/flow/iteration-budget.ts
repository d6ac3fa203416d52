import { setImmediate } from 'node:timers/promises';

/** Limits what the process does in one iteration of the event loop, so that other requests are handled between. */
export class IterationBudget {
  readonly #limit: number;
  #left: number;
  #nextIteration: Promise<void> | null = null;

  /** @param limit - when this amount was used, everything else waits for the next iteration. */
  constructor(limit: number) {
    this.#limit = limit;
    this.#left = limit;
  }

  /** Waits for an iteration with something left, and uses an amount of it. */
  async use(amount: number): Promise<void> {
    while (this.#left <= 0) await this.#untilNextIteration();
    this.#left -= amount;
  }

  #untilNextIteration(): Promise<void> {
    this.#nextIteration ??= setImmediate().then(() => {
      this.#left = this.#limit;
      this.#nextIteration = null;
    });
    return this.#nextIteration;
  }
}
