import type { Middleware } from 'koa';
import { findAsset } from './assets.ts';
import type { ConsoleState } from './state.ts';

/**
 * The files that pages load. Their paths hold their hashes, so a browser keeps each for ever and a
 * new version has a new path.
 */
export const serveAssets: Middleware<ConsoleState> = async (ctx, next) => {
  const asset = ctx.method === 'GET' || ctx.method === 'HEAD' ? findAsset(ctx.path) : null;
  if (asset === null) return next();
  ctx.state.operation = 'asset';
  ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
  ctx.vary('Accept-Encoding');
  const takesBrotli = ctx.acceptsEncodings('br', 'identity') === 'br';
  if (takesBrotli) ctx.set('Content-Encoding', 'br');
  ctx.body = takesBrotli ? await asset.brotli() : asset.body;
  ctx.set('Content-Type', asset.type);
};
