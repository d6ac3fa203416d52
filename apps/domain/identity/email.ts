import { canonicalEmail, hasAsciiLocalPart, isEmail } from '../contract/email.ts';
import { IdentityError } from './errors.ts';

/** Returns the canonical form of an address to sign in with. @throws IdentityError `email_malformed` */
export function assertEmail(text: string): string {
  if (!isEmail(text))
    throw new IdentityError('email_malformed', 'Enter a complete email address, for example ada@example.org.');
  if (!hasAsciiLocalPart(text))
    throw new IdentityError(
      'email_malformed',
      'Enter an email address with only unaccented letters, digits and symbols before the @. Browsers accept no ' +
        'other characters there, so its owner could not sign in.',
    );
  return canonicalEmail(text);
}
