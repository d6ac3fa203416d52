import { sql } from 'kysely';
import { Membership } from '../access/membership.entity.ts';
import { recordAuditEntry } from '../audit-log/record.ts';
import { brokenConstraint } from '../db/constraint.ts';
import type { Database, Queryable, Transaction } from '../db/database.ts';
import { lockOrganization, writeLock } from '../db/locks.ts';
import { strangersQueue } from './bounded-queue.ts';
import { setupExpired } from './challenges.ts';
import { confirmSignIn } from './confirm-sign-in.ts';
import { findEnrolment, type OpenEnrolment } from './create-link.ts';
import { IdentityError } from './errors.ts';
import { insertFactor, type NewFactor, verifyNewPasskey, verifyNewTotp } from './factor-rows.ts';
import { Enrolment, SecondFactor, SignIn } from './identity.entity.ts';
import { deleteKnownBrowsers, rememberBrowser } from './known-browsers.ts';
import { isLinkValid } from './link-validity.ts';
import { passkeySetupOptions } from './passkey.ts';
import { assertNewPassword, hashPassword } from './password.ts';
import { recordPersonEntry } from './record-sign-in.ts';
import { replaceRecoveryCodes } from './recovery-codes.ts';
import { assertFull, endSessions, passwordSessionNeeded, recordSecondFactor, startSession } from './sessions.ts';
import { assertAdmitted, clearFailure, countFailure, ownFailure } from './sign-in-failures.ts';
import { deleteAccounts, findAccountProblem, insertSubject } from './sso-sign-in.ts';
import { enrolmentRow, generateTotpSecret, sealTotp, totpUri } from './totp.ts';
import type { FactorSettings, RelyingParty, Session, Visitor } from './types.ts';

/**
 * Enrolment by a one-time link: password, or an account of the organization's provider (`chooseAccount`), then second
 * factor. Then the link is used up, the
 * membership active, the recovery codes shown and the person signed in, all at once. Until then
 * only the link's own row changes, also for a person who can already sign in: the last step rejects
 * it, so that the creator of a link, who could open it, learns nothing before.
 */

/** The factor that completes an enrolment: an authenticator code, or the response of a passkey. */
export type FirstFactor =
  | { kind: 'totp'; code: string; name?: string }
  | { kind: 'passkey'; response: unknown; name?: string };

/**
 * Sets the password; another one replaces it until the enrolment is complete. The holder of a link is
 * a stranger, so a password waits among their sign-ins, one of a link at a time, and counts before
 * it is hashed. Who holds no valid link, or has used up its passwords, waits nowhere.
 *
 * @throws IdentityError `link_expired`, why the password is not allowed, `too_many_attempts` after
 * ten passwords, `busy`
 */
export async function setEnrolmentPassword(
  database: Database,
  { token, password }: { token: string; password: string },
  now: () => Date = () => new Date(),
): Promise<void> {
  const enrolment = await getOpenEnrolment(database, token, now());
  const link = enrolment.tokenHash.toString('hex');
  const failure = ownFailure('enrolment_password', link);
  assertAdmitted(database, failure, now());
  const work = async () => {
    await assertNewPassword(password, [enrolment.email, enrolment.name, enrolment.organizationName]);
    await countFailure(database, failure, now());
    const passwordHash = await hashPassword(password);
    await choose(database, enrolment, { passwordHash, providerId: null, subject: null });
  };
  return strangersQueue.run(work, now(), link);
}

/**
 * Starts the setup of an authenticator app: returns its secret, and the text of the QR code.
 *
 * @throws IdentityError `password_first` and as above
 */
export async function startEnrolmentTotp(
  database: Database,
  token: string,
  { sealingKeys, relyingParty }: FactorSettings,
  now: () => Date = () => new Date(),
): Promise<{ secret: string; uri: string }> {
  const enrolment = await getOpenEnrolment(database, token, now());
  assertHasFirstFactor(enrolment);
  const secret = generateTotpSecret();
  await choose(database, enrolment, { totpSealed: sealTotp(secret, enrolmentRow(enrolment), sealingKeys) });
  return { secret, uri: totpUri(secret, enrolment.email, relyingParty.name) };
}

/**
 * Starts the setup of a passkey: returns options for `navigator.credentials.create`.
 *
 * @throws IdentityError `password_first` and as above
 */
