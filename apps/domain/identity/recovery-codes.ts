import { randomBytes } from 'node:crypto';
import type { Queryable, Transaction } from '../db/database.ts';
import { writeLock } from '../db/locks.ts';
import { IdentityError } from './errors.ts';
import { RecoveryCode } from './identity.entity.ts';
import { recoveryCodes } from './limits.ts';
import { hashToken } from './token.ts';

/**
 * Recovery codes: 28 characters, `XXXX-XXXX-XXXX-XXXX-XXXX-XXXX-XXXX`, of an alphabet of 32, so 140
 * random bits. Codes of 112 bits or more may be stored as a plain hash (ASVS 6.5.2), and so an
 * index finds them; shorter ones would need an argon2 hash for each of the ten.
 */

/** Without I and O, 0 and 1, which are easily confused. */
const alphabet = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789';
const codeLength = 28;

/** Replaces all codes of a person and returns the new ones, which are shown once. */
export async function replaceRecoveryCodes(tx: Transaction, personId: string, now: Date): Promise<string[]> {
  const codes = Array.from({ length: recoveryCodes }, generateRecoveryCode);
  await tx.nativeDelete(RecoveryCode, { personId });
  for (const code of codes)
    tx.create(RecoveryCode, { personId, codeHash: hashToken(plain(code)), createdAt: now, usedAt: null });
  await tx.flush();
  return codes;
}

/** Uses up a code, once also for concurrent calls. Returns false when none is unused. */
export async function consumeRecoveryCode(
  tx: Transaction,
  personId: string,
  code: string,
  now: Date,
): Promise<boolean> {
  const found = await tx.findOne(RecoveryCode, { personId, codeHash: hashToken(plain(code)), usedAt: null }, writeLock);
  if (found === null) return false;
  found.usedAt = now;
  await tx.flush();
  return true;
}

export const countRecoveryCodes = (db: Queryable, personId: string): Promise<number> =>
  db.count(RecoveryCode, { personId, usedAt: null });

/** 32 divides 256, so each character is equally likely. */
function generateRecoveryCode(): string {
  const characters = Array.from(randomBytes(codeLength), (byte) => alphabet.charAt(byte % alphabet.length)).join('');
  return characters.replace(/(.{4})(?=.)/g, '$1-');
}

/** Returns a code in upper case, without its dashes and spaces. */
function plain(code: string): string {
  return code.toUpperCase().replace(/[\s-]/g, '').slice(0, 100);
}

export const wrongRecoveryCode = () =>
  new IdentityError('wrong_code', 'This code is incorrect or was already used. Enter another of your recovery codes.');
