import { sql } from 'kysely';
import { consoleAccess } from '../access/console-access.ts';
import { brokenConstraint } from '../db/constraint.ts';
import type { Database, Queryable, Transaction } from '../db/database.ts';
import { writeLock } from '../db/locks.ts';
import { IdentityError } from './errors.ts';
import { SignIn } from './identity.entity.ts';
import { providerStepMinutes } from './limits.ts';
import { isLinkValid } from './link-validity.ts';
import { recordPersonEntry } from './record-sign-in.ts';
import { assertFull, startSession } from './sessions.ts';
import { findTokenHash, generateToken, hashToken } from './token.ts';
import type { Session, Visitor } from './types.ts';

/**
 * Signing in with the provider of an organization, the first of two steps. A provider names an account (`subject`); a
 * person has it only by the organization's own link, or by a full session that linked it. No address and no name that
 * a provider sends is asked for, so none can be believed.
 */

/** What a browser takes to the provider and has to bring back. */
export interface ProviderChallenge {
  state: string;
  nonce: string;
  verifier: string;
}

/** What the provider's answer is for. */
export type ProviderPurpose =
  | { kind: 'sign_in' }
  | { kind: 'link'; session: Session }
  | { kind: 'enrol'; token: string };

/** A sign-in that was begun, as its answer finds it. */
export interface WaitingSignIn extends ProviderChallenge {
  providerId: string;
  linkHash: Buffer | null;
  sessionId: string | null;
  returnTo: string;
}

/** Stores a sign-in that goes to the provider now. Returns the token by which its browser is known. */
export async function storeWaitingSignIn(
  database: Database,
  begun: ProviderChallenge & { providerId: string; purpose: ProviderPurpose; returnTo: string },
  now: Date,
): Promise<string> {
  const { providerId, state, nonce, verifier, purpose, returnTo } = begun;
  const token = generateToken();
  const linkHash = purpose.kind === 'enrol' ? findTokenHash(purpose.token) : null;
  const sessionId = purpose.kind === 'link' ? purpose.session.id : null;
  const expiresAt = new Date(now.getTime() + providerStepMinutes * 60_000);
  await database.query(sql`
    insert into sso_waiting
      (token_hash, provider_id, state, nonce, verifier, link_hash, session_id, return_to, expires_at)
    values (${hashToken(token)}, ${providerId}::uuid, ${state}, ${nonce}, ${verifier}, ${linkHash}, ${sessionId}::uuid,
      ${returnTo}, ${expiresAt.toISOString()}::timestamptz)`);
  return token;
}

/**
 * Returns the sign-in that a browser has begun, and deletes it before its answer is judged: an answer works once, also
 * a wrong one.
 *
 * @throws IdentityError `sign_in_rejected` when this browser has begun none, or too long ago.
 */
export async function consumeWaitingSignIn(database: Database, token: string, now: Date): Promise<WaitingSignIn> {
  const hash = findTokenHash(token);
  const [waiting] =
    hash === null
      ? []
      : await database.query(sql<WaitingSignIn & { isInTime: boolean }>`
          delete from sso_waiting where token_hash = ${hash}
          returning provider_id as "providerId", state, nonce, verifier, link_hash as "linkHash",
            session_id as "sessionId", return_to as "returnTo",
            expires_at > ${now.toISOString()}::timestamptz as "isInTime"`);
  if (waiting?.isInTime !== true)
    throw new IdentityError('sign_in_rejected', 'This sign-in was not started in this browser, or too long ago.');
  return waiting;
}

/**
 * Starts a session for the account that a provider has named. It can only verify a second factor, and opens the
 * provider's organization only.
 *
 * @throws IdentityError `sign_in_rejected` when no active member has the account.
 */
export async function signInWithProvider(
  database: Database,
  { providerId, subject, visitor }: { providerId: string; subject: string; visitor: Visitor },
  now: () => Date = () => new Date(),
): Promise<{ token: string }> {
  return database
    .change(async (tx) => {
      const personId = await findMemberOfAccount(tx, providerId, subject);
      if (personId === null) throw unknownAccount();
      await tx.findOne(SignIn, { personId }, writeLock);
      const { token } = await startSession(tx, { personId, visitor, providerId }, now());
      await recordPersonEntry(tx, { personId, action: 'sign_in.provider', visitor, detail: { providerId } });
      return { token };
    })
    .catch((error: unknown) => {
      throw brokenConstraint(error) === 'console_session_provider' ? unknownAccount() : error;
    });
}

/** Finds the active member of the provider's organization with an account; null when none has it. */
async function findMemberOfAccount(db: Queryable, providerId: string, subject: string): Promise<string | null> {
  const [row] = await db.query(sql<{ personId: string }>`
    select s.person_id as "personId"
    from sso_subject s
    join sso_provider p on p.id = s.provider_id
    join membership m on m.organization_id = p.organization_id and m.person_id = s.person_id
    where s.provider_id = ${providerId}::uuid and s.subject = ${subject} and ${consoleAccess()} = 'open'`);
  return row?.personId ?? null;
}

