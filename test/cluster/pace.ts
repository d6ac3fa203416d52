/** An answer on a machine that has time for the load; the mean of quiet runs is below it. */
const comfortableMs = 25;
/** The least share of the rate: a twentieth of 20 reads a second is one. */
const leastShare = 1 / 20;

/**
 * How much of its rate a load may make. The load shares its machine with the cluster, and the
 * machine's speed changes: where answers take longer than they should, a steady rate only fills
 * queues until the product's own bounds answer 503, which says nothing about a rollout.
 */
export class Pace {
  #meanMs = comfortableMs;

  /** Takes the duration of an answer into the mean of about the last 20. */
  answered(durationMs: number): void {
    this.#meanMs += (durationMs - this.#meanMs) / 20;
  }

  /** From a twentieth to 1. */
  get share(): number {
    return Math.max(leastShare, Math.min(1, comfortableMs / this.#meanMs));
  }

  /** Calls `work` at a rate of at most `perSecond` until the returned function is called. */
  repeat(perSecond: number, work: () => void): () => void {
    const next = () => {
      work();
      timer = setTimeout(next, 1000 / (perSecond * this.share));
    };
    let timer = setTimeout(next, 1000 / perSecond);
    return () => clearTimeout(timer);
  }
}
