import type { ParameterizedContext } from 'koa';

/** Nothing but our own files, no script and no style in the page itself. `data:` pictures are Pico's arrows and ticks, in its style sheet. */
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

/** Headers of every answer of the console. `https` adds that browsers never come by http again, for two years. */
export function setSecurityHeaders(ctx: ParameterizedContext, https: boolean): void {
  ctx.set({
    'Content-Security-Policy': pagePolicy,
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    // Not `no-referrer`: with that, browsers send `Origin: null` with our own forms.
    'Referrer-Policy': 'same-origin',
    'Cross-Origin-Opener-Policy': 'same-origin',
    'Cross-Origin-Resource-Policy': 'same-origin',
    'Permissions-Policy':
      'publickey-credentials-create=(self), publickey-credentials-get=(self), camera=(), geolocation=(), microphone=()',
    'Cache-Control': 'no-store',
  });
  if (https) ctx.set('Strict-Transport-Security', 'max-age=63072000; includeSubDomains');
}
