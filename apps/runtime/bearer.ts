/**
 * What a request's Authorization header holds: a bearer's text, or null when there is none (also
 * for another scheme, or no text). Source: RFC 6750, section 2.1.
 */
export function bearerOf(authorization: string | undefined): string | null {
  if (authorization === undefined || authorization.length < 8) return null;
  if (authorization.slice(0, 7).toLowerCase() !== 'bearer ') return null;
  return authorization.slice(7).trim() || null;
}
