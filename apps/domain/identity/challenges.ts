import type { Database, Queryable, Transaction } from '../db/database.ts';
import { IdentityError } from './errors.ts';
import { Challenge } from './identity.entity.ts';
import { challengeMinutes } from './limits.ts';

/**
 * The challenges of sessions, stored here so that each is answered only once, and in time. A
 * session has one for each purpose; a newer one replaces it.
 */

type Requested = { sessionId: string; purpose: 'passkey_setup' | 'passkey_use' | 'totp_setup' };

/** Stores a passkey's challenge, or the sealed secret of an app that a session sets up. */
export async function storeChallenge(
  database: Database,
  requested: Requested & ({ challenge: string } | { totpSealed: Buffer }),
  now: Date,
): Promise<void> {
  const expiresAt = new Date(now.getTime() + challengeMinutes * 60_000);
  const row = { challenge: null, totpSealed: null, ...requested, expiresAt };
  await database.change((tx) => tx.upsert(Challenge, row));
}

/** Deletes the challenge that a response names and returns it; null when it cannot be answered. */
export async function consumeChallenge(
  tx: Transaction,
  requested: Requested,
  answered: string | null,
  now: Date,
): Promise<string | null> {
  if (answered === null) return null;
  const named = { ...requested, challenge: answered };
  const isInTime = (await tx.count(Challenge, { ...named, expiresAt: { $gt: now } })) > 0;
  return (await tx.nativeDelete(Challenge, named)) > 0 && isInTime ? answered : null;
}

/** Returns the secret of an app that is being set up, or null. A wrong code does not delete it. */
export async function findTotpSetup(db: Queryable, sessionId: string, now: Date): Promise<Buffer | null> {
  const setup = await db.findOne(Challenge, { sessionId, purpose: 'totp_setup', expiresAt: { $gt: now } });
  return setup?.totpSealed ?? null;
}

/** Deletes the secret that was set up. Returns false when it is gone or was replaced meanwhile. */
export const consumeTotpSetup = async (tx: Transaction, sessionId: string, totpSealed: Buffer): Promise<boolean> =>
  (await tx.nativeDelete(Challenge, { sessionId, purpose: 'totp_setup', totpSealed })) > 0;

export const setupExpired = () => new IdentityError('setup_expired', 'This setup has expired. Start again.');
