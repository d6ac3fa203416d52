/**
 * Headers of every answer, also of refusals and of those to what is not well-formed HTTP: browsers
 * never come by http again, for two years (RFC 6797; ignored where they came by http), and never
 * guess a type.
 */
export const securityHeaders = {
  'Strict-Transport-Security': 'max-age=63072000; includeSubDomains',
  'X-Content-Type-Options': 'nosniff',
} as const satisfies Readonly<Record<string, string>>;
