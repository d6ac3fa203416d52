import { randomUUIDv7 } from 'node:crypto';
import { sql } from 'kysely';
import { memberPermissions } from '../access/authority.ts';
import { consoleAccess, isConfirmed } from '../access/console-access.ts';
import type { Database, Queryable, Transaction } from '../db/database.ts';
import { writeLock } from '../db/locks.ts';
import { withDates } from '../db/statement.ts';
import { IdentityError } from './errors.ts';
import { ConsoleSession } from './identity.entity.ts';
import { deleteKnownBrowsers } from './known-browsers.ts';
import {
  passwordStepMinutes,
  sessionAbsoluteHours,
  sessionIdleMinutes,
  sessionSeenEverySeconds,
  sessionsPerPerson,
  stepUpMinutes,
} from './limits.ts';
import { recordPersonEntry } from './record-sign-in.ts';
import { findTokenHash, generateToken, hashToken } from './token.ts';
import type { Session, SessionRow, Visitor } from './types.ts';

/** Sessions of the console, by OWASP ASVS 5.0, V7. */

/**
 * Returns the open session of a token, or null: it never existed, has ended, was idle too long, or
 * its person's memberships no longer give access to the console. One statement returns the session,
 * its person and their permissions, and records once a minute that it was used.
 *
 * @param now - the clock: sessions end 30 minutes after their last use, and 12 hours after they began,
 * or earlier if one of the open organizations says so.
 * @param isUse - false for requests that a page sends without a person's action: these do not
 * extend the session.
 */
export async function findSession(db: Queryable, token: string, now: Date, isUse = true): Promise<Session | null> {
  const hash = findTokenHash(token);
  if (hash === null) return null;
  const at = sql`${now.toISOString()}::timestamptz`;
  const [found] = await db.query(sql<Session>`
    with found as (
      select s.id, s.person_id, s.provider_id, s.state, s.created_at, s.last_seen_at, s.expires_at, s.second_factor_at
      from console_session s
      where s.token_hash = ${hash} and s.expires_at > ${at} and s.last_seen_at > ${at} - make_interval(mins =>
        ${sessionIdleMinutes})
    ), seen as (
      update console_session s set last_seen_at = ${at} from found f
      where ${isUse} and s.id = f.id and f.last_seen_at <= ${at} - make_interval(secs => ${sessionSeenEverySeconds})
    )
    select f.id, f.person_id as "personId", f.provider_id as "providerId",
      f.provider_id is not null and exists (select from sign_in_confirmation c where c.person_id = f.person_id
        and c.organization_id is distinct from (select p.organization_id from sso_provider p
          where p.id = f.provider_id)) as "isConfined",
      i.email, f.state,
      f.created_at as "createdAt",
      f.last_seen_at as "lastSeenAt",
      e.ends_at as "expiresAt", f.second_factor_at as "secondFactorAt", m.memberships, m.unconfirmed, m.closed
    from found f
    join sign_in i on i.person_id = f.person_id
    cross join lateral (
      select count(*) as count,
        coalesce(json_agg(m.organization_id) filter (where not m.is_open and m.status = 'active'
          and not m.is_confirmed), '[]') as unconfirmed,
        coalesce(json_agg(m.organization_id) filter (where not m.is_open and m.status = 'active'
          and m.is_confirmed), '[]') as closed,
        coalesce(json_agg(json_build_object(
        'organizationId', o.id, 'organizationName', coalesce(st.display_name, o.name), 'registeredName', o.name,
        'timeZone', st.time_zone,
        'needsPasskey', coalesce(st.passkeys_required, false) and not exists (select from second_factor sf
          where sf.person_id = m.person_id and sf.kind = 'passkey'),
        'name', m.name, 'email', m.email, 'title', m.title,
        'roleKeys', array(
          select r.key from membership_role mr join role r on r.id = mr.role_id
          where mr.organization_id = m.organization_id and mr.person_id = m.person_id order by r.key),
        'permissions', array(${memberPermissions} order by p)
        ) order by coalesce(st.display_name, o.name) collate "und-x-icu", o.id) filter (where m.is_open), '[]')
          as memberships,
        coalesce(min(st.session_hours) filter (where m.is_open), ${sessionAbsoluteHours}) as session_hours
      from (select m.*, ${consoleAccess('m', 'f')} = 'open' as is_open, ${isConfirmed()} as is_confirmed
        from membership m where m.person_id = f.person_id and ${consoleAccess('m', 'f')} is not null) m
      join organization o on o.id = m.organization_id
      left join organization_setting st on st.organization_id = m.organization_id
    ) m
    cross join lateral (
      select case when f.state = 'full'
        then f.expires_at - make_interval(hours => ${sessionAbsoluteHours} - m.session_hours) else f.expires_at
      end as ends_at
    ) e
    where m.count > 0 and e.ends_at > ${at}`);
  return found === undefined ? null : withDates(found, 'createdAt', 'lastSeenAt', 'expiresAt', 'secondFactorAt');
}

