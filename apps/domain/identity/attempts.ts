import { createHash } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Pool } from 'pg';
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import { poolOf } from '../db/connect.ts';
import {
  attemptWaitMinutes,
  failuresPerNetwork,
  failuresPerPerson,
  failuresPerPersonAndNetwork,
  networkWindowMinutes,
  personWindowHours,
  refusalsInMemory,
} from './limits.ts';
import { networkOf } from './network.ts';
import { TooManyAttempts } from './refused.ts';

/**
 * Attempts to sign in, counted in PostgreSQL so that every pod uses the same counts (ASVS 6.3.1).
 *
 * An attempt counts as a failure from its admission on, before anything is verified. So a hundred
 * concurrent attempts count as a hundred, and one whose process died counts too. A complete sign-in
 * removes its person's failures from its network. A correct password alone removes nothing, so a
 * stolen password cannot be tried without a bound. Above a limit one attempt is admitted in 15
 * minutes. Each process remembers such a refusal until it ends, and repeats it without I/O.
 *
 * The count of a network applies to strangers only. A session, a browser with which its person has
 * recently signed in (known-browsers.ts) and the holder of a one-time link have a secret that no
 * outsider has. Each has a separate count, from any network, and adds to no other. So failures on
 * purpose block none of them.
 */

/** An attempt that may be made. It stays a failure unless `clearAttempts` follows. */
export interface Attempt {
  /** What is tried, as SHA-256 in hex: the table has no address in clear. */
  subject: string;
  /** The address of a stranger, whose network counts; null when the subject has its own count. */
  address: string | null;
}

const keyOf = (...parts: string[]) => createHash('sha256').update(parts.join('\0')).digest('hex');

/** Password attempts: the address that was typed, known or not, in canonical form. */
export const passwordSubject = (email: string) => keyOf('password', email);
/** The subject of second factors at sign-in, after a correct password. */
export const factorSubject = (personId: string) => keyOf('factor', personId);
const browserSubject = (step: 'password' | 'factor', tokenHash: Buffer) =>
  keyOf('browser', step, tokenHash.toString('hex'));
/** The subject of reports of leaked keys, which are misses of one person. */
export const reportSubject = (personId: string) => keyOf('compromised_key', personId);
/** The subject of a one-time link's second factor. */
export const enrolmentSubject = (tokenHash: Buffer) => keyOf('enrolment', tokenHash.toString('hex'));

/** A step of signing in: of a stranger, or from a known browser, by the hash of its token. */
export const signInAttempt = (
  step: 'password' | 'factor',
  subject: string,
  { address, browserHash }: { address: string | null; browserHash: Buffer | null },
): Attempt =>
  browserHash === null ? { subject, address } : { subject: browserSubject(step, browserHash), address: null };
/** An attempt within a session, which no outsider can use up. */
export const stepUpAttempt = (sessionId: string): Attempt => ({ subject: keyOf('step_up', sessionId), address: null });

type Limit = 'network' | 'pair' | 'subject';

/** Returns what an attempt counts for, in the order in which it is counted. */
function countsOf({ subject, address }: Attempt): { limit: Limit; key: string }[] {
  if (address === null) return [{ limit: 'pair', key: subject }];
  const network = networkOf(address);
  return [
    { limit: 'network', key: keyOf('network', network) },
    { limit: 'pair', key: keyOf('pair', subject, network) },
    { limit: 'subject', key: subject },
  ];
}

/** The counts of one process's pool; the table is the migration's. */
function createLimiters(pool: Pool) {
  const common = {
    storeClient: pool,
    storeType: 'pool',
    tableName: 'attempt',
    tableCreated: true,
    keyPrefix: '',
    clearExpiredByTimeout: false, // the worker purges it
  };
  // The attempt that reaches a limit is the first of those that wait, so a count has one less.
  const count = (limit: number, hours: number) =>
    new RateLimiterPostgres({ ...common, points: limit - 1, duration: hours * 3600 });
  return {
    network: count(failuresPerNetwork, networkWindowMinutes / 60),
    pair: count(failuresPerPersonAndNetwork, personWindowHours),
    subject: count(failuresPerPerson, personWindowHours),
    waits: new Waits({ ...common, points: 1, duration: attemptWaitMinutes * 60, inMemoryBlockOnConsumed: 2 }),
  };
}

