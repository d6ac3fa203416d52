import type { EntityManager } from '@mikro-orm/postgresql';
import { runStatement, sql } from '../db/statement.ts';
import { recordPersonActivity } from './activity.ts';
import { admitAttempt, deleteFailures } from './attempts.ts';
import { deleteKnownBrowsers } from './known-browsers.ts';
import { assertNewPassword, hashPassword, isPassword } from './password.ts';
import { IdentityRefused } from './refused.ts';
import { stepUpAttempt } from './second-factor.ts';
import { assertSteppedUp, endSessions, sessionExpired } from './sessions.ts';
import { generateToken, hashOf } from './token.ts';
import type { Session, Visitor } from './types.ts';

/**
 * Changes the person's password: the old one is asked for (ASVS 6.2.3), their other sessions end
 * (ASVS 7.4.3), and this one gets a new token, which is returned.
 *
 * @throws IdentityRefused `wrong_credentials`, `too_many_attempts`, `step_up_needed`,
 * `session_expired`, or why the new password is none.
 */
export async function changePassword(
  em: EntityManager,
  session: Session,
  { oldPassword, newPassword, visitor }: { oldPassword: string; newPassword: string; visitor: Visitor },
  now: () => Date = () => new Date(),
): Promise<{ token: string }> {
  assertSteppedUp(session, now());
  await assertNewPassword(newPassword, contextOf(session));
  const attempt = stepUpAttempt(session);
  await admitAttempt(em, attempt, now());
  const { personId } = session;
  const oldHash = await findHash(em.fork(), personId);
  if (oldHash === null) throw sessionExpired();
  if (!(await isPassword(oldPassword, oldHash, 'change'))) {
    await em.fork().transactional((tx) =>
      recordPersonActivity(tx, {
        personId,
        action: 'sign_in.failure',
        visitor,
        detail: { step: 'old_password' },
      }),
    );
    throw new IdentityRefused('wrong_credentials', 'The old password is not right.');
  }
  if (oldPassword === newPassword)
    throw new IdentityRefused('password_unchanged', 'The new password is the old one. Take another.');
  const newHash = await hashPassword(newPassword, 'change');
  return em.fork().transactional(async (tx) => {
    const at = now().toISOString();
    const token = generateToken();
    // Of two changes at once one is first, and the other's old password is then wrong.
    const rows = await runStatement(
      tx,
      sql`
      with changed as (
        update sign_in set password_hash = ${newHash}, password_changed_at = ${at}::timestamptz
        where person_id = ${personId} and password_hash = ${oldHash} returning person_id
      )
      update console_session s set token_hash = ${hashOf(token)} from changed
      where s.id = ${session.id} and s.person_id = changed.person_id returning s.id`,
    );
    if (rows.length === 0) throw sessionExpired();
    await endSessions(tx, personId, session.id);
    await deleteKnownBrowsers(tx, personId, visitor.browser ?? null);
    await deleteFailures(tx, attempt);
    await recordPersonActivity(tx, { personId, action: 'password.change', visitor });
    return { token };
  });
}

/** What a password may not be made of: the person's names, addresses and organizations. */
function contextOf(session: Session): string[] {
  return [
    session.email,
    ...session.memberships.flatMap(({ name, email, organizationName }) => [name, email, organizationName]),
  ];
}

async function findHash(em: EntityManager, personId: string): Promise<string | null> {
  const rows = await runStatement<{ hash: string }>(
    em,
    sql`
    select password_hash as hash from sign_in where person_id = ${personId}`,
  );
  return rows[0]?.hash ?? null;
}
