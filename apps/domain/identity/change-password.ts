import type { Database } from '../db/database.ts';
import { writeLock } from '../db/locks.ts';
import { IdentityError } from './errors.ts';
import { ConsoleSession, SignIn } from './identity.entity.ts';
import { deleteKnownBrowsers } from './known-browsers.ts';
import { assertNewPassword, hashPassword, isPassword, opaqueString } from './password.ts';
import { recordFailure, recordPersonEntry } from './record-sign-in.ts';
import { assertNotConfined, assertSteppedUp, endSessions, sessionExpired } from './sessions.ts';
import { clearFailure, countFailure, ownFailure } from './sign-in-failures.ts';
import { generateToken, hashToken } from './token.ts';
import type { Session, Visitor } from './types.ts';

/**
 * Changes the person's password. The old one is required (ASVS 6.2.3), unless they have none because they sign in with
 * a provider. Their other sessions end (ASVS 7.4.3), and this one gets a new token, which is returned.
 *
 * @throws IdentityError `wrong_credentials`, `too_many_attempts`, `step_up_needed`, `password_session_needed`,
 * `session_expired`, or why the new password is not allowed.
 */
export async function changePassword(
  database: Database,
  session: Session,
  { oldPassword, newPassword, visitor }: { oldPassword: string; newPassword: string; visitor: Visitor },
  now: () => Date = () => new Date(),
): Promise<{ token: string }> {
  assertSteppedUp(session, now());
  assertNotConfined(session);
  await assertNewPassword(newPassword, listContextWords(session));
  const { personId } = session;
  const failure = ownFailure('old_password', personId);
  await countFailure(database, failure, now());
  const oldHash = (await database.findOne(SignIn, { personId }))?.passwordHash;
  if (oldHash === undefined) throw sessionExpired();
  if (oldHash !== null && !(await isPassword(oldPassword, oldHash))) {
    await recordFailure(database, personId, visitor, 'old_password');
    throw new IdentityError('wrong_credentials', 'The current password is incorrect.');
  }
  if (oldHash !== null && opaqueString(oldPassword) === opaqueString(newPassword))
    throw new IdentityError('password_unchanged', 'The new password is the current one. Enter another password.');
  const newHash = await hashPassword(newPassword);
  const changed = await database.change(async (tx) => {
    // Of two concurrent changes one comes first, and the other's old password is then wrong.
    const signIn = await tx.findOne(SignIn, { personId, passwordHash: oldHash }, writeLock);
    const own = await tx.findOne(ConsoleSession, { id: session.id, personId }, writeLock);
    if (signIn === null || own === null) throw sessionExpired();
    const token = generateToken();
    signIn.changePassword(newHash, now());
    own.tokenHash = hashToken(token);
    await tx.flush();
    await endSessions(tx, personId, session.id);
    await deleteKnownBrowsers(tx, personId, visitor.browser ?? null);
    await recordPersonEntry(tx, { personId, action: 'password.change', visitor });
    return { token };
  });
  await clearFailure(database, failure);
  return changed;
}

/** Returns what a password may not contain: the person's names, addresses and organizations. */
function listContextWords(session: Session): string[] {
  return [
    session.email,
    ...session.memberships.flatMap(({ name, email, organizationName }) => [name, email, organizationName]),
  ];
}
