import type { Middleware } from 'koa';
import type { Region } from '#domain/contract/regions.ts';
import { publicPages } from './docs/public-pages.ts';

/** The OpenAPI document and the reference page, for everybody: a key that comes along is ignored (design, section 5). */
export function servePublicPages(baseUrls: Record<Region, string>): Middleware {
  const findPage = publicPages({ baseUrls });

  return (ctx, next) => {
    const page = ctx.method === 'GET' || ctx.method === 'HEAD' ? findPage(ctx.path) : null;
    if (page === null) return next();
    ctx.state.operation = 'docs';
    ctx.status = page.status;
    ctx.type = page.type;
    ctx.set(page.headers);
    ctx.body = page.body;
    if (ctx.fresh) ctx.status = 304;
  };
}
