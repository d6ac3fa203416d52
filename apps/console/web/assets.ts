import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress } from 'node:zlib';
import type { Middleware } from 'koa';
import { once } from '#runtime/flow/once.ts';
import { sharedStyle } from '#runtime/pages/shared-style.ts';
import type { ConsoleState } from './state.ts';

/** A file that pages load. Its path contains its hash, so that browsers keep it for ever. */
interface Asset {
  path: string;
  type: string;
  body: Buffer;
  /** For a policy that allows it within a page. */
  source: string;
  /**
   * The same, smaller, for browsers that read it. Compressed when first asked for, off the main
   * thread: all of them take a second of processor time.
   */
  brotli: () => Promise<Buffer>;
}

const compress = promisify(brotliCompress);
const require = createRequire(import.meta.url);
const css = 'text/css; charset=utf-8';
const js = 'text/javascript; charset=utf-8';

/** Every file that pages load, read once. No page loads anything from another host. */
export const assets = {
  style: asset('console.css', css, Buffer.concat([sharedStyle, ownFile('console.css')])),
  icon: asset('icon.svg', 'image/svg+xml', ownFile('icon.svg')),
  htmx: asset('htmx.js', js, libraryFile('htmx.org/dist/htmx.min.js')),
  webauthn: asset('webauthn.js', js, besideEntry('@simplewebauthn/browser', '../dist/bundle/index.umd.min.js')),
  script: asset('console.js', js, ownFile('console.js')),
  session: asset('session.js', js, ownFile('session.js')),
  stepUp: asset('step-up.js', js, ownFile('step-up.js')),
} as const;

const byPath = new Map<string, Asset>(Object.values(assets).map((each) => [each.path, each]));

/** Serves these files, with headers that let browsers keep them for ever. */
export const serveAssets: Middleware<ConsoleState> = async (ctx, next) => {
  const asset = ctx.method === 'GET' || ctx.method === 'HEAD' ? byPath.get(ctx.path) : undefined;
  if (asset === undefined) return next();
  ctx.state.operation = 'asset';
  ctx.set('Cache-Control', 'public, max-age=31536000, immutable');
  ctx.vary('Accept-Encoding');
  const takesBrotli = ctx.acceptsEncodings('br', 'identity') === 'br';
  if (takesBrotli) ctx.set('Content-Encoding', 'br');
  ctx.body = takesBrotli ? await asset.brotli() : asset.body;
  ctx.set('Content-Type', asset.type);
};

function asset(name: string, type: string, body: Buffer): Asset {
  return {
    path: `/assets/${hash('sha256', body, 'base64url').slice(0, 12)}/${name}`,
    type,
    body,
    source: `'sha256-${hash('sha256', body, 'base64')}'`,
    brotli: once(() => compress(body)),
  };
}

function ownFile(name: string): Buffer {
  return readFileSync(new URL(`../assets/${name}`, import.meta.url));
}

function libraryFile(path: string): Buffer {
  return readFileSync(require.resolve(path));
}

/** A file of a package that exports its entry alone, by its path beside that. */
function besideEntry(library: string, file: string): Buffer {
  return readFileSync(join(dirname(require.resolve(library)), file));
}
