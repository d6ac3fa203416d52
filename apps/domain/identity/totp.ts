import { generateSecret, generateURI, verifySync } from 'otplib';
import { openText, type SealingKeys, sealedVersion, sealText } from '../seal/envelope.ts';

/** Authenticator apps: RFC 6238 as all of them do it, six digits of SHA-1 every 30 seconds; a step earlier or later is accepted too. */

const stepSeconds = 30;

/** A new secret, 160 random bits in base32. */
export function makeTotpSecret(): string {
  return generateSecret({ length: 20 });
}

/** What the QR code holds. `label` is the person's address; `issuer` what the app lists the entry under. */
export function totpUri(secret: string, label: string, issuer: string): string {
  return generateURI({ issuer, label, secret, period: stepSeconds, digits: 6 });
}

/** The time step whose code this is, within one of now; null when it is none. Spaces, which apps show in the middle, are ignored. */
export function findTotpStep(secret: string, code: string, now: Date): number | null {
  const digits = code.replace(/\s/g, '');
  if (!/^\d{6}$/.test(digits)) return null;
  const epoch = Math.floor(now.getTime() / 1000);
  const result = verifySync({ secret, token: digits, epoch, epochTolerance: stepSeconds, period: stepSeconds });
  return result.valid && 'timeStep' in result ? result.timeStep : null;
}

/** An enrolment as the row that a secret is sealed for; a factor and a session's challenge are their ids. */
export const enrolmentRow = ({ organizationId, personId }: { organizationId: string; personId: string }): string =>
  `enrolment/${organizationId}/${personId}`;

/** Seals a secret for its row: a factor's, a session's challenge, or an enrolment. */
export function sealTotp(secret: string, row: string, keys: SealingKeys): Buffer {
  return sealText(secret, `totp/${row}`, keys);
}

/** Opens it. @throws SealBroken, a fault of the installation: its key is missing or the row was moved. */
export function openTotp(sealed: Buffer, row: string, keys: SealingKeys): string {
  return openText(sealed, `totp/${row}`, keys);
}

/** The same secret under the newest key; null when it is sealed so already. A factor in use is resealed as it is used. */
export function resealTotp(sealed: Buffer, row: string, keys: SealingKeys): Buffer | null {
  return sealedVersion(sealed) === keys[0].version ? null : sealTotp(openTotp(sealed, row, keys), row, keys);
}
