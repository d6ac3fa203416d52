import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import type { Pool } from 'pg';
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible';
import type { Database } from '../db/database.ts';
import { TooManyAttemptsError } from './errors.ts';
import {
  failuresPerNetwork,
  failuresPerPerson,
  failuresPerPersonAndNetwork,
  failureWaitMinutes,
  networkWindowMinutes,
  personWindowHours,
  rejectionsInMemory,
} from './limits.ts';
import { getNetwork } from './network.ts';

/**
 * Sign-in failures, counted in PostgreSQL so that every pod uses the same counts (ASVS 6.3.1).
 *
 * A sign-in counts as a failure from its admission on, before anything is verified. So a hundred
 * concurrent ones count as a hundred, and one whose process died counts too. A complete sign-in
 * removes its person's failures from its network. A correct password alone removes none of its
 * person's, so a stolen password cannot be tried without a bound. Above a limit one attempt is
 * admitted in 15 minutes. Each process remembers such a rejection until it ends, and repeats it
 * without I/O.
 *
 * From the count of a network a step removes what it has counted there, and nothing else: the two
 * steps of a sign-in may come from two networks, or from a known browser and a stranger, and to
 * remove what was counted elsewhere would make room for failures.
 *
 * The count of a network applies to strangers only. A session, a browser with which its person has
 * recently signed in (known-browsers.ts) and the holder of a one-time link have a secret that no
 * outsider has. Each has a separate count, from any network, and adds to no other. So failures on
 * purpose block none of them.
 *
 * What a thief of a session may guess has a count of its own for each proof, of its person, whatever
 * session it comes from. Only this proof removes its failures: a proof that the thief can give, such
 * as a code of their own app, makes no room for guesses of another one.
 */

/** A sign-in that may be tried. It counts as a failure unless `clearFailure` follows. */
export interface SignInFailure {
  /** What is tried, as SHA-256 in hex: the table has no address in clear. Null: a sign-in at a provider. */
  subject: string | null;
  /** The address of a stranger, whose network counts; null when the subject has its own count. */
  address: string | null;
}

const hashParts = (...parts: string[]) => createHash('sha256').update(parts.join('\0')).digest('hex');

/** Password attempts: the address that was typed, known or not, in canonical form. */
export const passwordSubject = (email: string) => hashParts('password', email);
/** The subject of second factors at sign-in, after a correct password. */
export const factorSubject = (personId: string) => hashParts('factor', personId);

/** A step of signing in: of a stranger, or from a known browser, by the hash of its token. */
export const signInFailure = (
  step: 'password' | 'factor',
  subject: string,
  { address, browserHash }: { address: string | null; browserHash: Buffer | null },
): SignInFailure =>
  browserHash === null
    ? { subject, address }
    : { subject: hashParts('browser', step, browserHash.toString('hex')), address: null };

/** What has a count that no outsider can use up: of a person who is signed in, of a link, or of a begun sign-in. */
type OwnKind =
  | `step_up_${'totp' | 'passkey' | 'recovery_code'}`
  | 'old_password'
  | 'compromised_key'
  | 'enrolment_password'
  | 'enrolment_factor'
  | 'provider_answer';

/** An attempt of one kind, by the id of its person, or by the hash of a link or begun sign-in in hex. */
export const ownFailure = (kind: OwnKind, id: string): SignInFailure => ({
  subject: hashParts(kind, id),
  address: null,
});

/** A sign-in at a provider, from its begin to its success: counted for its network alone. */
export const providerFailure = (address: string | null): SignInFailure => ({ subject: null, address });

type Limit = 'network' | 'pair' | 'subject';

/** Returns what an attempt counts for, in the order in which it is counted. */
function listCounters({ subject, address }: SignInFailure): { limit: Limit; key: string }[] {
  if (subject === null) return [{ limit: 'network', key: hashParts('provider', getNetwork(address ?? '')) }];
  if (address === null) return [{ limit: 'pair', key: subject }];
  const network = getNetwork(address);
  return [
    { limit: 'network', key: hashParts('network', network) },
    { limit: 'pair', key: hashParts('pair', subject, network) },
    { limit: 'subject', key: subject },
  ];
}

/** The library's types lack how long (ms) a key is rejected, as far as this process knows. */
type Waits = RateLimiterPostgres & { getInMemoryBlockMsBeforeExpire(key: string): number };

