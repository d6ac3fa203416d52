import { sql } from 'kysely';
import { consoleAccess } from '../access/console-access.ts';
import { brokenConstraint } from '../db/constraint.ts';
import type { Database, Queryable, Transaction } from '../db/database.ts';
import { writeLock } from '../db/locks.ts';
import { withDates } from '../db/statement.ts';
import { IdentityError } from './errors.ts';
import { ConsoleSession, SignIn } from './identity.entity.ts';
import { providerStepMinutes } from './limits.ts';
import { isLinkValid } from './link-validity.ts';
import { recordPersonEntry } from './record-sign-in.ts';
import { assertFull, assertSteppedUp, startSession } from './sessions.ts';
import { countFailure, ownFailure } from './sign-in-failures.ts';
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
  | { kind: 'link'; session: Session; replacesAccount: boolean }
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
 * Returns the sign-in that a browser has begun and to which an answer belongs, and counts the answer. Ten may fail to
 * get to the provider: more would let a stranger make the console ask an unavailable provider with each click.
 *
 * @throws IdentityError `sign_in_rejected` when the browser has begun none with this state, or too long ago, or an
 * answer has used it up; `too_many_attempts`
 */
export async function getWaitingSignIn(
  database: Database,
  { token, state }: { token: string; state: string },
  now: Date,
): Promise<WaitingSignIn> {
  const hash = findTokenHash(token);
  if (hash === null) throw notStarted();
  const [waiting] = await database.query(sql<WaitingSignIn>`
    select provider_id as "providerId", state, nonce, verifier, link_hash as "linkHash", session_id as "sessionId",
      return_to as "returnTo"
    from sso_waiting
    where token_hash = ${hash} and state = ${state} and expires_at > ${now.toISOString()}::timestamptz`);
  if (waiting === undefined) throw notStarted();
  await countFailure(database, ownFailure('provider_answer', hash.toString('hex')), now);
  return waiting;
}

/**
 * Uses up a begun sign-in, before its answer goes to the provider: then it works once, whatever becomes of it. What
 * never gets there leaves the sign-in as it is.
 *
 * @throws IdentityError `sign_in_rejected` when another answer has used it up.
 */
export async function consumeWaitingSignIn(database: Database, token: string): Promise<void> {
  const consumed = await database.query(sql`
    delete from sso_waiting where token_hash = ${findTokenHash(token)} returning provider_id`);
  if (consumed.length === 0) throw notStarted();
}

const notStarted = () =>
  new IdentityError('sign_in_rejected', 'This sign-in was not started in this browser, or too long ago.');

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
 * Returns an SQL condition on a provider `p`: whether a session may change its person's account there. One that began
 * at a provider may do so there only.
 */
const isWithinReach = ({ providerId }: Pick<Session, 'providerId'>) =>
  providerId === null ? sql`true` : sql`p.id = ${providerId}::uuid`;

/**
 * Links the account that a provider has named to the person of a full session, who must be an active member of its
 * organization. It replaces their other account there and ends the other sessions that began with that one. The
 * session is the one that began it, with a fresh second factor; one that began at a provider links no account
 * elsewhere. Returns false, and changes nothing, when the account is linked to them already.
 *
 * @throws IdentityError `sign_in_rejected`, `account_in_use` when another member has the account.
 */
