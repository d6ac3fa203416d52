import type { EntityManager } from '@mikro-orm/postgresql';
import { sql } from 'kysely';
import { challengeMinutes } from './limits.ts';
import { IdentityRefused } from './refused.ts';

/** What a session waits for an answer to: kept here and not in the browser, so that each is answered once, and in its time. */

export type ChallengePurpose = 'totp_setup' | 'passkey_setup' | 'passkey_use';

interface Stored {
  challenge: string | null;
  totpSealed: Buffer | null;
}

/** Stores a challenge of a session; an older one for the same purpose is gone. */
export async function storeChallenge(
  tx: EntityManager,
  { sessionId, purpose }: { sessionId: string; purpose: ChallengePurpose },
  { challenge, totpSealed }: Stored,
  now: Date,
): Promise<void> {
  const expiresAt = new Date(now.getTime() + challengeMinutes * 60_000).toISOString();
  await sql`
    insert into factor_challenge (session_id, purpose, expires_at, challenge, totp_sealed)
    values (${sessionId}, ${purpose}, ${expiresAt}::timestamptz, ${challenge}, ${totpSealed})
    on conflict (session_id, purpose) do update
      set expires_at = excluded.expires_at, challenge = excluded.challenge, totp_sealed = excluded.totp_sealed`.execute(
    tx.getKysely(),
  );
}

/** Takes a challenge away; whoever comes second, or too late, finds none. Null then. */
export async function takeChallenge(
  tx: EntityManager,
  { sessionId, purpose }: { sessionId: string; purpose: ChallengePurpose },
  now: Date,
): Promise<Stored | null> {
  const { rows } = await sql<Stored & { isLate: boolean }>`
    delete from factor_challenge where session_id = ${sessionId} and purpose = ${purpose}
    returning challenge, totp_sealed as "totpSealed", expires_at <= ${now.toISOString()}::timestamptz as "isLate"`.execute(
    tx.getKysely(),
  );
  const [found] = rows;
  return found === undefined || found.isLate ? null : found;
}

/** The secret of an authenticator app that is being set up; it stays for another try when the code was mistyped. Null when there is none. */
export async function findTotpSetup(em: EntityManager, sessionId: string, now: Date): Promise<Buffer | null> {
  const { rows } = await sql<{ totpSealed: Buffer }>`
    select totp_sealed as "totpSealed" from factor_challenge
    where session_id = ${sessionId} and purpose = 'totp_setup' and expires_at > ${now.toISOString()}::timestamptz`.execute(
    em.getKysely(),
  );
  return rows[0]?.totpSealed ?? null;
}

export const setupOver = () =>
  new IdentityRefused('setup_over', 'This took too long, or was answered already. Start setting it up again.');
