import type { Middleware } from 'koa';
import helmet from 'koa-helmet';
import { securityHeaders as serverHeaders } from '#runtime/http-server.ts';
import { assets } from '../web/assets.ts';

/**
 * Headers of every response of the console's server, also to what is not well-formed HTTP.
 * Development by http must not bind browsers to https.
 */
export const headersOfEveryResponse = (https: boolean): Readonly<Record<string, string>> => {
  const { 'Strict-Transport-Security': _, ...byHttp } = serverHeaders;
  return https ? serverHeaders : byHttp;
};

/** What a page may load, by helmet. @param style - where its style may be from. */
const contentPolicy = (style: string) => ({
  useDefaults: false,
  directives: {
    defaultSrc: ["'none'"],
    scriptSrc: ["'self'"],
    styleSrc: [style],
    imgSrc: ["'self'"],
    connectSrc: ["'self'"],
    formAction: ["'self'"],
    frameAncestors: ["'none'"],
    baseUri: ["'none'"],
  },
});

/** Allows a page that contains its style, and no style of a file. */
export const setPolicyOfOwnStyle = helmet.contentSecurityPolicy(contentPolicy(assets.style.source));

/** Sets the headers of every page and file of the console, beside those. */
export const setSecurityHeaders = helmet({
  strictTransportSecurity: false, // the server sets both, see above
  xContentTypeOptions: false,
  contentSecurityPolicy: contentPolicy("'self'"),
  xFrameOptions: { action: 'deny' },
  // Not `no-referrer`: with that, browsers send `Origin: null` with forms.
  referrerPolicy: { policy: 'same-origin' },
});

/** Sets what helmet does not know: allowed browser features, and that no page is cached. */
export const setPageHeaders: Middleware = (ctx, next) => {
  ctx.set(
    'Permissions-Policy',
    'publickey-credentials-create=(self), publickey-credentials-get=(self), camera=(), geolocation=(), microphone=()',
  );
  ctx.set('Cache-Control', 'no-store');
  return next();
};
