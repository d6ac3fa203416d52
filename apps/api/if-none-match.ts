/**
 * Whether an `If-None-Match` header names a strong entity tag, by weak comparison; `*` matches
 * anything. Source: RFC 9110, section 13.1.2.
 */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === '') return false;
  if (ifNoneMatch.trim() === '*') return true;
  return ifNoneMatch.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === etag);
}