/** One attempt in 15 minutes. Remembers refusals in memory, of which there is a hard bound. */
class Waits extends RateLimiterPostgres {
  #remembered = 0;
  /**
   * Returns how long (ms) a key is refused, as far as this process knows. The library's types lack
   * it.
   */
  declare readonly getInMemoryBlockMsBeforeExpire: (key: string) => number;

  /**
   * Counts an attempt above a limit. Returns how long (ms) it is refused; 0 admits it. A wait ends
   * with the window of its count (`windowMs`), from which on all pods admit again.
   */
  async refuse(key: string, windowMs: number): Promise<number> {
    const seconds = Math.max(1, Math.min(attemptWaitMinutes * 60, Math.floor(windowMs / 1000)));
    const result = await this.consume(key, 1, { customDuration: seconds }).catch(refusalOnly);
    if (result.consumedPoints === 1) return 0;
    // A forgotten refusal costs one statement, and admits nothing.
    if (result.consumedPoints > 1 && this.#remembered++ >= refusalsInMemory) {
      this.deleteInMemoryBlockedAll();
      this.#remembered = 0;
    }
    return Math.max(1, result.msBeforeNext);
  }

  /** At most as many refusals are in memory. */
  get remembered(): number {
    return this.#remembered;
  }
}

/** The library rejects with a result when a limit is exceeded, and with an error otherwise. */
function refusalOnly(thrown: unknown): RateLimiterRes {
  if (thrown instanceof RateLimiterRes) return thrown;
  throw thrown;
}

const limiters = new WeakMap<Pool, ReturnType<typeof createLimiters>>();

function limitersOf(em: EntityManager): ReturnType<typeof createLimiters> {
  const pool = poolOf(em);
  const found = limiters.get(pool) ?? createLimiters(pool);
  limiters.set(pool, found);
  return found;
}

const waitOf = (key: string) => keyOf('wait', key);

/** Returns at most how many refusals this process remembers. */
export const rememberedRefusals = (em: EntityManager): number => limitersOf(em).waits.remembered;

/**
 * Refuses what PostgreSQL has refused until later. Reads memory only.
 *
 * @throws TooManyAttempts
 */
export function assertAdmitted(em: EntityManager, attempt: Attempt, now: Date): void {
  const { waits } = limitersOf(em);
  const refusedMs = Math.max(...countsOf(attempt).map(({ key }) => waits.getInMemoryBlockMsBeforeExpire(waitOf(key))));
  if (refusedMs > 0) throw new TooManyAttempts(new Date(now.getTime() + refusedMs), now);
}

/**
 * Admits an attempt and counts it, or says when one is admitted.
 *
 * @throws TooManyAttempts
 */
export async function admitAttempt(em: EntityManager, attempt: Attempt, now: Date): Promise<void> {
  assertAdmitted(em, attempt, now);
  const { waits, ...counts } = limitersOf(em);
  for (const { limit, key } of countsOf(attempt)) {
    const { consumedPoints, msBeforeNext } = await counts[limit].consume(key).catch(refusalOnly);
    if (consumedPoints <= counts[limit].points) continue;
    const refusedMs = await waits.refuse(waitOf(key), msBeforeNext);
    if (refusedMs > 0) throw new TooManyAttempts(new Date(now.getTime() + refusedMs), now);
  }
}

/**
 * Removes attempts after a success: the failures of their person from the same network, and these
 * attempts from the other counts. Call it after the transaction that accepts them. When PostgreSQL
 * does not answer, they stay counted, which refuses nothing by itself.
 */
export async function clearAttempts(em: EntityManager, attempts: readonly Attempt[]): Promise<void> {
  const { waits, ...counts } = limitersOf(em);
  const clear = ({ limit, key }: { limit: Limit; key: string }): Promise<unknown> =>
    limit === 'pair' ? Promise.all([counts.pair.delete(key), waits.delete(waitOf(key))]) : counts[limit].reward(key);
  for (const count of attempts.flatMap(countsOf)) await clear(count).catch(() => {});
}
