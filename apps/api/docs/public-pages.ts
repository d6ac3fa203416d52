import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Middleware } from 'koa';
import type { Region } from '#domain/contract/regions.ts';
import { once } from '#runtime/flow/once.ts';
import { chooseEncoding, type Encoding, findEncoding } from '../accept-encoding.ts';
import { encodeFile } from '../encode.ts';
import type { LargeBodySender } from '../large-body.ts';
import { chunkBytes } from '../large-statement.ts';
import { openApiDocument, openApiText } from '../openapi/document.ts';
import { pagePolicy, referencePage } from './page.ts';

/**
 * One public page or file. `headers` contain everything but type and length; the caller compares
 * the `ETag`.
 */
interface PublicPage {
  status: number;
  type: string;
  body: Buffer;
  /** The same, smaller. Each is made when it is first requested, and kept. */
  encoded: Record<Encoding, () => Promise<Buffer>>;
  headers: { ETag: string } & Record<string, string>;
}

const types = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  json: 'application/json',
};

/**
 * Serves the OpenAPI document, the schema of import documents and the reference page without a key, and
 * ignores one that is sent.
 * All readers share the bytes of a page.
 */
export function servePublicPages(baseUrls: Record<Region, string>, largeBodySender: LargeBodySender): Middleware {
  const findPage = publicPages({ baseUrls });

  return async (ctx, next) => {
    const page = ctx.method === 'GET' || ctx.method === 'HEAD' ? findPage(ctx.path) : null;
    if (page === null) return next();
    ctx.state.operation = 'docs';
    ctx.status = page.status;
    ctx.type = page.type;
    ctx.set(page.headers);
    const encoding = findEncoding(chooseEncoding(ctx.get('Accept-Encoding')), page.body.length);
    const body = encoding === null ? page.body : await page.encoded[encoding]();
    if (encoding !== null) ctx.set({ ETag: `W/${page.headers.ETag}`, 'Content-Encoding': encoding });
    if (body.length <= chunkBytes) ctx.body = body;
    else largeBodySender.send(ctx, splitIntoChunks(body), body.length);
    if (!ctx.fresh) return;
    ctx.status = 304;
    ctx.remove('Content-Encoding');
  };
}

/** Yields a shared file in chunks without copying it. */
function* splitIntoChunks(bytes: Buffer): Generator<Buffer> {
  for (let from = 0; from < bytes.length; from += chunkBytes) yield bytes.subarray(from, from + chunkBytes);
}

/**
 * Returns the OpenAPI document at `/v1/openapi.json`, the JSON Schema of import documents at
 * `/v1/import-1.schema.json` and the reference page at `/docs` by path, and null for any other path. They
 * ignore every key. Everything is read once, here, and nothing is
 * fetched from another host.
 *
 * Swagger UI renders the page. It was the only one of those tried that runs without inline styles
 * and scripts and without a request to another host: redoc 3.0.1 needs inline styles and shows a
 * picture from a CDN, `@scalar/api-reference` 1.72.1 requests its creator's registry,
 * `@stoplight/elements` 9.0.25 and rapidoc 9.3.8 need inline styles, and the former does not list
 * the webhooks.
 */
export function publicPages({ baseUrls }: { baseUrls: Record<Region, string> }): (path: string) => PublicPage | null {
  const { info } = openApiDocument({ baseUrls });
  const html = page('html', referencePage({ title: info.title, introduction: info.description }), {
    'Content-Security-Policy': pagePolicy,
  });
  const pages = new Map<string, PublicPage>([
    ['/v1/openapi.json', page('json', openApiText(baseUrls), anyOrigin)],
    ['/v1/import-1.schema.json', page('json', importSchemaFile(), anyOrigin)],
    ['/docs', html],
    ['/docs/', html],
    ['/docs/start.js', page('js', ownFile('start.js'))],
    ['/docs/style.css', page('css', ownFile('style.css'))],
    ['/docs/icon.svg', page('svg', ownFile('icon.svg'))],
    ['/docs/swagger-ui.css', page('css', libraryFile('swagger-ui.css'))],
    ['/docs/swagger-ui-bundle.js', page('js', libraryFile('swagger-ui-bundle.js'))],
  ]);
  return (path) => pages.get(path) ?? null;
}

/** The pages of any origin may read a document. */
const anyOrigin = { 'Access-Control-Allow-Origin': '*' };

/**
 * Caches may keep it but must revalidate: a new version is seen at once, and an unchanged one costs
 * a 304.
 */
function page(type: keyof typeof types, content: string | Buffer, headers: Record<string, string> = {}): PublicPage {
  const body = Buffer.from(content);
  const always = {
    ETag: `"${hash('sha256', body, 'base64url').slice(0, 22)}"`,
    'Cache-Control': 'public, no-cache',
    Vary: 'Accept-Encoding',
    'Referrer-Policy': 'no-referrer',
  };
  const encoded = { br: once(() => encodeFile(body, 'br')), gzip: once(() => encodeFile(body, 'gzip')) };
  return { status: 200, type: types[type], body, encoded, headers: { ...always, ...headers } };
}

function ownFile(name: string): Buffer {
  return readFileSync(new URL(name, import.meta.url));
}

/** The committed file: apps do not import each other. */
function importSchemaFile(): Buffer {
  return readFileSync(new URL('../../import/import-1.schema.json', import.meta.url));
}

function libraryFile(name: string): Buffer {
  return readFileSync(createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`));
}
