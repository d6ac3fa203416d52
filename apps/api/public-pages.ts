import type { Middleware } from 'koa';

export function servePublicPages(_baseUrls: { us: string; ca: string }): Middleware {
  return (_ctx, next) => next();
}