export async function linkAccount(
  database: Database,
  linked: { providerId: string; subject: string; sessionId: string; session: Session | null; visitor: Visitor },
  now: () => Date = () => new Date(),
): Promise<boolean> {
  const { providerId, subject, sessionId, session, visitor } = linked;
  if (session === null || session.id !== sessionId) throw unknownAccount();
  assertFull(session);
  const { personId } = session;
  return database
    .change(async (tx) => {
      const [member] = await tx.query(sql<{ isLinked: boolean }>`
        select exists (select from sso_subject s where s.provider_id = p.id and s.person_id = m.person_id
          and s.subject = ${subject}) as "isLinked"
        from sso_provider p join membership m on m.organization_id = p.organization_id
        where p.id = ${providerId}::uuid and m.person_id = ${personId} and ${consoleAccess()} = 'open'
          and ${isWithinReach(session)}`);
      if (member === undefined) throw unknownAccount();
      if (member.isLinked) return false;
      await insertSubject(tx, { providerId, subject, personId }, now());
      await tx.nativeDelete(ConsoleSession, { personId, providerId, id: { $ne: session.id } });
      await recordPersonEntry(tx, { personId, action: 'sign_in.link_provider', visitor, detail: { providerId } });
      return true;
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

/**
 * Unlinks the person's account at an organization's provider, and ends the sessions that began there. Returns whether
 * this one was among them.
 *
 * @throws IdentityError `step_up_needed`; `account_not_linked`, also for an organization that this session does not
 * reach; `only_way_in` for a person without a password or another account.
 */
export async function unlinkAccount(
  database: Database,
  session: Session,
  { organizationId, visitor }: { organizationId: string; visitor: Visitor },
  now: () => Date = () => new Date(),
): Promise<{ endedThis: boolean }> {
  assertSteppedUp(session, now());
  const { personId } = session;
  return database.change(async (tx) => {
    // Of two accounts that are unlinked at once, one stays.
    await tx.findOne(SignIn, { personId }, writeLock);
    const [linked] = await tx.query(sql<{ providerId: string; hasOther: boolean }>`
      select p.id as "providerId", i.password_hash is not null or exists (
        select from sso_subject o
        join sso_provider q on q.id = o.provider_id
        join membership m on m.organization_id = q.organization_id and m.person_id = o.person_id
        where o.person_id = i.person_id and o.provider_id <> p.id and ${consoleAccess()} = 'open') as "hasOther"
      from sso_provider p
      join sso_subject s on s.provider_id = p.id
      join sign_in i on i.person_id = s.person_id
      where p.organization_id = ${organizationId}::uuid and i.person_id = ${personId} and ${isWithinReach(session)}`);
    if (linked === undefined)
      throw new IdentityError('account_not_linked', 'You have no linked account at this organization’s provider.');
    const { providerId, hasOther } = linked;
    if (!hasOther)
      throw new IdentityError('only_way_in', 'This account is your only way to sign in. Set a password first.');
    // Before this session may end: the log accepts entries of people with a session.
    await recordPersonEntry(tx, { personId, action: 'sign_in.unlink_provider', visitor, detail: { providerId } });
    await tx.query(sql`delete from sso_subject where provider_id = ${providerId}::uuid and person_id = ${personId}`);
    await tx.nativeDelete(ConsoleSession, { personId, providerId });
    return { endedThis: session.providerId === providerId };
  });
}

/** Unlinks every account of a person, whose sessions have ended. */
export async function deleteAccounts(tx: Transaction, personId: string): Promise<void> {
  await tx.query(sql`delete from sso_subject where person_id = ${personId}`);
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
  /**
   * Of the organizations that have a provider and whose confirmed member the person is; of a session that began at a
   * provider, this one alone.
   */
  providers: {
    organizationId: string;
    organizationName: string;
    issuer: string;
    isRequired: boolean;
    /** When the person's account was linked; null: none is. */
    linkedAt: Date | null;
  }[];
}

/** Lists how the person of a session signs in, as far as the session reaches. */
export async function listSignInMethods(db: Queryable, session: Session): Promise<SignInMethods> {
  const [row] = await db.query(sql<SignInMethods>`
    select i.password_hash is not null as "hasPassword",
      (select coalesce(json_agg(json_build_object('organizationId', o.id,
          'organizationName', coalesce(st.display_name, o.name), 'issuer', p.issuer, 'isRequired', p.is_required,
          'linkedAt', s.created_at)
          order by coalesce(st.display_name, o.name) collate "und-x-icu", o.id), '[]')
        from membership m
        join organization o on o.id = m.organization_id
        join sso_provider p on p.organization_id = o.id
        left join organization_setting st on st.organization_id = o.id
        left join sso_subject s on s.provider_id = p.id and s.person_id = m.person_id
        where m.person_id = i.person_id and ${consoleAccess()} = 'open' and ${isWithinReach(session)}) as providers
    from sign_in i where i.person_id = ${session.personId}`);
  if (row === undefined) return { hasPassword: false, providers: [] };
  return { ...row, providers: row.providers.map((provider) => withDates(provider, 'linkedAt')) };
}

const unknownAccount = () =>
  new IdentityError(
    'sign_in_rejected',
    'Your account at the provider is not linked to an active member of the organization.',
  );
