import type { ParameterizedContext } from 'koa';
import { securityHeaders } from '#runtime/security-headers.ts';

/**
 * Nothing but our own files, no script and no style in the page itself. `data:` pictures are Pico's
 * arrows and ticks, in its style sheet.
 */
const pagePolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
].join('; ');

/**
 * Headers of every answer of the console's server, also to what is not well-formed HTTP.
 * Development by http must not bind browsers to https.
 */
export const headersOfEveryAnswer = (https: boolean): Readonly<Record<string, string>> => {
  const { 'Strict-Transport-Security': _, ...byHttp } = securityHeaders;
  return https ? securityHeaders : byHttp;
};

/** Headers of every page and file of the console, beside those. */
export function setSecurityHeaders(ctx: ParameterizedContext): void {
  ctx.set({
    'Content-Security-Policy': pagePolicy,
    'X-Frame-Options': 'DENY',
    // Not `no-referrer`: with that, browsers send `Origin: null` with our own forms.
    'Referrer-Policy': 'same-origin',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Permissions-Policy':
      'publickey-credentials-create=(self), publickey-credentials-get=(self), camera=(), geolocation=(), microphone=()',
    'Cache-Control': 'no-store',
  });
}