/**
 * Links the account that a provider has named to the person of a full session, who must be an active member of its
 * organization. It replaces their other account there. The session is the one that began it, with a fresh second
 * factor.
 *
 * @throws IdentityError `sign_in_rejected`, `account_in_use` when another member has the account.
 */
export async function linkAccount(
  database: Database,
  linked: { providerId: string; subject: string; sessionId: string; session: Session | null; visitor: Visitor },
  now: () => Date = () => new Date(),
): Promise<void> {
  const { providerId, subject, sessionId, session, visitor } = linked;
  if (session === null || session.id !== sessionId) throw unknownAccount();
  assertFull(session);
  const { personId } = session;
  await database
    .change(async (tx) => {
      const [member] = await tx.query(sql`
        select from sso_provider p join membership m on m.organization_id = p.organization_id
        where p.id = ${providerId}::uuid and m.person_id = ${personId} and ${consoleAccess()} = 'open'`);
      if (member === undefined) throw unknownAccount();
      await insertSubject(tx, { providerId, subject, personId }, now());
      await recordPersonEntry(tx, { personId, action: 'sign_in.link_provider', visitor, detail: { providerId } });
    })
    .catch((error: unknown) => {
      throw findAccountProblem(error);
    });
}

/** Stores an account of a person; it replaces their other one at this provider. */
export async function insertSubject(
  tx: Transaction,
  { providerId, subject, personId }: { providerId: string; subject: string; personId: string },
  now: Date,
): Promise<void> {
  await tx.query(sql`
    insert into sso_subject (provider_id, subject, person_id, created_at)
    values (${providerId}::uuid, ${subject}, ${personId}, ${now.toISOString()}::timestamptz)
    on conflict (provider_id, person_id) do update set subject = excluded.subject, created_at = excluded.created_at`);
}

/** Returns the error for an account that another member has; any other error as it is. */
export const findAccountProblem = (error: unknown): unknown =>
  brokenConstraint(error) === 'sso_subject_pkey'
    ? new IdentityError('account_in_use', 'Another member signs in with this account. Use your own account.')
    : error;

/**
 * Stores the account as the choice of a link's person, instead of a password. Nothing is linked before the second
 * factor completes the enrolment.
 *
 * @throws IdentityError `sign_in_rejected` for a link of another organization, one that is not valid any more or
 * recovers, and for an account that a member has.
 */
export async function chooseAccount(
  database: Database,
  { providerId, subject, linkHash }: { providerId: string; subject: string; linkHash: Buffer },
  now: () => Date = () => new Date(),
): Promise<void> {
  const chosen = await database.query(sql`
    update enrolment e set provider_id = p.id, subject = ${subject}, password_hash = null
    from sso_provider p
    where p.id = ${providerId}::uuid and e.token_hash = ${linkHash} and e.organization_id = p.organization_id
      and e.kind = 'invite' and ${isLinkValid(now())}
      and not exists (select from sso_subject s where s.provider_id = p.id and s.subject = ${subject})
    returning e.person_id`);
  if (chosen.length === 0)
    throw new IdentityError(
      'sign_in_rejected',
      'This account can’t be used with this link: another member has it, or the link has expired.',
    );
}

/** How a person proves the first factor, and where else they can. */
export interface SignInMethods {
  hasPassword: boolean;
  /** Of the organizations that have a provider and whose confirmed member the person is. */
  providers: { organizationId: string; organizationName: string; issuer: string; isLinked: boolean }[];
}

/** Lists how the person of a session signs in, whatever this session opens. */
export async function listSignInMethods(db: Queryable, { personId }: Session): Promise<SignInMethods> {
  const [row] = await db.query(sql<SignInMethods>`
    select i.password_hash is not null as "hasPassword",
      (select coalesce(json_agg(json_build_object('organizationId', o.id, 'organizationName', o.name,
          'issuer', p.issuer,
          'isLinked', exists (select from sso_subject s where s.provider_id = p.id and s.person_id = m.person_id))
          order by o.name collate "und-x-icu", o.id), '[]')
        from membership m
        join organization o on o.id = m.organization_id
        join sso_provider p on p.organization_id = o.id
        where m.person_id = i.person_id and ${consoleAccess()} = 'open') as providers
    from sign_in i where i.person_id = ${personId}`);
  return row ?? { hasPassword: false, providers: [] };
}

const unknownAccount = () =>
  new IdentityError(
    'sign_in_rejected',
    'Your account at the provider is not linked to an active member of the organization.',
  );
