/** Returns the token of an Authorization header of the scheme Bearer (RFC 6750, 2.1), or null. */
export function bearerOf(authorization: string | undefined): string | null {
  if (authorization === undefined || authorization.length < 8) return null;
  if (authorization.slice(0, 7).toLowerCase() !== 'bearer ') return null;
  return authorization.slice(7).trim() || null;
}
