import type { EntityManager } from '@mikro-orm/postgresql';
import { FactorChallenge, PasskeyChallenge } from '../db/entities/identity.ts';
import { challengeMinutes, challengesPerSession } from './limits.ts';
import { IdentityRefused } from './refused.ts';

/** The challenges of sessions, stored here so that each is answered only once, and in time. */

type PasskeyPurpose = 'passkey_setup' | 'passkey_use';

/** Stores a passkey challenge. The last five for a purpose stay valid: each tab has its own. */
export async function storeChallenge(
  tx: EntityManager,
  { sessionId, purpose }: { sessionId: string; purpose: PasskeyPurpose },
  challenge: string,
  now: Date,
): Promise<void> {
  const asked = { sessionId, purpose };
  const newestFirst = await tx.find(PasskeyChallenge, asked, { orderBy: { place: 'desc' } });
  const older = newestFirst.slice(challengesPerSession - 1).map((one) => one.challenge);
  if (older.length > 0) await tx.nativeDelete(PasskeyChallenge, { ...asked, challenge: { $in: older } });
  await tx.insert(PasskeyChallenge, { ...asked, challenge, expiresAt: endOf(now) });
}

/** Deletes the challenge that an answer names and returns it; null when it cannot be answered. */
export async function consumeChallenge(
  tx: EntityManager,
  { sessionId, purpose }: { sessionId: string; purpose: PasskeyPurpose },
  answered: string | null,
  now: Date,
): Promise<string | null> {
  if (answered === null) return null;
  const asked = { sessionId, purpose, challenge: answered };
  const isInTime = (await tx.count(PasskeyChallenge, { ...asked, expiresAt: { $gt: now } })) > 0;
  return (await tx.nativeDelete(PasskeyChallenge, asked)) > 0 && isInTime ? answered : null;
}

/** Stores the sealed secret of an app that a session sets up, and replaces an older one. */
export async function storeTotpSetup(
  em: EntityManager,
  sessionId: string,
  totpSealed: Buffer,
  now: Date,
): Promise<void> {
  await em.upsert(FactorChallenge, { ...totpSetupOf(sessionId), expiresAt: endOf(now), totpSealed });
}

/** Returns the secret of an app that is being set up, or null. A wrong code does not delete it. */
export async function findTotpSetup(em: EntityManager, sessionId: string, now: Date): Promise<Buffer | null> {
  const setup = await em.findOne(FactorChallenge, { ...totpSetupOf(sessionId), expiresAt: { $gt: now } });
  return setup?.totpSealed ?? null;
}

/** Deletes the secret that was set up. Returns false when it is gone or was replaced meanwhile. */
export const consumeTotpSetup = async (tx: EntityManager, sessionId: string, totpSealed: Buffer): Promise<boolean> =>
  (await tx.nativeDelete(FactorChallenge, { ...totpSetupOf(sessionId), totpSealed })) > 0;

const totpSetupOf = (sessionId: string) => ({ sessionId, purpose: 'totp_setup' as const });

const endOf = (now: Date) => new Date(now.getTime() + challengeMinutes * 60_000);

export const setupExpired = () => new IdentityRefused('setup_expired', 'This setup has expired. Start again.');
