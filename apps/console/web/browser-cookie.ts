import { canonicalEmail } from '#domain/contract/email.ts';
import { type SealingKeys, seal, unseal } from '#domain/encryption/envelope.ts';

/**
 * The cookie of a browser that a person has signed in with: its token, and the address that it was
 * issued for, sealed. So an invented cookie costs no query, and one for another address is worth
 * nothing. `email` null: it has only signed in at a provider, and for a password it is any stranger's.
 */
export interface KnownBrowser {
  token: string;
  email: string | null;
}

const [boundTo, separator] = ['cookie/known-browser', ' '];

/** Returns the cookie's value. */
export const sealBrowser = ({ token, email }: KnownBrowser, keys: SealingKeys): string =>
  seal(token + separator + canonicalEmail(email ?? ''), boundTo, keys).toString('base64url');

/** Returns the content of a cookie; null for none, or one that this console did not issue. */
export function findBrowser(cookie: string | null, keys: SealingKeys): KnownBrowser | null {
  try {
    const [token = '', email = ''] = unseal(Buffer.from(cookie ?? '', 'base64url'), boundTo, keys).split(separator);
    return { token, email: email || null };
  } catch {
    return null;
  }
}