/**
 * Starts a session after a correct password, or for an account of a provider, in the same transaction, under the lock
 * of the sign-in.
 * Returns its token. A person has ten at most: then the oldest ends, first of those that wait for
 * the second factor, so that a thief of the password ends few others.
 */
export async function startSession(
  tx: Transaction,
  { personId, visitor, providerId = null }: { personId: string; visitor: Visitor; providerId?: string | null },
  now: Date,
): Promise<{ token: string; sessionId: string }> {
  const token = generateToken();
  const sessionId = randomUUIDv7();
  tx.create(ConsoleSession, {
    id: sessionId,
    tokenHash: hashToken(token),
    personId,
    providerId,
    state: 'password_passed',
    createdAt: now,
    lastSeenAt: now,
    expiresAt: minutesAfter(now, passwordStepMinutes),
    address: visitor.address,
    userAgent: visitor.userAgent.slice(0, 300),
  });
  await tx.flush();
  const at = sql`${now.toISOString()}::timestamptz`;
  const ended = await tx.query(sql<{ id: string }>`
    delete from console_session where id in (
      select s.id from console_session s
      where s.person_id = ${personId} and s.expires_at > ${at}
        and s.last_seen_at > ${at} - make_interval(mins => ${sessionIdleMinutes})
      order by (s.id = ${sessionId}) desc, (s.state = 'full') desc, s.created_at desc, s.id desc
      offset ${sessionsPerPerson}) returning id`);
  for (const { id } of ended)
    await recordPersonEntry(tx, { personId, action: 'session.end_oldest', visitor, detail: { sessionId: id } });
  return { token, sessionId };
}

/**
 * Records a second factor of a session, in the same transaction: the session is `full`, its step-up
 * is fresh, and it has a new token; the old one is void.
 *
 * @throws IdentityError `session_expired` when it has ended meanwhile.
 */
export async function recordSecondFactor(tx: Transaction, sessionId: string, now: Date): Promise<{ token: string }> {
  const session = await tx.findOne(ConsoleSession, { id: sessionId, expiresAt: { $gt: now } }, writeLock);
  if (session === null) throw sessionExpired();
  const token = generateToken();
  session.recordSecondFactor(hashToken(token), now, minutesAfter(now, sessionAbsoluteHours * 60));
  await tx.flush();
  return { token };
}

const minutesAfter = (now: Date, minutes: number) => new Date(now.getTime() + minutes * 60_000);

/** Returns whether the second factor is required again before an action that needs a fresh one. */
export function needsStepUp(session: Pick<Session, 'state' | 'secondFactorAt'>, now: Date): boolean {
  if (session.state !== 'full' || session.secondFactorAt === null) return true;
  return now.getTime() - session.secondFactorAt.getTime() > stepUpMinutes * 60_000;
}

/** @throws IdentityError unless the session is `full`. */
export function assertFull(session: Pick<Session, 'state'>): void {
  if (session.state === 'full') return;
  throw new IdentityError('second_factor_needed', 'Finish signing in with your second factor first.');
}

/** @throws IdentityError when the second factor is required again first. */
export function assertSteppedUp(session: Pick<Session, 'state' | 'secondFactorAt'>, now: Date): void {
  assertFull(session);
  if (!needsStepUp(session, now)) return;
  throw new IdentityError(
    'step_up_needed',
    'Confirm your identity again. This action requires a second factor from the last 5 minutes.',
  );
}

/**
 * Rejects a change of how its person signs in from a confined session: a provider that could make a password or a
 * second factor would gain every organization that accepts them.
 *
 * @throws IdentityError `password_session_needed`
 */
