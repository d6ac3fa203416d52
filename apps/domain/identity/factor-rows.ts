import type { EntityManager } from '@mikro-orm/postgresql';
import { SecondFactor, SignIn } from '../db/entities/identity.ts';
import { writeLock } from '../db/locks.ts';
import { factorsPerPerson } from './limits.ts';
import type { StoredPasskey } from './passkey.ts';
import { IdentityRefused } from './refused.ts';

/** A passkey's row. */
interface PasskeyRow extends StoredPasskey {
  id: string;
}

const oldestFirst = { createdAt: 'asc', id: 'asc' } as const;

/** Loads the authenticator apps of a person, oldest first, to use a code of one of them. */
export const lockTotpFactors = (tx: EntityManager, personId: string): Promise<SecondFactor[]> =>
  tx.find(SecondFactor, { personId, kind: 'totp' }, { orderBy: oldestFirst, ...writeLock });

/** Returns whether a person has an authenticator app. */
export const hasTotp = async (em: EntityManager, personId: string): Promise<boolean> =>
  (await em.count(SecondFactor, { personId, kind: 'totp' })) > 0;

/** Lists the passkeys of a person, oldest first. */
export async function listPasskeyRows(em: EntityManager, personId: string): Promise<PasskeyRow[]> {
  const factors = await em.find(SecondFactor, { personId, kind: 'passkey' }, { orderBy: oldestFirst });
  return factors.map(({ id, credentialId, publicKey, counter, transports }) => {
    if (!credentialId || !publicKey) throw new Error('a passkey has no credential');
    return { id, credentialId, publicKey, counter: counter ?? 0, transports: transports ?? [] };
  });
}

/**
 * Adds an authenticator app whose code of `step` has been accepted. `sealed` must be bound to `id`.
 *
 * @throws IdentityRefused `too_many_factors`
 */
export async function insertTotp(
  tx: EntityManager,
  factor: { id: string; personId: string; name: string; sealed: Buffer; step: number },
  now: Date,
): Promise<void> {
  const { id, personId, name, sealed, step } = factor;
  await assertRoom(tx, personId);
  tx.create(SecondFactor, {
    id,
    personId,
    kind: 'totp',
    name: nameOf(name, 'Authenticator app'),
    createdAt: now,
    totpSealed: sealed,
    totpLastStep: step,
  });
  await tx.flush();
}

/**
 * Adds a passkey.
 *
 * @throws IdentityRefused `factor_known` when it is registered already, `too_many_factors`
 */
export async function insertPasskey(
  tx: EntityManager,
  { id, personId, name, passkey }: { id: string; personId: string; name: string; passkey: StoredPasskey },
  now: Date,
): Promise<void> {
  await assertRoom(tx, personId);
  const factor = { id, personId, kind: 'passkey' as const, name: nameOf(name, 'Passkey'), createdAt: now, ...passkey };
  // Another person may register the same passkey at the same time; a constraint would end the
  // transaction.
  const stored = await tx.upsert(SecondFactor, factor, {
    onConflictFields: ['credentialId'],
    onConflictAction: 'ignore',
  });
  if (stored.id !== id) throw new IdentityRefused('factor_known', 'This passkey is already registered.');
}

/** Refuses a factor beyond the maximum, under the lock of the person's row. */
async function assertRoom(tx: EntityManager, personId: string): Promise<void> {
  await tx.findOne(SignIn, { personId }, writeLock);
  if ((await tx.count(SecondFactor, { personId })) < factorsPerPerson) return;
  throw new IdentityRefused(
    'too_many_factors',
    `You have ${factorsPerPerson} second factors, which is the maximum. Remove one first.`,
  );
}

/** Returns the name that the person gave it, cut to 100 characters. */
function nameOf(name: string, otherwise: string): string {
  return [...name.trim()].slice(0, 100).join('') || otherwise;
}
