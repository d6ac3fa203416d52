import { randomUUIDv7 } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import { sql } from 'kysely';
import {
  failuresPerNetwork,
  failuresPerPerson,
  failuresPerPersonAndNetwork,
  firstWaitSeconds,
  longestWaitSeconds,
  networkWindowMinutes,
  personWindowHours,
} from './limits.ts';
import { IdentityRefused } from './refused.ts';
import { hashOf } from './token.ts';

/**
 * Attempts to sign in, counted in PostgreSQL so that every pod counts the same ones (ASVS 6.3.1).
 *
 * An attempt counts as a failure from the moment it is admitted, before anything is verified: a hundred at once are a
 * hundred, and one whose process died counts too. Success removes the failures of its person from its network. Above a
 * limit each attempt waits for the one before it, 30 s, then twice as long each time, 15 minutes at most; attempts
 * refused while waiting do not count, so waiting always ends.
 *
 * The count of a network applies to strangers only. A session, a browser that its person has signed in with lately
 * (known-browsers.ts) and the holder of a one-time link prove themselves by a secret that no outsider has: each counts
 * by itself, from whatever network, and counts for none. So failing on purpose blocks none of them. From all other
 * browsers together, a person with too many failures has one attempt in 15 minutes for as long as the failing goes on.
 */

/** An attempt that may be made. It stays a failure unless `forgetFailures` follows. */
export interface Attempt {
  subject: Buffer;
  /** The address whose network's count applies, for a stranger; null when the subject counts by itself. */
  address: string | null;
}

/** Whose attempts are counted together: a password's by the address that was typed, known or not, in the form that it is looked up by (`foldAddress`). */
export const passwordSubject = (folded: string) => hashOf(`password\0${folded}`);
/** Second factors at the door, for a person whose password was right. */
export const factorSubject = (personId: string) => hashOf(`factor\0${personId}`);
/** Passwords and second factors at the door from a browser that the person has signed in with. */
export const browserSubject = (step: 'password' | 'factor', tokenHash: Buffer) =>
  hashOf(`browser\0${step}\0${tokenHash.toString('hex')}`);
/** Passwords and second factors asked for inside a session. */
export const stepUpSubject = (sessionId: string) => hashOf(`step_up\0${sessionId}`);
/** A one-time link's second factor. */
export const enrolmentSubject = (tokenHash: Buffer) => hashOf(`enrolment\0${tokenHash.toString('hex')}`);

interface Counts {
  subjectCount: number;
  subjectLast: Date | string | null;
  pairCount: number;
  pairLast: Date | string | null;
  networkCount: number;
  networkLast: Date | string | null;
}

/**
 * Admits an attempt, or says from when one is. Attempts of one network, and of one subject, are admitted one after the other.
 *
 * @throws IdentityRefused `too_many_attempts`, with `retryAt`.
 */
export async function admitAttempt(em: EntityManager, attempt: Attempt, now: Date): Promise<void> {
  const retryAt = await em.fork().transactional(async (tx) => {
    if (attempt.address !== null) await lock(tx, `network.${attempt.address}`);
    await lock(tx, `subject.${attempt.subject.toString('hex')}`);
    const until = waitUntil(await count(tx, attempt, now));
    if (until !== null && until > now) return until;
    await sql`
      insert into sign_in_attempt (id, subject, network, at)
      values (${randomUUIDv7()}, ${attempt.subject}, ${networkOf(attempt)}, ${now.toISOString()}::timestamptz)`.execute(
      tx.getKysely(),
    );
    return null;
  });
  if (retryAt !== null) throw tooManyAttempts(retryAt, now);
}

/** After a success: what failed for the same person from the same network no longer counts. Elsewhere an attacker's failures go on counting. */
export async function forgetFailures(tx: EntityManager, attempt: Attempt): Promise<void> {
  await sql`
    delete from sign_in_attempt a
    where a.subject = ${attempt.subject} and a.network is not distinct from ${networkOf(attempt)}`.execute(
    tx.getKysely(),
  );
}

/** The IPv4 address, or the /64 of an IPv6 one. */
const networkOf = ({ address }: Attempt) =>
  sql`(select case family(a) when 6 then network(set_masklen(a, 64)) else network(a) end from (select ${address}::inet) as given (a))`;

async function lock(tx: EntityManager, name: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended('org_api.sign_in.' || ${name}::text, 0))`.execute(
    tx.getKysely(),
  );
}

async function count(tx: EntityManager, attempt: Attempt, now: Date): Promise<Counts> {
  const at = sql`${now.toISOString()}::timestamptz`;
  const { rows } = await sql<Counts>`
    with given as (select ${networkOf(attempt)} as network),
    of_subject as (
      select count(*)::int as "subjectCount", max(a.at) as "subjectLast",
        (count(*) filter (where a.network is not distinct from g.network))::int as "pairCount",
        max(a.at) filter (where a.network is not distinct from g.network) as "pairLast"
      from given g left join sign_in_attempt a on a.subject = ${attempt.subject} and a.at > ${at} - make_interval(hours => ${personWindowHours})
      where a.id is not null
    ),
    of_network as (
      select count(*)::int as "networkCount", max(a.at) as "networkLast"
      from given g join sign_in_attempt a on a.network = g.network and a.at > ${at} - make_interval(mins => ${networkWindowMinutes})
    )
    select * from of_subject, of_network`.execute(tx.getKysely());
  const [counts] = rows;
  if (counts === undefined) throw new Error('an aggregate gave no row');
  return counts;
}

/** When the next attempt may be made, by each of the three limits; null when none is reached. */
function waitUntil(counts: Counts): Date | null {
  const moments = [
    waitOf(counts.pairCount, failuresPerPersonAndNetwork, counts.pairLast),
    waitOf(counts.subjectCount, failuresPerPerson, counts.subjectLast),
    waitOf(counts.networkCount, failuresPerNetwork, counts.networkLast),
  ].filter((moment) => moment !== null);
  return moments.length === 0 ? null : new Date(Math.max(...moments));
}

function waitOf(failures: number, limit: number, last: Date | string | null): number | null {
  if (failures < limit || last === null) return null;
  const seconds = Math.min(firstWaitSeconds * 2 ** Math.min(failures - limit, 20), longestWaitSeconds);
  return new Date(last).getTime() + seconds * 1000;
}

function tooManyAttempts(retryAt: Date, now: Date): IdentityRefused {
  const minutes = Math.ceil((retryAt.getTime() - now.getTime()) / 60_000);
  return new IdentityRefused(
    'too_many_attempts',
    `Too many attempts have failed. Try again in ${minutes === 1 ? 'a minute' : `${minutes} minutes`}.`,
    retryAt,
  );
}
