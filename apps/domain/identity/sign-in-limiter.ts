import { hash } from 'node:crypto';
import { createBoundedQueue } from './bounded-queue.ts';
import { knownSignInsAtOnce, signInsWaiting, strangersSignInsAtOnce } from './limits.ts';
import { networkOf } from './network.ts';
import { type Admissions, TooManyAttempts } from './refused.ts';

/**
 * Makes refused sign-ins cheap for this process: what PostgreSQL refused until a moment is refused
 * here until exactly that moment, without I/O, and sign-ins run a few at a time.
 *
 * The memory holds nothing but answers of `admitAttempt`, so losing an entry costs one look-up and
 * never admits more. A known browser has entries and a queue of its own, which strangers
 * cannot fill.
 */

/** A sign-in as far as it can be judged without I/O. */
export interface SignInRequest {
  /** The address as typed. */
  email: string;
  /** The client's IP address, or null when it is not known. */
  address: string | null;
  /**
   * Token of a browser that provably was given it when this address signed in; null for a stranger.
   */
  browser: string | null;
}

/**
 * Entries at most, about 200 B each; the oldest is deleted first. Each takes an attempt that
 * PostgreSQL refused.
 */
const maxRefusals = 20_000;

/** Creates the limiter of one process. */
export function createSignInLimiter({ now = () => new Date() }: { now?: () => Date } = {}) {
  /** When each refusal ends (ms). */
  const refusals = new Map<string, number>();
  const known = createBoundedQueue({ concurrency: knownSignInsAtOnce, maxWaiting: signInsWaiting, now });
  const strangers = createBoundedQueue({ concurrency: strangersSignInsAtOnce, maxWaiting: signInsWaiting, now });

  /** @throws TooManyAttempts while PostgreSQL would refuse it too. Reads memory only. */
  function assertAdmitted(request: SignInRequest): void {
    const at = now();
    let untilMs = 0;
    for (const { key } of keysOf(request)) {
      const each = refusals.get(key) ?? 0;
      if (each <= at.getTime()) refusals.delete(key);
      untilMs = Math.max(untilMs, each);
    }
    if (untilMs > at.getTime()) throw new TooManyAttempts(new Date(untilMs), at);
  }

  function remember(request: SignInRequest, { admissions, retryAt }: TooManyAttempts): void {
    const at = now();
    for (const { key, limit } of keysOf(request)) {
      const until = limit === 'any' ? retryAt : (admissions?.[limit] ?? at);
      if (until <= at) continue;
      refusals.delete(key);
      if (refusals.size >= maxRefusals) refusals.delete(refusals.keys().next().value ?? '');
      refusals.set(key, until.getTime());
    }
  }

  async function begin<T>(request: SignInRequest, signIn: () => Promise<T>): Promise<T> {
    // Once more: while it waited, another of its kind may have been refused.
    assertAdmitted(request);
    try {
      return await signIn();
    } catch (error) {
      if (error instanceof TooManyAttempts) remember(request, error);
      throw error;
    }
  }

  return {
    assertAdmitted,

    /**
     * Runs a sign-in when its turn comes.
     *
     * @throws TooManyAttempts, its own or one that is remembered.
     * @throws IdentityRefused `busy` when too many wait already; nothing was counted.
     */
    async run<T>(request: SignInRequest, signIn: () => Promise<T>): Promise<T> {
      assertAdmitted(request);
      const queue = request.browser === null ? strangers : known;
      return queue.run(() => begin(request, signIn));
    },

    /** How many refusals are remembered, for metrics. */
    size: () => refusals.size,
  };
}

export type SignInLimiter = ReturnType<typeof createSignInLimiter>;

interface RefusalKey {
  key: string;
  /** The limit whose refusals it remembers. */
  limit: keyof Admissions | 'any';
}

/**
 * What a refusal is remembered by. Only ASCII letters are folded, as every locale of PostgreSQL
 * does: an address that is another one to the database is never refused for this one, and another
 * spelling of it costs one look-up.
 */
function keysOf({ email, address, browser }: SignInRequest): RefusalKey[] {
  if (browser !== null) return [{ key: keyOf('browser', browser), limit: 'any' }];
  const folded = email.trim().replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const network = address === null ? '' : networkOf(address);
  const keys: RefusalKey[] = [
    { key: keyOf('subject', folded), limit: 'subject' },
    { key: keyOf('pair', network, folded), limit: 'pair' },
  ];
  return address === null ? keys : [...keys, { key: keyOf('network', network), limit: 'network' }];
}

/** One length, however long the parts are. */
const keyOf = (...parts: string[]) => hash('sha256', parts.join('\0'), 'base64url').slice(0, 22);
