import { truncate } from '../components/text.ts';
import type { Flash } from '../web/response.ts';
import type { RouteContext } from '../web/state.ts';

/**
 * The console's cookies. `__Host-` binds each to this host and to https (browsers accept
 * http://localhost), so that no neighboring host can plant one. SameSite is Lax, not Strict, so that
 * a person who follows a link in an email is signed in. Only POST changes anything, and Lax, the
 * origin check and the form's token each stop a foreign one.
 */
const kinds = {
  /** The session's token. */
  session: '__Host-org-api-session',
  /** A random value of a browser that is not signed in, to which its forms' tokens are bound. */
  visit: '__Host-org-api-visit',
  /** The token of an enrolment link that was opened; it is in no URL. */
  enrolment: '__Host-org-api-enrolment',
  /** The token of a sign-in that was begun at a provider. */
  providerSignIn: '__Host-org-api-provider-sign-in',
  /** Marks a browser that its person has signed in with; it opens nothing. */
  browser: '__Host-org-api-browser',
  /** What the next page shows once: `good=API+key+revoked.` */
  flash: '__Host-org-api-flash',
} as const;

type CookieKind = keyof typeof kinds;

/**
 * Returns the name of a cookie. Cookies know no ports, so on localhost, where each region's console
 * has a separate port, the name contains it. Signing in to one does not sign out of the other.
 */
export function cookieName(kind: CookieKind, origin: string): string {
  const { protocol, port } = new URL(origin);
  return protocol === 'https:' ? kinds[kind] : `${kinds[kind]}-${port || '80'}`;
}

/**
 * Returns the value of a cookie; null when there is none, it is empty, or two have this name, one of
 * which another host must have planted. A neighboring host may set any other name, also one that
 * ends with this one, so whole names are compared, and no space but the one that browsers write
 * between two cookies is ignored.
 */
export function readCookie(ctx: RouteContext, kind: CookieKind): string | null {
  const name = `${cookieName(kind, ctx.state.console.origin)}=`;
  const sent = ctx.get('Cookie').split('; ');
  const [value, ...others] = sent.filter((pair) => pair.startsWith(name)).map((pair) => pair.slice(name.length));
  return others.length === 0 ? value || null : null;
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

/** How long (s) a flash message waits for the next page. */
const flashSeconds = 60;
/**
 * How many characters of it are kept: each may take nine bytes, and browsers drop a cookie of more
 * than 4,096.
 */
const flashMaxLength = 400;

export function setFlash(ctx: RouteContext, flash: Flash | null): void {
  const value = flash && new URLSearchParams({ [flash.kind]: truncate(flash.text, flashMaxLength) }).toString();
  setCookie(ctx, 'flash', value, flashSeconds);
}

/** Returns the flash message of the page before; null: there is none, or the console did not set it. */
export function readFlash(ctx: RouteContext): Flash | null {
  const [[kind, text] = []] = [...new URLSearchParams(readCookie(ctx, 'flash') ?? '')];
  return text !== undefined && (kind === 'good' || kind === 'warning') ? { kind, text } : null;
}
