import { sql } from 'kysely';
import { consoleAccess } from '../access/console-access.ts';
import { canonicalEmail } from '../contract/email.ts';
import type { Database, Queryable } from '../db/database.ts';
import { writeLock } from '../db/locks.ts';
import { strangersQueue } from './bounded-queue.ts';
import { IdentityError } from './errors.ts';
import { SignIn } from './identity.entity.ts';
import { hashPassword, isOutdated, isPassword } from './password.ts';
import { recordFailure, recordPersonEntry } from './record-sign-in.ts';
import { startSession } from './sessions.ts';
import { assertAdmitted, clearFailure, countFailure, passwordSubject, signInFailure } from './sign-in-failures.ts';
import { findTokenHash } from './token.ts';
import type { Visitor } from './types.ts';

/** `visitor.browser`: the token of a browser that verifiably belongs to this address. */
interface SignInRequest {
  email: string;
  visitor: Visitor;
}

interface Known {
  personId: string;
  /** Null: they sign in with a provider only. */
  passwordHash: string | null;
  mayEnter: boolean;
}

/**
 * Rejects without I/O what PostgreSQL would reject too.
 *
 * @throws TooManyAttemptsError
 */
export function assertMayTry(database: Database, { email, visitor }: SignInRequest, now: Date): void {
  const browserHash = findTokenHash(visitor.browser ?? '');
  const subject = passwordSubject(canonicalEmail(email));
  assertAdmitted(database, signInFailure('password', subject, { address: visitor.address, browserHash }), now);
}

/**
 * Signs in with address and password, the first of two steps. For a known and an unknown address a
 * wrong attempt takes the same work, changes the same counts and gets the same sentence (ASVS
 * 6.3.8). Each attempt of a known person is recorded in their organizations' audit logs. A correct
 * password counts as an attempt of its person too, until the second factor completes the sign-in.
 * The session of the `token` can only verify a second factor.
 *
 * @throws IdentityError `wrong_credentials`, also for a person whom every organization has
 * suspended; `too_many_attempts`; `busy` when too many strangers sign in at once.
 */
export async function signIn(
  database: Database,
  request: SignInRequest & { password: string },
  now: () => Date = () => new Date(),
): Promise<{ token: string; personId: string }> {
  const enter = () => verifyPassword(database, request, now);
  return request.visitor.browser ? enter() : strangersQueue.run(enter, now());
}

async function verifyPassword(
  database: Database,
  { email, password, visitor }: SignInRequest & { password: string },
  now: () => Date,
): Promise<{ token: string; personId: string }> {
  assertMayTry(database, { email, visitor }, now());
  const canonical = canonicalEmail(email);
  const { browserHash, known } = await findSignIn(database, canonical, visitor.browser ?? null, now());
  const { address } = visitor;
  const failure = signInFailure('password', passwordSubject(canonical), { address, browserHash });
  await countFailure(database, failure, now());
  // Outside any transaction: it takes a core for 25 ms, and no connection.
  const isRight = await isPassword(password, known?.passwordHash ?? null);
  if (known === null || known.passwordHash === null || !isRight || !known.mayEnter) {
    await recordFailure(database, known?.personId ?? '', visitor, 'password');
    throw wrongCredentials();
  }
  const { personId, passwordHash } = known;
  const rehashed = isOutdated(passwordHash) ? await hashPassword(password) : null;
  const started = await database.change(async (tx) => {
    // The password may have changed while this one was verified.
    const found = await tx.findOne(SignIn, { personId, passwordHash }, writeLock);
    if (found === null) throw wrongCredentials();
    if (rehashed !== null) found.rehash(rehashed);
    const { token } = await startSession(tx, { personId, visitor }, now());
    await recordPersonEntry(tx, { personId, action: 'sign_in.password', visitor });
    return { token, personId };
  });
  await clearFailure(database, failure, ['network']);
  return started;
}

const wrongCredentials = () => new IdentityError('wrong_credentials', 'The email address or password is incorrect.');

/**
 * Finds the person with an address in one statement, so that an unknown address takes as long, and
 * the hash of the browser, if this person has signed in with it.
 */
async function findSignIn(db: Queryable, email: string, browser: string | null, at: Date) {
  const tokenHash = browser === null ? null : findTokenHash(browser);
  const [row] = await db.query(sql<Known & { browserHash: Buffer | null; personId: string | null }>`
    select b.token_hash as "browserHash", i.person_id as "personId", i.password_hash as "passwordHash",
      exists (
        select from membership m where m.person_id = i.person_id and ${consoleAccess()} is not null) as "mayEnter"
    from (select ${email}::text as email) f
    left join sign_in i on i.email = f.email
    left join known_browser b on b.person_id = i.person_id and b.token_hash = ${tokenHash}
      and b.expires_at > ${at.toISOString()}::timestamptz`);
  if (row === undefined) throw new Error('a join from one row gave none');
  const { browserHash, ...known } = row;
  return { browserHash, known: known.personId === null ? null : known };
}
