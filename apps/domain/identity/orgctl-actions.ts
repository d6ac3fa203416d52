import { sql } from 'kysely';
import { findMember } from '../access/actor.ts';
import { isConfirmed } from '../access/console-access.ts';
import { brokenConstraint } from '../db/constraint.ts';
import type { Database, Queryable, Transaction } from '../db/database.ts';
import { lockOrganization, writeLock } from '../db/locks.ts';
import { withDates } from '../db/statement.ts';
import { confirmSignIn } from './confirm-sign-in.ts';
import { assertEmail } from './email.ts';
import { IdentityError } from './errors.ts';
import { Enrolment, KnownBrowser, RecoveryCode, SecondFactor, SignIn } from './identity.entity.ts';
import { deleteKnownBrowsers } from './known-browsers.ts';
import { recordPersonEntry } from './record-sign-in.ts';
import { endSessions } from './sessions.ts';

/**
 * What operators do with a person's sign-in, at the command line. A sign-in is valid for the whole
 * region, so no organization may do any of it. Each action is recorded, as an operator's, in the
 * audit log of every organization whose member the person is.
 */

/** The person of an address; `sessions` are open, and only `confirmed` memberships are open. */
interface SignInDetails {
  personId: string;
  email: string;
  createdAt: Date;
  sessions: number;
  memberships: {
    organizationId: string;
    organizationName: string;
    name: string;
    status: string;
    accepted: boolean;
    confirmed: boolean;
  }[];
}

/** @throws IdentityError `no_such_sign_in` when no person signs in with the address, `email_malformed`. */
export async function getSignIn(
  db: Queryable,
  email: string,
  now: () => Date = () => new Date(),
): Promise<SignInDetails> {
  const [found] = await db.query(sql<SignInDetails>`
    select i.person_id as "personId", i.email, i.created_at as "createdAt",
      (select count(*)::int from console_session s where s.person_id = i.person_id
        and s.expires_at > ${now().toISOString()}::timestamptz) as sessions,
      (select coalesce(json_agg(json_build_object('organizationId', o.id, 'organizationName', o.name, 'name', m.name,
            'status', m.status, 'accepted', m.accepted, 'confirmed', ${isConfirmed()})
          order by o.name collate "und-x-icu", o.id), '[]')
        from membership m join organization o on o.id = m.organization_id
          where m.person_id = i.person_id and m.status <> 'left') as memberships
    from sign_in i where i.email = ${assertEmail(email)}`);
  if (found === undefined) throw noSuchSignIn();
  return withDates(found, 'createdAt');
}

/**
 * Confirms for an organization that its active member signs in with an address. `confirmed` is
 * false when it was confirmed before. It is for a sign-in that was enrolled by another
 * organization; a person without one is invited instead.
 *
 * @throws IdentityError `no_such_sign_in`, `not_an_active_member`, `email_malformed`.
 */
export async function confirmSignInByAddress(
  database: Database,
  { email, organizationId }: { email: string; organizationId: string },
  now: () => Date = () => new Date(),
): Promise<{ personId: string; confirmed: boolean }> {
  return database.change(async (tx) => {
    // In the order of a link that is used: the organization, then the sign-in.
    await lockOrganization(tx, organizationId);
    const personId = await lockSignIn(tx, email);
    const member = await findMember(tx, organizationId, personId);
    if (member?.status !== 'active')
      throw new IdentityError(
        'not_an_active_member',
        'The person with this address is not an active member of the organization. Run orgctl person invite instead.',
      );
    return { personId, confirmed: await confirmSignIn(tx, { organizationId, personId, by: 'orgctl' }, now()) };
  });
}

/**
 * Ends every session of a person at once (ASVS 7.4.5) and deletes their known browsers; password
 * and factors stay. `ended`: the number of ended sessions.
 *
 * @throws IdentityError `no_such_sign_in`, `email_malformed`
 */
export async function endSessionsByAddress(
  database: Database,
  email: string,
): Promise<{ personId: string; ended: number }> {
  return database.change(async (tx) => {
    const personId = await lockSignIn(tx, email);
    const ended = await endSessions(tx, personId);
    await deleteKnownBrowsers(tx, personId, null);
    const entry = { personId, action: 'session.end_all', visitor: null, by: 'orgctl', detail: { ended } } as const;
    await recordPersonEntry(tx, entry);
    return { personId, ended };
  });
}

/**
 * Gives a person another address to sign in with. Everything else stays, including the address in
 * their organizations.
 *
 * @throws IdentityError `no_such_sign_in`, `email_malformed`, `email_taken`.
 */
export async function changeAddress(
  database: Database,
  { email, to }: { email: string; to: string },
): Promise<{ personId: string; email: string }> {
  const address = assertEmail(to);
  try {
    return await database.change(async (tx) => {
      const personId = await lockSignIn(tx, email);
      await tx.nativeUpdate(SignIn, { personId }, { email: address });
      await recordPersonEntry(tx, { personId, action: 'sign_in.change_address', visitor: null, by: 'orgctl' });
      return { personId, email: address };
    });
  } catch (error) {
    if (brokenConstraint(error) === 'sign_in_email_unique')
      throw new IdentityError('email_taken', 'Another person signs in with the new address.');
    throw error;
  }
}

/**
 * Takes an address back from a person who signs in with it and cannot prove that it is theirs.
 * Their password, factors, recovery codes, sessions, open links and the organizations'
 * confirmations are deleted, and the address is free. They stay a member, and can be enrolled
 * again. It requires the rights of the database's owner: no login of an app can delete how a person
 * signs in.
 *
 * @throws IdentityError `no_such_sign_in`, `email_malformed`.
 */
export async function freeAddress(database: Database, email: string): Promise<{ personId: string; ended: number }> {
  return database.change(async (tx) => {
    const personId = await lockSignIn(tx, email);
    const ended = await endSessions(tx, personId);
    // Before the organizations' confirmations are deleted with the sign-in: they determine whose
    // log records it.
    await recordPersonEntry(tx, { personId, action: 'sign_in.free_address', visitor: null, by: 'orgctl' });
    for (const entity of [Enrolment, RecoveryCode, SecondFactor, KnownBrowser, SignIn])
      await tx.nativeDelete(entity as typeof SignIn, { personId });
    return { personId, ended };
  });
}

async function lockSignIn(tx: Transaction, email: string): Promise<string> {
  const found = await tx.findOne(SignIn, { email: assertEmail(email) }, writeLock);
  if (found === null) throw noSuchSignIn();
  return found.personId;
}

const noSuchSignIn = () => new IdentityError('no_such_sign_in', 'No person signs in with this address in this region.');
