import type { EntityManager } from '@mikro-orm/postgresql';
import { sql } from 'kysely';
import { recordPersonActivity } from './activity.ts';
import { admitAttempt, forgetFailures, passwordSubject } from './attempts.ts';
import { hashPassword, isOutdated, isPassword } from './password.ts';
import { IdentityRefused } from './refused.ts';
import { startSession } from './sessions.ts';
import type { FactorKind, Visitor } from './types.ts';

/** The first step is done: the session can do nothing but give a second factor. `factors` are the kinds the person has. */
export interface PasswordPassed {
  token: string;
  personId: string;
  factors: FactorKind[];
}

interface Known {
  personId: string;
  email: string;
  passwordHash: string;
  mayEnter: boolean;
  factors: FactorKind[];
}

/**
 * Signs in with address and password, the first of two steps. Whoever the address belongs to, or nobody: a wrong attempt takes the same work, leaves the same
 * counts and gets the same sentence (ASVS 6.3.8). Each of a known person leaves its line in the log of their organizations.
 *
 * @throws IdentityRefused `wrong_credentials`, also for a person whom every organization has suspended; `too_many_attempts`.
 */
export async function signIn(
  em: EntityManager,
  { email, password, visitor }: { email: string; password: string; visitor: Visitor },
  now: () => Date = () => new Date(),
): Promise<PasswordPassed> {
  const attempt = { subject: passwordSubject(email), address: visitor.address };
  await admitAttempt(em, attempt, now());
  const known = await findKnown(em, email);
  // Outside any transaction: it takes a core for 25 ms, and no connection.
  const isRight = await isPassword(password, known?.passwordHash ?? null);
  if (known === null || !isRight || !known.mayEnter) {
    await em.fork().transactional((tx) =>
      recordPersonActivity(tx, {
        ...{ personId: known?.personId ?? '', action: 'sign_in.failure', visitor },
        detail: { step: 'password' },
      }),
    );
    throw new IdentityRefused('wrong_credentials', 'The e-mail address or the password is not right.');
  }
  const rehashed = isOutdated(known.passwordHash) ? await hashPassword(password) : null;
  return em.fork().transactional(async (tx) => {
    const { personId, factors, passwordHash } = known;
    // The password may have been changed while this one was verified; then it is no longer the right one.
    const { rows } = await sql`
      update sign_in set password_hash = coalesce(${rehashed}, password_hash)
      where person_id = ${personId} and password_hash = ${passwordHash} returning person_id`.execute(tx.getKysely());
    if (rows.length === 0)
      throw new IdentityRefused('wrong_credentials', 'The e-mail address or the password is not right.');
    await forgetFailures(tx, attempt);
    const { token } = await startSession(tx, { personId, visitor }, now());
    await recordPersonActivity(tx, { personId, action: 'sign_in.password', visitor });
    return { token, personId, factors };
  });
}

async function findKnown(em: EntityManager, email: string): Promise<Known | null> {
  const { rows } = await sql<Known>`
    select i.person_id as "personId", i.email, i.password_hash as "passwordHash",
      exists (select from membership m where m.person_id = i.person_id and m.status in ('active', 'invited')) as "mayEnter",
      array(select distinct f.kind from second_factor f where f.person_id = i.person_id order by f.kind) as factors
    from sign_in i where lower(i.email) = lower(${email.trim()})`.execute(em.getKysely());
  return rows[0] ?? null;
}
