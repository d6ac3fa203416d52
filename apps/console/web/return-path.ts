/**
 * Returns the path to continue at after signing in: `to` when it leads to this console, else the
 * start page.
 *
 * A path is accepted only when a browser that resolves the result again arrives at the same URL:
 * resolving removes dot segments, which turns `/.//evil.example` into `//evil.example`, another
 * host.
 */
export function returnPath(to: string, origin: string): string {
  // A browser reads a backslash as a slash and drops tabs and line breaks; paths of this console
  // hold neither.
  if (!/^\/[\x21-\x5b\x5d-\x7e]*$/.test(to)) return '/';
  const url = URL.parse(to, origin);
  if (url === null || url.origin !== origin) return '/';
  const path = url.pathname + url.search;
  url.hash = '';
  return URL.parse(path, origin)?.href === url.href ? path : '/';
}
