/** Where to go on after signing in: the path asked for when it is one of ours, else the start page. Never another site's. */
export function returnPath(to: string, origin: string): string {
  // A browser reads a backslash as a slash, and two slashes as another host.
  if (!/^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(to) || !URL.canParse(to, origin)) return '/';
  const url = new URL(to, origin);
  return url.origin === origin ? url.pathname + url.search : '/';
}
