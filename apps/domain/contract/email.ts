import { domainToASCII, domainToUnicode } from 'node:url';

/** A local part and a domain of two labels or more, the last not a number, in any script. */
const emailForm =
  /^[^\s@]{1,64}@(?:[\p{L}\p{N}](?:[\p{L}\p{M}\p{N}-]*[\p{L}\p{M}\p{N}])?\.)+[\p{L}\p{M}][\p{L}\p{M}\p{N}-]+$/u;

/** UTF-16 units of a text that may be an address. Longer ones are rejected before any work. */
const typedMaxLength = 1_000;

/**
 * Returns the one form in which an address is stored, compared and counted: NFC, lower case, and
 * the domain in ASCII (IDNA). A text that is no address keeps its other
 * characters, and matches none.
 */
export function canonicalEmail(text: string): string {
  if (text.length > typedMaxLength) return text;
  const typed = text.trim().normalize('NFC');
  const at = typed.lastIndexOf('@') + 1;
  return (typed.slice(0, at) + (domainToASCII(typed.slice(at)) || typed.slice(at))).toLowerCase();
}

/**
 * Letters and joiners of a domain that the two ways of IDNA (UTS #46, transitional or not) map
 * differently: of ß, some browsers and mail programs make ss, others a domain of its own. ẞ depends on
 * the version of Unicode.
 */
const readDifferently = /[ßẞς\u200c\u200d]/;

/**
 * Returns what a text must be to be an address of a member, who may sign in with it: the end of a
 * sentence that begins with "Enter" or "must be"; null when it is one. It repeats nothing of the
 * text. Imports, invitations, sign-ins and `orgctl` have this one rule.
 */
export function findEmailProblem(text: string): string | null {
  const incomplete = 'a complete email address, for example ada@example.org';
  if (text.length > typedMaxLength) return incomplete;
  const typed = text.trim().normalize('NFC');
  const email = canonicalEmail(text);
  const [, ...domains] = typed.split('@');
  if (readDifferently.test(domains.at(-1) ?? ''))
    return (
      'an email address whose domain is in its ASCII form (xn--…), because programs read ß, ς and invisible joiners ' +
      'in a domain differently'
    );
  if (!emailForm.test(typed) || !emailForm.test(email) || email.length > 254) return incomplete;
  return /^[!-~]*@/.test(email)
    ? null
    : 'an email address with only unaccented letters, digits and symbols before the @';
}

/**
 * Returns an address as people know it, with its domain in its own script if it may be entered in
 * that form.
 */
export function readableEmail(email: string): string {
  if (email.length > typedMaxLength) return email;
  const shown = email.replace(/[^@]+$/, (domain) => domainToUnicode(domain) || domain);
  return findEmailProblem(shown) === null ? shown : email;
}
