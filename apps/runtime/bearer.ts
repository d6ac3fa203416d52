/**
 * Returns the token of a request's Authorization header, or null when there is none, or when the
 * scheme is not Bearer. Source: RFC 6750, section 2.1.
 */
export function bearerOf(authorization: string | undefined): string | null {
  if (authorization === undefined || authorization.length < 8) return null;
  if (authorization.slice(0, 7).toLowerCase() !== 'bearer ') return null;
  return authorization.slice(7).trim() || null;
}
