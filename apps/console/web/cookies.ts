import type { ParameterizedContext } from 'koa';

/**
 * The console's cookies. `__Host-` binds each to this host, to https (browsers count
 * http://localhost as that) and to the whole of it, so that no neighbour can plant one. HttpOnly:
 * no script of ours needs them. SameSite=Lax, not Strict: who follows a link in a mail of ours
 * should find themselves signed in; what changes anything is a POST, which Lax, the origin check
 * and the form's token each stop alone.
 */
const kinds = {
  /** The session's token. */
  session: '__Host-org-api-session',
  /** A random mark of a browser that is not signed in, which its forms' tokens are bound to. */
  visit: '__Host-org-api-visit',
  /** The token of an enrolment link that was opened: no address ever holds it. */
  enrolment: '__Host-org-api-enrolment',
  /** The token by which this is a browser that its person has signed in with; it opens nothing. */
  browser: '__Host-org-api-browser',
  /** A sentence for the next page (`The key was revoked.`). */
  flash: '__Host-org-api-flash',
} as const;

export type CookieKind = keyof typeof kinds;

/**
 * What a cookie is called at an origin. Cookies know no ports, so on localhost, where each region's
 * console has one of its own, the name holds it: signing in to one does not sign out of the other.
 */
export function cookieName(kind: CookieKind, origin: string): string {
  const { protocol, port } = new URL(origin);
  return protocol === 'https:' ? kinds[kind] : `${kinds[kind]}-${port || '80'}`;
}

/**
 * Reads a cookie; null when there is none or it is empty. Of two with the same name, which cannot
 * both be ours, neither is taken.
 */
export function readCookie(header: string | undefined, kind: CookieKind, origin: string): string | null {
  const prefix = `${cookieName(kind, origin)}=`;
  const found = (header ?? '').split(/; ?/).filter((part) => part.startsWith(prefix));
  const value = found.length === 1 ? (found[0] ?? '').slice(prefix.length) : '';
  return value === '' ? null : value;
}

/**
 * Sets a cookie of an origin for as long as the browser runs, or `maxAgeSeconds`; null takes it
 * away.
 */
export function setCookie(
  ctx: ParameterizedContext,
  origin: string,
  kind: CookieKind,
  value: string | null,
  maxAgeSeconds?: number,
): void {
  const age = value === null ? '; Max-Age=0' : maxAgeSeconds === undefined ? '' : `; Max-Age=${maxAgeSeconds}`;
  ctx.append('Set-Cookie', `${cookieName(kind, origin)}=${value ?? ''}; Path=/; Secure; HttpOnly; SameSite=Lax${age}`);
}
