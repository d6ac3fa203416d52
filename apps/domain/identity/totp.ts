import { generateSecret, generateURI, verifySync } from 'otplib';
import { type SealingKeys, seal, unseal } from '../encryption/envelope.ts';
import { IdentityError } from './errors.ts';

/**
 * Authenticator apps by RFC 6238, as all of them implement it: six digits of SHA-1 every 30
 * seconds. The codes of the current step and of the one before are accepted, because typing takes
 * time (5.2); the code of a later step never is.
 */

const stepSeconds = 30;

/** A new secret, 160 random bits in base32. */
export function generateTotpSecret(): string {
  return generateSecret({ length: 20 });
}

/** Returns the QR code's content. `label`: the person's address; `issuer`: the console's name. */
export function totpUri(secret: string, label: string, issuer: string): string {
  return generateURI({ issuer, label, secret, period: stepSeconds, digits: 6 });
}

/** Returns the time step of a code, the current one or the one before, or null. Ignores spaces. */
export function findTotpStep(secret: string, code: string, now: Date): number | null {
  const digits = code.replace(/\s/g, '');
  if (!/^\d{6}$/.test(digits)) return null;
  const epoch = Math.floor(now.getTime() / 1000);
  const epochTolerance: [past: number, future: number] = [stepSeconds, 0];
  const result = verifySync({ secret, token: digits, epoch, epochTolerance, period: stepSeconds });
  return result.valid && 'timeStep' in result ? result.timeStep : null;
}

/** Names a secret's row for its seal: the id of a factor or session, or `enrolmentRow`. */
export const totpRow = (row: string): string => `totp/${row}`;

/** Names the row of an enrolment. */
export const enrolmentRow = ({ organizationId, personId }: { organizationId: string; personId: string }): string =>
  `enrolment/${organizationId}/${personId}`;

export const sealTotp = (secret: string, row: string, keys: SealingKeys): Buffer => seal(secret, totpRow(row), keys);

/**
 * Unseals it.
 *
 * @throws UnsealError, an internal error: its key is missing or the row was moved.
 */
export const unsealTotp = (sealed: Buffer, row: string, keys: SealingKeys): string =>
  unseal(sealed, totpRow(row), keys);

/** Rejects a code. It depends on a clock, which its owner may not suspect. */
export const wrongCode = () =>
  new IdentityError(
    'wrong_code',
    'This code is incorrect or was already used. Enter the next code. If no code works, let your phone set its clock ' +
      'automatically: it may be off by more than half a minute.',
  );
