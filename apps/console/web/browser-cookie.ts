import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * The cookie of a browser that its person has signed in with: `<token>.<tag>`. The token finds its
 * row; the tag proves, without asking the database, that this console gave it to the person of one
 * address. So a made-up cookie costs nothing, and who holds one for their own address gains nothing
 * for another's.
 */

type TagSecrets = readonly [Buffer, ...Buffer[]];

/**
 * Returns the cookie's value for a token that was given to the person who signs in with `email`.
 */
export function sealBrowserToken(token: string, email: string, [newest]: TagSecrets): string {
  return `${token}.${tagOf(token, email, newest)}`;
}

/** Returns the token of a cookie; null without a cookie. Proves nothing. */
export const readBrowserToken = (cookie: string | null): string | null => cookie?.split('.')[0] ?? null;

/**
 * Returns the token of a cookie that was given to the person who signs in with `email`; null for
 * any other.
 */
export function findProvenBrowser(cookie: string | null, email: string, secrets: TagSecrets): string | null {
  const [token = '', tag = ''] = cookie?.split('.') ?? [];
  const given = Buffer.from(tag);
  const isProven = secrets.some((secret) => {
    const right = Buffer.from(tagOf(token, email, secret));
    return given.length === right.length && timingSafeEqual(given, right);
  });
  return isProven ? token : null;
}

/** 128 bits, under a label that no API key's text begins with. */
function tagOf(token: string, email: string, secret: Buffer): string {
  const text = ['org-api console: known browser', token, email.trim().toLowerCase()].join('\0');
  return createHmac('sha256', secret).update(text).digest('base64url').slice(0, 22);
}
