import { generateSecret, generateURI, verifySync } from 'otplib';
import { type SealingKeys, seal, sealedVersion, unseal } from '../seal/envelope.ts';

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

/**
 * Returns the content of the QR code. `label` is the person's address; `issuer` is the name in the
 * app's list.
 */
export function totpUri(secret: string, label: string, issuer: string): string {
  return generateURI({ issuer, label, secret, period: stepSeconds, digits: 6 });
}

/**
 * Returns the time step of a code, the current one or the one before, or null. Spaces, which apps
 * show in the middle, are ignored.
 */
export function findTotpStep(secret: string, code: string, now: Date): number | null {
  const digits = code.replace(/\s/g, '');
  if (!/^\d{6}$/.test(digits)) return null;
  const epoch = Math.floor(now.getTime() / 1000);
  const epochTolerance: [past: number, future: number] = [stepSeconds, 0];
  const result = verifySync({ secret, token: digits, epoch, epochTolerance, period: stepSeconds });
  return result.valid && 'timeStep' in result ? result.timeStep : null;
}

/**
 * The name of an enrolment's row, for which a secret is sealed; a factor and a session's challenge
 * are their ids.
 */
export const enrolmentRow = ({ organizationId, personId }: { organizationId: string; personId: string }): string =>
  `enrolment/${organizationId}/${personId}`;

/** Seals a secret for its row: a factor's, a session's challenge, or an enrolment. */
export function sealTotp(secret: string, row: string, keys: SealingKeys): Buffer {
  return seal(secret, `totp/${row}`, keys);
}

/**
 * Unseals it.
 *
 * @throws UnsealError, an internal error: its key is missing or the row was moved.
 */
export function unsealTotp(sealed: Buffer, row: string, keys: SealingKeys): string {
  return unseal(sealed, `totp/${row}`, keys);
}

/**
 * Returns the same secret under the newest key, or null when it is already. A factor is resealed
 * when it is used.
 */
export function resealTotp(sealed: Buffer, row: string, keys: SealingKeys): Buffer | null {
  return sealedVersion(sealed) === keys[0].version ? null : sealTotp(unsealTotp(sealed, row, keys), row, keys);
}
