import { domainToASCII, domainToUnicode } from 'node:url';

/** A local part and a domain of two labels or more, in ASCII: the last one is no number. */
const emailForm = /^[^\s@]{1,64}@(?:[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)+[a-z][a-z\d-]{0,61}[a-z\d]$/;

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

/** What a domain may consist of as it is typed. */
const domainForm = /^[\p{L}\p{M}\p{N}\u200c-\u200d.-]+$/u;

/**
 * What comes back although programs map it differently: of ß, transitional ones (UTS #46) make ss, others
 * a domain of its own. The ideographs are compatibility ones, some of which Unicode has corrected.
 */
const readDifferently = /[ßς\u200c-\u200d\uf900-\ufaff\u{2f800}-\u{2fa1f}]/u;

/**
 * Returns whether every program makes the same domain of what was typed: it is, but for case and
 * composition, the ASCII form or what that form reads as. A character that is left out or replaced by
 * another one, which programs do by their version of Unicode, does not come back.
 */
function isReadAlike(typed: string, ascii: string): boolean {
  // In lower case, Σ at the end of a word is ς.
  const lower = Array.from(typed, (letter) => letter.toLowerCase()).join('');
  return !readDifferently.test(lower) && [ascii, domainToUnicode(ascii)].includes(lower.normalize('NFC'));
}

/** Returns what follows the last at sign, or the whole text. */
const getDomain = (address: string): string => address.slice(address.lastIndexOf('@') + 1);

/**
 * Returns what a text must be to be an address of a member, who may sign in with it: the end of a
 * sentence that begins with "Enter" or "must be"; null when it is one. It repeats nothing of the
 * text. Imports, invitations, sign-ins and `orgctl` have this one rule.
 */
export function findEmailProblem(text: string): string | null {
  const incomplete = 'a complete email address, for example ada@example.org';
  if (text.length > typedMaxLength) return incomplete;
  const email = canonicalEmail(text);
  const typed = getDomain(text.trim());
  if (!domainForm.test(typed)) return incomplete;
  if (!isReadAlike(typed, getDomain(email)))
    return 'an email address whose domain is in its ASCII form (xn--…), because programs read this one differently';
  if (!emailForm.test(email) || email.length > 254) return incomplete;
  return /^[!-~]*@/.test(email)
    ? null
    : 'an email address with only unaccented letters, digits and symbols before the @';
}

/**
 * What mail servers read differently, or as a list, in the address of a recipient; as is_mail_address of the database.
 */
const notMailable = /[[\]<>(),:;"\\]/;

/** Returns whether mail is sent to an address in its canonical form. One that is not can still sign in. */
export const isMailable = (email: string): boolean => !notMailable.test(email);

/** The end of a sentence about an address that is not mailable. */
export const notMailableReason =
  'has one of the characters < > ( ) [ ] , : ; " \\ before the @, which mail servers read in different ways';

/**
 * Returns an address as people know it, with its domain in its own script if it may be entered in
 * that form.
 */
export function readableEmail(email: string): string {
  if (email.length > typedMaxLength) return email;
  const shown = email.replace(/[^@]+$/, (domain) => domainToUnicode(domain) || domain);
  return findEmailProblem(shown) === null ? shown : email;
}
