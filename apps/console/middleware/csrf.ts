import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/**
 * Defenses against cross-site request forgery, each enough alone: the origin that the browser
 * states, and a token in every form that only a page of this session can contain.
 */

/**
 * Returns whether a request comes from a page of `origin`, as its browser states. Only browsers can
 * set `Sec-Fetch-Site`; `Origin` comes with every POST. A request with neither is rejected too.
 */
export function isSameOrigin(headers: IncomingHttpHeaders, origin: string): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return false;
  return headers.origin === undefined ? site === 'same-origin' : headers.origin === origin;
}

/**
 * Returns the token for every form of a session, or of a browser that is not signed in: an HMAC
 * under its secret cookie, so nothing is stored.
 */
export function formToken(secret: string): string {
  return createHmac('sha256', secret).update('org-api console: form').digest('base64url');
}

/** Compares the token of a form with the expected one, in constant time. */
export function isFormToken(token: string | null, expected: string): boolean {
  const right = Buffer.from(expected);
  const given = Buffer.from(token ?? '');
  return given.length === right.length && timingSafeEqual(given, right);
}

/** Returns 256 random bits as text, for a cookie. */
export const randomToken = (): string => randomBytes(32).toString('base64url');
