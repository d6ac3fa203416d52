import type { RouteContext } from './state.ts';

/**
 * The console's cookies. `__Host-` binds each to this host, to https (browsers count
 * http://localhost as that) and to the whole of it, so that no neighbor can plant one. HttpOnly:
 * no script needs them. SameSite=Lax, not Strict: a person who follows a link in a mail should find
 * themselves signed in; what changes anything is a POST, which Lax, the origin check and the form's
 * token each stop alone.
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
 * Returns the value of a cookie; null when there is none or it is empty. Of two with the same name,
 * one of which another host must have planted, neither is taken; nor is one in quotes, which the
 * console never sets and the library would remove.
 */
export function readCookie(ctx: RouteContext, kind: CookieKind): string | null {
  const name = cookieName(kind, ctx.state.console.origin);
  const value = ctx.cookies.get(name) ?? '';
  const header = ctx.get('Cookie');
  const isOnly = header.split(`${name}=`).length === 2;
  return value !== '' && isOnly && header.includes(`${name}=${value}`) ? value : null;
}

/** Sets a cookie for `maxAgeSeconds`, or for as long as the browser runs; null removes it. */
export function setCookie(ctx: RouteContext, kind: CookieKind, value: string | null, maxAgeSeconds?: number): void {
  // TLS ends before this process, so the library cannot see it.
  ctx.cookies.secure = true;
  ctx.cookies.set(cookieName(kind, ctx.state.console.origin), value, {
    secure: true,
    sameSite: 'lax',
    overwrite: true,
    ...(value === null || maxAgeSeconds === undefined ? {} : { maxAge: maxAgeSeconds * 1_000 }),
  });
}
