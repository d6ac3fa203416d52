import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/**
 * Defenses against forms that another site sends in a person's name, each enough alone: where the
 * request says it comes from, and a token in every form that only a page of ours, for this session,
 * can hold.
 */

/**
 * Whether a request that changes something comes from a page of ours, as its browser says.
 * `Sec-Fetch-Site` is set by the browser alone; `Origin` comes with every POST. A request with
 * neither is no browser's of today and is refused too.
 */
export function isSameOrigin(headers: IncomingHttpHeaders, origin: string): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return false;
  return headers.origin === undefined ? site === 'same-origin' : headers.origin === origin;
}

/**
 * The token of every form of one session (or of one browser that is not signed in): an HMAC under
 * its secret cookie, so that nothing is stored.
 */
export function formToken(secret: string): string {
  return createHmac('sha256', secret).update('org-api console: form').digest('base64url');
}

/** Whether a form brought the right token, compared in constant time. */
export function isFormToken(token: string | null, rightToken: string): boolean {
  const right = Buffer.from(rightToken);
  const given = Buffer.from(token ?? '');
  return given.length === right.length && timingSafeEqual(given, right);
}

/** 256 random bits as text, for a cookie. */
export const randomMark = (): string => randomBytes(32).toString('base64url');
