import { hourMs } from '#domain/contract/durations.ts';

/**
 * How the receiver fails on purpose: it answers with a status, never answers, or resets the
 * connection.
 */
export type Failure = { how: 'status'; status: number } | { how: 'hang' } | { how: 'reset' };

const longestMs = hourMs;
const units: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: hourMs };

/** A switch that makes a receiver fail for a while, so that retries can be observed. */
export class Failing {
  readonly #now: () => number;
  #failure: Failure | null = null;
  #untilMs = 0;

  /** `now` is the clock in milliseconds. */
  constructor(now: () => number = Date.now) {
    this.#now = now;
  }

  /**
   * Reads `for=30s&status=503`, `for=1m&how=hang` or `for=10s&how=reset`; `for=0s` ends it.
   * Returns the new failure, or a sentence that says what is wrong.
   */
  set(query: URLSearchParams): { forMs: number; failure: Failure | null } | { problem: string } {
    const forMs = readDuration(query.get('for') ?? '30s');
    if (forMs === null) return { problem: 'for must be a time up to 1h, for example 30s' };
    const how = query.get('how') ?? (query.has('hang') ? 'hang' : query.has('reset') ? 'reset' : 'status');
    const requested = readFailure(how, query.get('status') ?? '503');
    if (requested === null) return { problem: 'give status=503 (300 to 599), or how=hang, or how=reset' };
    this.#failure = forMs === 0 ? null : requested;
    this.#untilMs = this.#now() + forMs;
    return { forMs, failure: this.#failure };
  }

  /** Returns how to fail now, or null. */
  current(): Failure | null {
    return this.#now() < this.#untilMs ? this.#failure : null;
  }

  leftMs(): number {
    return this.#failure === null ? 0 : Math.max(0, this.#untilMs - this.#now());
  }
}

function readDuration(text: string): number | null {
  const [, amount = '', unit = ''] = /^(\d{1,7})(ms|s|m|h)$/.exec(text) ?? [];
  const durationMs = Number(amount) * (units[unit] ?? Number.NaN);
  return durationMs <= longestMs ? durationMs : null;
}

function readFailure(how: string, statusText: string): Failure | null {
  if (how === 'hang' || how === 'reset') return { how };
  const status = Number(statusText);
  const isFailure = Number.isInteger(status) && status >= 300 && status <= 599;
  return how === 'status' && isFailure ? { how, status } : null;
}
