import { domainToASCII, domainToUnicode } from 'node:url';

/** A local part and a domain of two labels or more, the last not a number, in any script. */
const emailForm =
  /^[^\s@]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?\.)+[\p{L}\p{M}][\p{L}\p{M}\p{N}-]+$/u;

/**
 * Returns the one form in which an address is stored, compared and counted: NFC, lower case, and
 * the domain in ASCII (IDNA), as browsers send it. A text that is no address keeps its other
 * characters, and matches none.
 */
export function canonicalEmail(text: string): string {
  const typed = text.trim().normalize('NFC');
  const at = typed.lastIndexOf('@') + 1;
  return (typed.slice(0, at) + (domainToASCII(typed.slice(at)) || typed.slice(at))).toLowerCase();
}

/** Returns an address as people know it, with its domain in its own script. */
export const readableEmail = (email: string): string =>
  email.replace(/[^@]+$/, (domain) => domainToUnicode(domain) || domain);

export function isEmail(text: string): boolean {
  const email = canonicalEmail(text);
  return emailForm.test(text.trim().normalize('NFC')) && emailForm.test(email) && email.length <= 254;
}

/** Returns whether browsers accept what is before the `@`: they take ASCII only. */
export const hasAsciiLocalPart = (text: string): boolean => /^[!-~]*@/.test(canonicalEmail(text));
