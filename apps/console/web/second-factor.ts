import { z } from 'zod';
import { IdentityError } from '#domain/identity/errors.ts';
import { hasTotp } from '#domain/identity/factor-rows.ts';
import { passkeyResponseMaxLength } from '#domain/identity/limits.ts';
import {
  redeemRecoveryCode,
  type SecondFactorStep,
  startPasskeyUse,
  verifyPasskey,
  verifyTotp,
} from '#domain/identity/second-factor.ts';
import type { PersonVisit } from './visit.ts';

/** The form fields of a second factor. One of them has a value. */
export const factorFields = { code: 'factorCode', passkey: 'factorPasskey', recoveryCode: 'factorRecovery' } as const;

/** An authenticator code as people type it, also in groups. What is no code is no failed sign-in. */
const sixDigits = 'Enter the six digits of the code.';
export const totpCode = z.string({ error: sixDigits }).regex(/^(?:\s*\d){6}\s*$/, sixDigits);

/** The factors that a person can use. `passkey`: the options for the browser; null without one. */
export interface AvailableFactors {
  hasTotp: boolean;
  passkey: Awaited<ReturnType<typeof startPasskeyUse>>;
}

/** Returns the factors that the person can use now, with a new challenge for a passkey. */
export async function findAvailableFactors({ console, session }: PersonVisit): Promise<AvailableFactors> {
  const { database, factors, now } = console;
  const passkey = await startPasskeyUse(database, session, factors.relyingParty, now);
  return { hasTotp: await hasTotp(database, session.personId), passkey };
}

/**
 * Verifies the second factor in a form; null when there is none. `left` is the number of recovery
 * codes that remain after one was used.
 *
 * @throws IdentityError when the factor is not accepted.
 */
export async function consumeSecondFactor(
  { console, session, visitor }: PersonVisit,
  sent: (field: string) => string,
): Promise<(SecondFactorStep & { left?: number }) | null> {
  const { database, factors, now } = console;
  const [code, passkey, recoveryCode] = [factorFields.code, factorFields.passkey, factorFields.recoveryCode].map(sent);
  if (passkey) {
    const input = { response: parsePasskeyResponse(passkey), visitor };
    return verifyPasskey(database, session, input, factors.relyingParty, now);
  }
  if (code) {
    if (!totpCode.safeParse(code).success) throw new IdentityError('wrong_code', sixDigits);
    return verifyTotp(database, session, { code, visitor }, factors, now);
  }
  if (recoveryCode) return redeemRecoveryCode(database, session, { code: recoveryCode, visitor }, now);
  return null;
}

/**
 * Parses a passkey's response; null, which is rejected, for what is not JSON or longer than any
 * passkey sends.
 */
export function parsePasskeyResponse(text: string): unknown {
  if (text.length > passkeyResponseMaxLength) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
