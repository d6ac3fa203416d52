import { hash } from 'node:crypto';

/**
 * Returns the ETag of a body, the same for all keys of its organization. The database
 * computes that of a large one: `largeStatement`.
 */
export const computeEtag = (body: string): string => `"${hash('sha256', body, 'base64url').slice(0, 22)}"`;

/**
 * Returns the strong ETags of an `If-None-Match` header, without the marks of weak ones, or
 * null for `*`, which matches anything (RFC 9110, section 13.1.2). docs/adr/0106 says why
 * `ctx.fresh` is not used.
 */
export function listEtags(ifNoneMatch: string): string[] | null {
  if (ifNoneMatch === '') return [];
  if (ifNoneMatch.trim() === '*') return null;
  return ifNoneMatch.split(',').map((candidate) => candidate.trim().replace(/^W\//, ''));
}

/** Returns whether an `If-None-Match` header names an ETag, by weak comparison. */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  return listEtags(ifNoneMatch)?.includes(etag) ?? true;
}
