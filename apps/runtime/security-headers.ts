/**
 * Headers of every answer, also to malformed HTTP. Browsers use https for two years (RFC 6797;
 * ignored over http), and never guess a type.
 */
export const securityHeaders = {
  'Strict-Transport-Security': 'max-age=63072000; includeSubDomains',
  'X-Content-Type-Options': 'nosniff',
} as const satisfies Readonly<Record<string, string>>;
