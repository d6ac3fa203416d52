import { createHmac, timingSafeEqual } from 'node:crypto';
import { canonicalEmail } from '#domain/contract/email.ts';

/**
 * The cookie of a browser that a person has signed in with: `<token>.<tag>`. The token finds its
 * row. The tag proves, without the database, that this console issued it for one email address: an
 * invented cookie costs nothing, and a cookie for one address is worth nothing for another.
 */

type TagSecrets = readonly [Buffer, ...Buffer[]];

/** Returns the cookie's value for a token of the person who signs in with `email`. */
export function sealBrowserToken(token: string, email: string, [newest]: TagSecrets): string {
  return `${token}.${tagOf(token, email, newest)}`;
}

/** Returns the token of a cookie, unverified; null without a cookie. */
export const readBrowserToken = (cookie: string | null): string | null => cookie?.split('.')[0] ?? null;

/** Returns the token of a cookie that was issued for `email`; null for any other. */
export function findProvenBrowser(cookie: string | null, email: string, secrets: TagSecrets): string | null {
  const [token = '', tag = ''] = cookie?.split('.') ?? [];
  const given = Buffer.from(tag);
  const isProven = secrets.some((secret) => {
    const right = Buffer.from(tagOf(token, email, secret));
    return given.length === right.length && timingSafeEqual(given, right);
  });
  return isProven ? token : null;
}

/** 128 bits, under a label with which no API key begins. */
function tagOf(token: string, email: string, secret: Buffer): string {
  const text = ['org-api console: known browser', token, canonicalEmail(email)].join('\0');
  return createHmac('sha256', secret).update(text).digest('base64url').slice(0, 22);
}
