import type { Middleware } from 'koa';
import type { Region } from '#domain/contract/regions.ts';
import { publicPages } from './docs/public-pages.ts';
import type { LargeBodySender } from './large-body.ts';
import { chunkBytes } from './large-statement.ts';

/**
 * Serves the OpenAPI document and the reference page without a key, and ignores one that is sent.
 * All readers share the bytes of a page.
 */
export function servePublicPages(baseUrls: Record<Region, string>, largeBodySender: LargeBodySender): Middleware {
  const findPage = publicPages({ baseUrls });

  return (ctx, next) => {
    const page = ctx.method === 'GET' || ctx.method === 'HEAD' ? findPage(ctx.path) : null;
    if (page === null) return next();
    ctx.state.operation = 'docs';
    ctx.status = page.status;
    ctx.type = page.type;
    ctx.set(page.headers);
    if (page.body.length <= chunkBytes) ctx.body = page.body;
    else largeBodySender.send(ctx, chunksOf(page.body), page.body.length);
    if (ctx.fresh) ctx.status = 304;
  };
}

/** Yields a shared file in chunks without copying it. */
function* chunksOf(bytes: Buffer): Generator<Buffer> {
  for (let from = 0; from < bytes.length; from += chunkBytes) yield bytes.subarray(from, from + chunkBytes);
}
