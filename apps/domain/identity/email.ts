import { IdentityRefused } from './refused.ts';

/** A local part and a domain of two labels or more, the last not a number, in any script. */
const emailForm =
  /^[^\s@]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?\.)+[\p{L}\p{M}][\p{L}\p{M}\p{N}-]+$/u;

/**
 * Returns an email address without surrounding blanks, as it was typed. PostgreSQL compares
 * addresses in lower case.
 *
 * @throws IdentityRefused `email_malformed`
 */
export function assertEmail(text: string): string {
  const email = text.trim();
  if (email.length <= 254 && emailForm.test(email)) return email;
  throw new IdentityRefused('email_malformed', 'Enter a complete email address, for example ada@example.org.');
}