export async function startEnrolmentPasskey(
  database: Database,
  token: string,
  party: RelyingParty,
  now: () => Date = () => new Date(),
) {
  const enrolment = await getOpenEnrolment(database, token, now());
  assertHasFirstFactor(enrolment);
  const options = await passkeySetupOptions(enrolment, [], party);
  await choose(database, enrolment, { challenge: options.challenge });
  return options;
}

/**
 * Completes an enrolment with its second factor, in one transaction. When two use a link at once,
 * one enrols. `browser` identifies this browser later, for the password of `email`: null without one. The recovery
 * codes are shown once.
 *
 * @throws IdentityError `link_expired`, `password_first`, `setup_expired` (no factor was begun),
 * `wrong_code`, `wrong_passkey`, `factor_known`, `too_many_attempts`; `email_taken` also for a
 * person who can already sign in.
 */
export async function completeEnrolment(
  database: Database,
  { token, factor, visitor }: { token: string; factor: FirstFactor; visitor: Visitor },
  settings: FactorSettings,
  now: () => Date = () => new Date(),
) {
  const enrolment = await getOpenEnrolment(database, token, now());
  assertHasFirstFactor(enrolment);
  const { personId, organizationId, providerId, subject, kind } = enrolment;
  const failure = ownFailure('enrolment_factor', enrolment.tokenHash.toString('hex'));
  await countFailure(database, failure, now());
  const verified = await verify(database, enrolment, factor, settings, now());
  try {
    const enrolled = await database.change(async (tx) => {
      await consume(tx, enrolment, now());
      if (kind === 'recover') await deleteSignIn(tx, personId);
      await writeSignIn(tx, enrolment, now());
      if (providerId !== null && subject !== null) await insertSubject(tx, { providerId, subject, personId }, now());
      await insertFactor(tx, personId, verified, now());
      const recoveryCodes = await replaceRecoveryCodes(tx, personId, now());
      const { sessionId } = await startSession(tx, { personId, visitor, providerId }, now());
      const session = await recordSecondFactor(tx, sessionId, now());
      if (kind === 'invite') await join(tx, enrolment, visitor, now());
      if (kind === 'recover') {
        const detail = { factor: factor.kind };
        await recordPersonEntry(tx, { personId, action: 'sign_in.recover', visitor, detail });
      }
      const browser = await rememberBrowser(tx, { personId, known: visitor.browser ?? null }, now());
      const email = providerId === null ? enrolment.email : null;
      return { ...session, browser, personId, email, organizationId, recoveryCodes };
    });
    await clearFailure(database, failure);
    return enrolled;
  } catch (error) {
    const isTaken = ['sign_in_email_unique', 'sign_in_pkey'].includes(brokenConstraint(error) ?? '');
    throw isTaken ? emailInUse() : findAccountProblem(error);
  }
}

/**
 * Joins an organization with its link, as the person who is signed in. An active member of it
 * confirms their sign-in for it. A session that began at a provider proves nothing to another organization: the
 * provider, and not the person, may have made the password and the factors until now.
 *
 * @throws IdentityError `link_expired`, `link_of_another`, `email_taken`, `second_factor_needed`,
 * `password_session_needed`
 */
export async function acceptEnrolment(
  database: Database,
  session: Session,
  { token, visitor }: { token: string; visitor: Visitor },
  now: () => Date = () => new Date(),
): Promise<{ organizationId: string }> {
  assertFull(session);
  const enrolment = await findEnrolment(database, token, now());
  if (enrolment === null || enrolment.kind === 'recover') throw linkExpired();
  const { organizationId, personId } = enrolment;
  if (personId !== session.personId)
    throw new IdentityError(
      'link_of_another',
      'This link is for another person. Sign out, then sign in as them. If it was meant for you, ask for a link to ' +
        'the address that the organization has for you.',
    );
  if (session.providerId !== null) throw passwordSessionNeeded();
  await database.change(async (tx) => {
    await consume(tx, enrolment, now());
    const ofAnother = { email: enrolment.email, personId: { $ne: personId } };
    if ((await tx.count(SignIn, ofAnother)) > 0) throw emailInUse();
    await join(tx, enrolment, visitor, now());
  });
  return { organizationId };
}

/** @throws IdentityError `link_expired` */
async function getOpenEnrolment(db: Queryable, token: string, at: Date): Promise<OpenEnrolment> {
  const found = await findEnrolment(db, token, at);
  if (found === null) throw linkExpired();
  return found;
}

function assertHasFirstFactor({ passwordHash, providerId }: OpenEnrolment): void {
  if (passwordHash !== null || providerId !== null) return;
  throw new IdentityError('password_first', 'Choose a password first.');
}

