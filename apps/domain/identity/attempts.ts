import { randomUUIDv7 } from 'node:crypto';
import type { EntityManager } from '@mikro-orm/postgresql';
import { query, sql } from '../db/statement.ts';
import {
  failuresPerNetwork,
  failuresPerPerson,
  failuresPerPersonAndNetwork,
  networkWindowMinutes,
  personWindowHours,
} from './limits.ts';
import { networkOf } from './network.ts';
import { type Admissions, TooManyAttempts } from './refused.ts';
import { hashOf } from './token.ts';
import { findAdmission } from './wait.ts';

/**
 * Attempts to sign in, counted in PostgreSQL so that every pod uses the same counts (ASVS 6.3.1).
 *
 * An attempt counts as a failure from its admission on, before anything is verified. So a hundred
 * concurrent attempts count as a hundred, and one whose process died counts too. A complete sign-in
 * removes its person's failures from its network. A correct password alone removes nothing, so a
 * stolen password cannot be tried without a bound. Above a limit each attempt waits for the one
 * before it, 30 s, then twice as long each time, at most 15 minutes. Attempts that are refused
 * while waiting do not count, so waiting always ends.
 *
 * The count of a network applies to strangers only. A session, a browser with which its person has
 * recently signed in (known-browsers.ts) and the holder of a one-time link have a secret that no
 * outsider has. Each has a separate count, from any network, and adds to no other. So failures on
 * purpose block none of them. From all other browsers together, a person with too many failures has
 * one attempt in 15 minutes while the failures continue.
 */

/** An attempt that may be made. It stays a failure unless `deleteFailures` follows. */
export interface Attempt {
  subject: Buffer;
  /** The address of a stranger, whose network counts; null when the subject has its own count. */
  address: string | null;
}

/** Password attempts: the address that was typed, known or not, as it is looked up. */
export const passwordSubject = (folded: string) => hashOf(`password\0${folded}`);
/** The subject of second factors at sign-in, after a correct password. */
export const factorSubject = (personId: string) => hashOf(`factor\0${personId}`);
/** The subject of passwords and second factors at sign-in from a known browser. */
export const browserSubject = (step: 'password' | 'factor', tokenHash: Buffer) =>
  hashOf(`browser\0${step}\0${tokenHash.toString('hex')}`);
/** The subject of passwords and second factors within a session. */
export const stepUpSubject = (sessionId: string) => hashOf(`step_up\0${sessionId}`);
/** The subject of a one-time link's second factor. */
export const enrolmentSubject = (tokenHash: Buffer) => hashOf(`enrolment\0${tokenHash.toString('hex')}`);

/**
 * Admits an attempt, or says when one is admitted. Attempts of one network, and of one subject, are
 * admitted one after another.
 *
 * @throws TooManyAttempts
 */
export async function admitAttempt(em: EntityManager, attempt: Attempt, now: Date): Promise<void> {
  const refused = await em.fork().transactional(async (tx) => {
    const network = attempt.address === null ? null : networkOf(attempt.address);
    await query(tx)`select lock_sign_ins(${attempt.subject.toString('hex')}::text, ${network}::text)`;
    const admissions = findAdmissions(await listFailures(tx, attempt, now), now);
    // A limit that admits an attempt continues to admit it: all of them do from the last of these
    // times on.
    const retryAt = new Date(Math.max(...Object.values(admissions).map((at) => at.getTime())));
    if (retryAt > now) return new TooManyAttempts(retryAt, now, admissions);
    await query(tx)`
      insert into sign_in_attempt (id, subject, network, at)
      values (${randomUUIDv7()}, ${attempt.subject}, ${networkSql(attempt)}, ${now.toISOString()}::timestamptz)`;
    return null;
  });
  if (refused !== null) throw refused;
}

/** Deletes a person's failures from the same network after a success. Those elsewhere count on. */
export async function deleteFailures(tx: EntityManager, attempt: Attempt): Promise<void> {
  await query(tx)`
    delete from sign_in_attempt a
    where a.subject = ${attempt.subject} and a.network is not distinct from ${networkSql(attempt)}`;
}

/** Deletes a session's attempts for its password when its second step completes. */
export async function deletePasswordFailures(
  tx: EntityManager,
  sessionId: string,
  browserHash: Buffer | null,
): Promise<void> {
  const [first] = await query<{ folded: string; address: string | null }>(tx)`
    select lower(i.email) as folded, host(s.address) as address
    from console_session s join sign_in i on i.person_id = s.person_id where s.id = ${sessionId}`;
  if (first !== undefined) await deleteFailures(tx, { subject: passwordSubject(first.folded), address: first.address });
  if (browserHash !== null)
    await deleteFailures(tx, { subject: browserSubject('password', browserHash), address: null });
}

/** Returns the IPv4 address, or the /64 of an IPv6 address. */
const networkSql = ({ address }: Attempt) =>
  sql`(select case family(a) when 6 then network(set_masklen(a, 64)) else network(a) end
    from (select ${address}::inet) as given (a))`;

/** Times (ms) of the failures that count for an attempt, oldest first, by limit. */
interface Failures {
  ofSubject: number[];
  ofPair: number[];
  ofNetwork: number[];
}

async function listFailures(tx: EntityManager, attempt: Attempt, now: Date): Promise<Failures> {
  const at = sql`${now.toISOString()}::timestamptz`;
  // Bounded: above its limit, a count grows by one attempt in 15 minutes.
  const [failures] = await query<Failures>(tx)`
    with given as (select ${networkSql(attempt)} as network),
    of_subject as (
      select a.at, a.network is not distinct from g.network as "isPair"
      from given g join sign_in_attempt a on a.subject = ${attempt.subject}
        and a.at > ${at} - make_interval(hours => ${personWindowHours})
    ),
    of_network as (
      select a.at
      from given g join sign_in_attempt a on a.network = g.network
        and a.at > ${at} - make_interval(mins => ${networkWindowMinutes})
    )
    select
      array(select (extract(epoch from at) * 1000)::float8 from of_subject order by at) as "ofSubject",
      array(select (extract(epoch from at) * 1000)::float8 from of_subject where "isPair" order by at) as "ofPair",
      array(select (extract(epoch from at) * 1000)::float8 from of_network order by at) as "ofNetwork"`;
  if (failures === undefined) throw new Error('a select without a table gave no row');
  return failures;
}

function findAdmissions({ ofSubject, ofPair, ofNetwork }: Failures, now: Date): Admissions {
  const personWindowMs = personWindowHours * 3_600_000;
  const networkWindowMs = networkWindowMinutes * 60_000;
  const find = (limit: number, windowMs: number, failuresMs: number[]) =>
    new Date(findAdmission({ limit, windowMs, failuresMs }, now.getTime()));
  return {
    subject: find(failuresPerPerson, personWindowMs, ofSubject),
    pair: find(failuresPerPersonAndNetwork, personWindowMs, ofPair),
    network: find(failuresPerNetwork, networkWindowMs, ofNetwork),
  };
}
