/**
 * Returns whether an `If-None-Match` header names a strong entity tag, by weak comparison; `*`
 * matches anything (RFC 9110, section 13.1.2). Why not `ctx.fresh`: docs/adr/0106.
 */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === '') return false;
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === etag);
}
