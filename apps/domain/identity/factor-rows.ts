import { randomUUIDv7 } from 'node:crypto';
import { brokenConstraint } from '../db/constraint.ts';
import type { Queryable, Transaction } from '../db/database.ts';
import { writeLock } from '../db/locks.ts';
import type { SealingKeys } from '../encryption/envelope.ts';
import { IdentityError } from './errors.ts';
import { SecondFactor, SignIn } from './identity.entity.ts';
import { factorsPerPerson } from './limits.ts';
import { getNewPasskey, type StoredPasskey } from './passkey.ts';
import { findTotpStep, sealTotp, unsealTotp, wrongCode } from './totp.ts';
import type { RelyingParty } from './types.ts';

interface PasskeyRow extends StoredPasskey {
  id: string;
}

const oldestFirst = { createdAt: 'asc', id: 'asc' } as const;

/** Loads the authenticator apps of a person, oldest first, to use a code of one of them. */
export const lockTotpFactors = (tx: Transaction, personId: string): Promise<SecondFactor[]> =>
  tx.find(SecondFactor, { personId, kind: 'totp' }, { orderBy: oldestFirst, ...writeLock });

/** Returns whether a person has an authenticator app. */
export const hasTotp = async (db: Queryable, personId: string): Promise<boolean> =>
  (await db.count(SecondFactor, { personId, kind: 'totp' })) > 0;

/** Lists the passkeys of a person, oldest first. */
export async function listPasskeyRows(db: Queryable, personId: string): Promise<PasskeyRow[]> {
  const factors = await db.find(SecondFactor, { personId, kind: 'passkey' }, { orderBy: oldestFirst });
  return factors.map(({ id, credentialId, publicKey, counter, transports }) => {
    if (!credentialId || !publicKey) throw new Error('a passkey has no credential');
    return { id, credentialId, publicKey, counter: counter ?? 0, transports: transports ?? [] };
  });
}

/** A factor that has answered, to be inserted. */
export type NewFactor = { id: string; name: string } & (
  | { kind: 'totp'; totpSealed: Buffer; totpLastStep: number }
  | ({ kind: 'passkey' } & StoredPasskey)
);

/**
 * Verifies the first code of an app whose secret is sealed for `row`, and seals it for the factor.
 *
 * @throws IdentityError `wrong_code`
 */
export function verifyNewTotp(
  { code, name }: { code: string; name: string },
  setup: { sealed: Buffer; row: string },
  keys: SealingKeys,
  now: Date,
): NewFactor {
  const secret = unsealTotp(setup.sealed, setup.row, keys);
  const totpLastStep = findTotpStep(secret, code, now);
  if (totpLastStep === null) throw wrongCode();
  const id = randomUUIDv7();
  const totpSealed = sealTotp(secret, id, keys);
  return { id, kind: 'totp', name: truncateName(name, 'Authenticator app'), totpSealed, totpLastStep };
}

/**
 * Verifies the response of a new passkey to its challenge.
 *
 * @throws IdentityError `wrong_passkey`, `passkey_attested`
 */
export async function verifyNewPasskey(
  { response, name }: { response: unknown; name: string },
  challenge: string,
  party: RelyingParty,
): Promise<NewFactor> {
  const passkey = await getNewPasskey(response, challenge, party);
  return { id: randomUUIDv7(), kind: 'passkey', name: truncateName(name, 'Passkey'), ...passkey };
}

/**
 * Adds a factor.
 *
 * @throws IdentityError `too_many_factors`; `factor_known` when a passkey is registered already.
 */
export async function insertFactor(tx: Transaction, personId: string, factor: NewFactor, now: Date): Promise<void> {
  await assertBelowMaximum(tx, personId);
  tx.create(SecondFactor, { ...factor, personId, createdAt: now });
  await tx.flush().catch((error: unknown) => {
    if (brokenConstraint(error) !== 'second_factor_credential_unique') throw error;
    throw new IdentityError('factor_known', 'This passkey is already registered.');
  });
}

/** Rejects a factor beyond the maximum, under the lock of the person's row. */
async function assertBelowMaximum(tx: Transaction, personId: string): Promise<void> {
  await tx.findOne(SignIn, { personId }, writeLock);
  if ((await tx.count(SecondFactor, { personId })) < factorsPerPerson) return;
  throw new IdentityError(
    'too_many_factors',
    `You have ${factorsPerPerson} second factors, which is the maximum. Remove one first.`,
  );
}

/** Returns the name that the person gave it, cut to 100 characters. */
function truncateName(name: string, otherwise: string): string {
  return [...name.trim()].slice(0, 100).join('') || otherwise;
}