export function assertNotConfined({ isConfined }: Pick<Session, 'isConfined'>): void {
  if (isConfined) throw passwordSessionNeeded();
}

export const passwordSessionNeeded = () =>
  new IdentityError(
    'password_session_needed',
    'This session began at an organization’s provider, so it can’t change how you sign in elsewhere. Sign out, then ' +
      'sign in with your password.',
  );

/** What a session may see and end: a confined one only sessions of its provider. */
const withinReach = ({ isConfined, providerId }: Session) => (isConfined ? { providerId } : {});

/** Lists the open sessions of the person, the last used first; for a confined one, those of its provider. */
export async function listSessions(db: Queryable, session: Session, now: Date): Promise<SessionRow[]> {
  assertFull(session);
  const rows = await db.find(
    ConsoleSession,
    {
      personId: session.personId,
      ...withinReach(session),
      expiresAt: { $gt: now },
      lastSeenAt: { $gt: minutesAfter(now, -sessionIdleMinutes) },
    },
    { orderBy: { lastSeenAt: 'desc', id: 'desc' } },
  );
  return rows.map(({ id, state, createdAt, lastSeenAt, expiresAt, userAgent, ...row }) => {
    const address = row.address?.split('/')[0] ?? null;
    return { id, state, createdAt, lastSeenAt, expiresAt, address, userAgent, isThis: id === session.id };
  });
}

/**
 * Ends one of the person's sessions at once. Their own by its id is a sign-out, also for a session
 * that is not `full` yet, and nothing for one that has ended meanwhile.
 *
 * @throws IdentityError `no_such_session` when the person has no other one with that id, or a confined session may
 * not see it; `second_factor_needed` for another session than their own before it is full.
 */
export async function endSession(
  database: Database,
  session: Session,
  sessionId: string,
  visitor: Visitor,
): Promise<void> {
  const isOwn = sessionId === session.id;
  if (!isOwn) assertFull(session);
  const { personId, isConfined, providerId } = session;
  await database.change(async (tx) => {
    // Locked, because it proves who signs out: it is deleted once that is recorded.
    const [found] = await tx.query(sql<{ id: string }>`
      select s.id from console_session s
      where s.person_id = ${personId} and s.id::text = ${sessionId}
        and (not ${isConfined}::boolean or s.provider_id = ${providerId}::uuid) for update`);
    if (found === undefined && isOwn) return;
    if (found === undefined)
      throw new IdentityError('no_such_session', 'This session does not exist or has already ended.');
    const action = isOwn ? 'session.sign_out' : 'session.end';
    await recordPersonEntry(tx, { personId, action, visitor, detail: { sessionId } });
    await tx.nativeDelete(ConsoleSession, { id: found.id });
  });
}

/**
 * Ends every session of the person but this one, and forgets their browsers but this one. A confined session ends
 * those of its provider. Returns how many there were.
 */
export async function endOtherSessions(database: Database, session: Session, visitor: Visitor): Promise<number> {
  assertFull(session);
  const { personId } = session;
  return database.change(async (tx) => {
    const others = { personId, ...withinReach(session), id: { $ne: session.id } };
    const ended = await tx.nativeDelete(ConsoleSession, others);
    if (!session.isConfined) await deleteKnownBrowsers(tx, personId, visitor.browser ?? null);
    await recordPersonEntry(tx, { personId, action: 'session.end_others', visitor, detail: { ended } });
    return ended;
  });
}

/** Ends a person's sessions except `exceptId`. Returns how many there were. */
export const endSessions = (tx: Transaction, personId: string, exceptId: string | null = null): Promise<number> =>
  tx.nativeDelete(ConsoleSession, { personId, ...(exceptId !== null && { id: { $ne: exceptId } }) });

/**
 * Ends the sessions of a person without any access to the console. Their rows stay until they are
 * purged: the audit log accepts the entry of a member who leaves only from a person with a session.
 */
export async function endSessionsWithoutAccess(tx: Transaction, personId: string): Promise<void> {
  await tx.query(sql`
    update console_session s set expires_at = least(s.expires_at, s.last_seen_at)
      where s.person_id = ${personId} and not exists (
        select from membership m where m.person_id = s.person_id and ${consoleAccess('m', 's')} is not null)`);
}

export const sessionExpired = () => new IdentityError('session_expired', 'Your session has expired. Sign in again.');