async function verify(
  database: Database,
  enrolment: OpenEnrolment,
  factor: FirstFactor,
  { sealingKeys, relyingParty }: FactorSettings,
  now: Date,
): Promise<NewFactor> {
  const { tokenHash, totpSealed: sealed, challenge } = enrolment;
  const name = factor.name ?? '';
  if (factor.kind === 'totp') {
    if (sealed === null) throw setupExpired();
    return verifyNewTotp({ ...factor, name }, { sealed, row: enrolmentRow(enrolment) }, sealingKeys, now);
  }
  // Each challenge is answered once, correctly or not.
  const consumed = await database.change((tx) =>
    tx.nativeUpdate(Enrolment, { tokenHash, challenge }, { challenge: null }),
  );
  if (challenge === null || consumed === 0) throw setupExpired();
  return verifyNewPasskey({ ...factor, name }, challenge, relyingParty);
}

/** Stores what the link's person has entered so far, in the link's own row. */
async function choose(
  database: Database,
  { tokenHash }: OpenEnrolment,
  chosen: { passwordHash?: string; providerId?: null; subject?: null; totpSealed?: Buffer; challenge?: string },
): Promise<void> {
  const changed = await database.change((tx) => tx.nativeUpdate(Enrolment, { tokenHash }, chosen));
  if (changed === 0) throw linkExpired();
}

/**
 * Uses up a link if it could still be created: changes of members and roles wait until this
 * transaction has ended. The password or account must be the one that was read: another one that was chosen meanwhile,
 * in another window, belongs to another enrolment.
 */
async function consume(
  tx: Transaction,
  { organizationId, personId, tokenHash, passwordHash, providerId, subject }: OpenEnrolment,
  now: Date,
): Promise<void> {
  await lockOrganization(tx, organizationId);
  // In the order of an operator who frees the address, and of an import that ends the membership
  // and its link.
  await tx.findOne(SignIn, { personId }, writeLock);
  await tx.findOne(Membership, { organizationId, personId }, writeLock);
  const rows = await tx.query(sql`
    delete from enrolment e
    where e.token_hash = ${tokenHash} and e.password_hash is not distinct from ${passwordHash}
      and e.provider_id is not distinct from ${providerId}::uuid and e.subject is not distinct from ${subject}
      and ${isLinkValid(now)}
    returning e.person_id`);
  if (rows.length === 0) throw linkExpired();
}

/**
 * Makes the invited member active, and confirms their sign-in; an old link reinstates no suspended
 * or removed member. The log does not say whether they could sign in before.
 */
async function join(
  tx: Transaction,
  { organizationId, personId }: OpenEnrolment,
  visitor: Visitor,
  now: Date,
): Promise<void> {
  const member = { organizationId, personId, status: { $in: ['invited' as const, 'active' as const] } };
  if ((await tx.nativeUpdate(Membership, member, { status: 'active' })) === 0) throw linkExpired();
  const by = { personId, address: visitor.address };
  await confirmSignIn(tx, { organizationId, personId, by }, now);
  await recordAuditEntry(tx, { organizationId, by, action: 'member.join', detail: { memberId: personId } });
}

/** Deletes what signed the person in before a recovery: sessions, browsers, accounts at providers and factors. */
async function deleteSignIn(tx: Transaction, personId: string): Promise<void> {
  await endSessions(tx, personId);
  await deleteKnownBrowsers(tx, personId, null);
  await deleteAccounts(tx, personId);
  await tx.nativeDelete(SecondFactor, { personId });
}

async function writeSignIn(
  tx: Transaction,
  { personId, email, kind, passwordHash }: OpenEnrolment,
  now: Date,
): Promise<void> {
  const chosen = { email, passwordHash, passwordChangedAt: now };
  if (kind === 'recover') await tx.nativeUpdate(SignIn, { personId }, chosen);
  else await tx.insert(SignIn, { personId, ...chosen, createdAt: now });
}

const linkExpired = () =>
  new IdentityError(
    'link_expired',
    'This link has expired, was used or replaced, or its creator can no longer invite you. Ask for a new link.',
  );

/** One sentence, whether its person or another one signs in with the address. */
const emailInUse = () =>
  new IdentityError(
    'email_taken',
    'Sign-in can’t be set up with this link. If you can already sign in, sign in and open the link again. Otherwise, ' +
      'ask for a link for another address, or contact support: an operator can free the address.',
  );
