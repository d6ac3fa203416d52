import type { EntityManager } from '@mikro-orm/postgresql';
import { canonicalEmail } from '#domain/contract/email.ts';
import { assertAdmitted, passwordSubject, signInAttempt } from '#domain/identity/attempts.ts';
import { createBoundedQueue } from '#domain/identity/bounded-queue.ts';
import { knownSignInsAtOnce, signInsWaiting, strangersSignInsAtOnce } from '#domain/identity/limits.ts';
import { findTokenHash } from '#domain/identity/token.ts';

/**
 * Makes sign-ins cheap for this process: what PostgreSQL refused until some time is refused without
 * I/O, and a few sign-ins run at once. Strangers cannot fill the queue of known browsers.
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

/** Creates the limiter of one process. */
export function createSignInLimiter(em: EntityManager, now: () => Date) {
  const known = createBoundedQueue({ concurrency: knownSignInsAtOnce, maxWaiting: signInsWaiting, now });
  const strangers = createBoundedQueue({ concurrency: strangersSignInsAtOnce, maxWaiting: signInsWaiting, now });

  function check({ email, address, browser }: SignInRequest): void {
    const browserHash = browser === null ? null : findTokenHash(browser);
    const subject = passwordSubject(canonicalEmail(email));
    assertAdmitted(em, signInAttempt('password', subject, { address, browserHash }), now());
  }

  return {
    /** @throws TooManyAttempts while PostgreSQL would refuse it too. Reads memory only. */
    assertAdmitted: check,

    /**
     * Runs a sign-in when its turn comes.
     *
     * @throws TooManyAttempts when another attempt of its kind was refused while it waited.
     * @throws IdentityRefused `busy` when too many wait already; nothing was counted.
     */
    run<T>(request: SignInRequest, signIn: () => Promise<T>): Promise<T> {
      return (request.browser === null ? strangers : known).run(async () => {
        check(request);
        return signIn();
      });
    },
  };
}

export type SignInLimiter = ReturnType<typeof createSignInLimiter>;
