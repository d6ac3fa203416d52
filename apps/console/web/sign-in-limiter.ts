import { hash } from 'node:crypto';
import { createBoundedQueue } from '#domain/identity/bounded-queue.ts';
import { knownSignInsAtOnce, signInsWaiting, strangersSignInsAtOnce } from '#domain/identity/limits.ts';
import { networkOf } from '#domain/identity/network.ts';
import { type Admissions, TooManyAttempts } from '#domain/identity/refused.ts';

/**
 * Makes refused sign-ins cheap for this process: what PostgreSQL refused until some time is refused
 * here until exactly that time, without I/O, and a few sign-ins run at once.
 *
 * The memory contains only results of `admitAttempt`, so losing an entry costs one look-up and
 * never admits more. Known browsers have separate entries and a separate queue, which strangers
 * cannot fill.
 */

/** The parts of a sign-in that can be judged without I/O. */
export interface SignInRequest {
  /** The address as typed. */
  email: string;
  /** The client's IP address, or null when it is not known. */
  address: string | null;
  /** The token of a browser that verifiably belongs to this address; null for a stranger. */
  browser: string | null;
}

/**
 * The most entries, about 200 B each; the oldest is deleted first. Each needs an attempt that
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
    // Checked again: while it waited, another attempt of its kind may have been refused.
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
     * @throws TooManyAttempts, its own or a remembered one.
     * @throws IdentityRefused `busy` when too many wait already; nothing was counted.
     */
    async run<T>(request: SignInRequest, signIn: () => Promise<T>): Promise<T> {
      assertAdmitted(request);
      const queue = request.browser === null ? strangers : known;
      return queue.run(() => begin(request, signIn));
    },

    /** Returns how many refusals are remembered, for metrics. */
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
 * Returns the keys under which refusals are remembered. Only ASCII letters are folded, as in every
 * locale of PostgreSQL: an address that the database treats as another one is never refused for
 * this one, and another spelling of it costs one look-up.
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

/** One length for parts of any length. */
const keyOf = (...parts: string[]) => hash('sha256', parts.join('\0'), 'base64url').slice(0, 22);
