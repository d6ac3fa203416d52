import type { EntityManager } from '@mikro-orm/postgresql';
import { runStatement, sql } from '../db/statement.ts';
import { challengeMinutes, challengesPerSession } from './limits.ts';
import { IdentityRefused } from './refused.ts';

/**
 * What a session waits for an answer to: kept here and not in the browser, so that each is answered
 * once, and in its time.
 */

export type PasskeyPurpose = 'passkey_setup' | 'passkey_use';

/**
 * Stores what a session's passkeys are asked. The last five for a purpose wait at once, since each
 * tab asks for itself: a second question must not void the first.
 */
export async function storeChallenge(
  tx: EntityManager,
  { sessionId, purpose }: { sessionId: string; purpose: PasskeyPurpose },
  challenge: string,
  now: Date,
): Promise<void> {
  await runStatement(
    tx,
    sql`
    with older as (
      select challenge from passkey_challenge where session_id = ${sessionId} and purpose = ${purpose}
      order by place desc offset ${challengesPerSession - 1}
    ), forgotten as (
      delete from passkey_challenge p using older o
      where p.session_id = ${sessionId} and p.purpose = ${purpose} and p.challenge = o.challenge
    )
    insert into passkey_challenge (session_id, purpose, challenge, expires_at)
    values (${sessionId}, ${purpose}, ${challenge}, ${endOf(now)}::timestamptz)`,
  );
}

/**
 * Takes away the challenge that an answer says it answers; whoever comes second, or too late, finds
 * none. Null then, and for an answer to none of the session's.
 */
export async function consumeChallenge(
  tx: EntityManager,
  { sessionId, purpose }: { sessionId: string; purpose: PasskeyPurpose },
  answered: string | null,
  now: Date,
): Promise<string | null> {
  if (answered === null) return null;
  const [found] = await runStatement<{ isLate: boolean }>(
    tx,
    sql`
    delete from passkey_challenge where session_id = ${sessionId} and purpose = ${purpose} and challenge = ${answered}
    returning expires_at <= ${now.toISOString()}::timestamptz as "isLate"`,
  );
  return found === undefined || found.isLate ? null : answered;
}

/**
 * Stores the sealed secret of an authenticator app that a session sets up; an older one is gone.
 */
export async function storeTotpSetup(
  em: EntityManager,
  sessionId: string,
  totpSealed: Buffer,
  now: Date,
): Promise<void> {
  await runStatement(
    em,
    sql`
    insert into factor_challenge (session_id, purpose, expires_at, totp_sealed)
    values (${sessionId}, 'totp_setup', ${endOf(now)}::timestamptz, ${totpSealed})
    on conflict (session_id, purpose) do update set expires_at = excluded.expires_at, totp_sealed = excluded.totp_sealed`,
  );
}

/**
 * The secret of an authenticator app that is being set up; it stays for another try when the code
 * was mistyped. Null when there is none.
 */
export async function findTotpSetup(em: EntityManager, sessionId: string, now: Date): Promise<Buffer | null> {
  const rows = await runStatement<{ totpSealed: Buffer }>(
    em,
    sql`
    select totp_sealed as "totpSealed" from factor_challenge
    where session_id = ${sessionId} and purpose = 'totp_setup' and expires_at > ${now.toISOString()}::timestamptz`,
  );
  return rows[0]?.totpSealed ?? null;
}

/**
 * Takes away the secret that was set up. False when it is gone already, or another has been begun
 * with meanwhile.
 */
export async function consumeTotpSetup(tx: EntityManager, sessionId: string, totpSealed: Buffer): Promise<boolean> {
  const rows = await runStatement(
    tx,
    sql`
    delete from factor_challenge where session_id = ${sessionId} and purpose = 'totp_setup' and totp_sealed = ${totpSealed} returning session_id`,
  );
  return rows.length > 0;
}

const endOf = (now: Date) => new Date(now.getTime() + challengeMinutes * 60_000).toISOString();

export const setupExpired = () =>
  new IdentityRefused('setup_expired', 'This took too long, or was answered already. Start setting it up again.');