/** The counts of one process's database; the table is the migration's. */
function createLimiters(pool: Pool) {
  const common = {
    storeClient: pool,
    storeType: 'pool',
    tableName: 'sign_in_failure',
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
    /** One attempt in 15 minutes; rejections are remembered in memory. */
    waits: new RateLimiterPostgres({ ...common, points: 1, duration: 0, inMemoryBlockOnConsumed: 2 }) as Waits,
    /** At most as many rejections are in memory. */
    remembered: 0,
  };
}

const limiters = new WeakMap<Pool, ReturnType<typeof createLimiters>>();
const getLimiters = ({ pool }: Database) => limiters.getOrInsertComputed(pool, createLimiters);
const hashWait = (key: string) => hashParts('wait', key);

/** Returns at most how many rejections this process remembers. */
export const rememberedRejections = (database: Database): number => getLimiters(database).remembered;

/** The library rejects with a result when a limit is exceeded, and with an error otherwise. */
function rejectionOnly(thrown: unknown): RateLimiterRes {
  if (thrown instanceof RateLimiterRes) return thrown;
  throw thrown;
}

/**
 * Rejects what PostgreSQL has rejected until later. Reads memory only.
 *
 * @throws TooManyAttemptsError
 */
export function assertAdmitted(database: Database, failure: SignInFailure, now: Date): void {
  const { waits } = getLimiters(database);
  const rejectedMs = Math.max(
    ...listCounters(failure).map(({ key }) => waits.getInMemoryBlockMsBeforeExpire(hashWait(key))),
  );
  if (rejectedMs > 0) throw new TooManyAttemptsError(new Date(now.getTime() + rejectedMs), now);
}

/**
 * Admits a sign-in and counts it as a failure, or says when one is admitted.
 *
 * @throws TooManyAttemptsError
 */
export async function countFailure(database: Database, failure: SignInFailure, now: Date): Promise<void> {
  assertAdmitted(database, failure, now);
  const limiters = getLimiters(database);
  for (const { limit, key } of listCounters(failure)) {
    const counted = await limiters[limit].consume(key).catch(rejectionOnly);
    if (counted.consumedPoints <= limiters[limit].points) continue;
    // A wait ends with the window of its count, from which on all pods admit again.
    const windowSeconds = Math.max(1, Math.floor(counted.msBeforeNext / 1000));
    const customDuration = Math.min(failureWaitMinutes * 60, windowSeconds);
    const waited = await limiters.waits.consume(hashWait(key), 1, { customDuration }).catch(rejectionOnly);
    if (waited.consumedPoints === 1) continue;
    // A forgotten rejection costs one statement, and admits nothing.
    if (waited.consumedPoints > 1 && limiters.remembered++ >= rejectionsInMemory) {
      limiters.waits.deleteInMemoryBlockedAll();
      limiters.remembered = 0;
    }
    throw new TooManyAttemptsError(new Date(now.getTime() + Math.max(1, waited.msBeforeNext)), now);
  }
}

/**
 * Removes an attempt after a success, from some of its counts or all: the failures of its person
 * from the same network (`pair`), and the attempt alone from the other counts, while its window
 * lasts: the library's `reward` would begin one below 0. Call it after the transaction that accepts
 * it. When PostgreSQL does not answer, it stays counted, which rejects
 * nothing by itself.
 */
export async function clearFailure(
  database: Database,
  failure: SignInFailure,
  limits: readonly Limit[] = ['network', 'pair', 'subject'],
): Promise<void> {
  const { waits, ...counts } = getLimiters(database);
  const clear = ({ limit, key }: { limit: Limit; key: string }): Promise<unknown> =>
    limit === 'pair' ? Promise.all([counts.pair.delete(key), waits.delete(hashWait(key))]) : removeOne(database, key);
  for (const count of listCounters(failure)) if (limits.includes(count.limit)) await clear(count).catch(() => {});
}

/**
 * Removes an attempt that was no failure but proves nothing: failures before it stay counted. If it
 * was the one that was admitted above a limit, another one is.
 */
export async function withdrawFailure(database: Database, failure: SignInFailure): Promise<void> {
  const { waits } = getLimiters(database);
  for (const { key } of listCounters(failure))
    await Promise.all([removeOne(database, key), waits.delete(hashWait(key))]).catch(() => {});
}

const removeOne = (database: Database, key: string): Promise<unknown> =>
  database.query(sql`update sign_in_failure set points = points - 1
    where key = ${key} and points > 0 and expire > ${Date.now()}`);
