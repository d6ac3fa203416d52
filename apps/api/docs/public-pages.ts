import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Context, Middleware } from 'koa';
import { once } from '#runtime/flow/once.ts';
import { sharedStyle } from '#runtime/pages/shared-style.ts';
import { chooseEncoding, type Encoding, findEncoding } from '../accept-encoding.ts';
import { encodeFile } from '../encode.ts';
import type { LargeBodySender } from '../large-body.ts';
import { chunkBytes } from '../large-statement.ts';
import { openApiDocument, openApiText } from '../openapi/document.ts';
import { postmanCollection } from './collection.ts';
import { readDocument } from './document.ts';
import { type Installation, pagePolicy, referencePage } from './page.ts';
import {
  eventMarkdown,
  eventsMarkdown,
  llmsText,
  partMarkdown,
  readMarkdown,
  readsMarkdown,
  referenceMarkdown,
} from './text-pages.ts';

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
  markdown: 'text/markdown; charset=utf-8',
  text: 'text/plain; charset=utf-8',
};

/**
 * Serves the OpenAPI document, the schema of import documents and the reference without a key, and ignores one that
 * is sent. A browser that opens `/` is sent to the reference. All readers share the bytes of a page.
 */
export function servePublicPages(installation: Installation, largeBodySender: LargeBodySender): Middleware {
  const findPage = publicPages(installation);

  return async (ctx, next) => {
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD') return next();
    if (ctx.path === '/' && acceptsPages(ctx)) return sendToReference(ctx);
    const page = findPage(ctx.path);
    if (page === null) return next();
    await sendPage(ctx, page, largeBodySender);
  };
}

async function sendPage(ctx: Context, page: PublicPage, largeBodySender: LargeBodySender): Promise<void> {
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
}

/** Programs accept anything, and get the error response of an unknown path. */
const acceptsPages = (ctx: Context): boolean => ctx.accepts('json', 'html') === 'html';

function sendToReference(ctx: Context): void {
  ctx.state.operation = 'docs';
  ctx.status = 303;
  ctx.set({ Location: '/docs', Vary: 'Accept', 'Cache-Control': 'no-cache' });
}

/** Yields a shared file in chunks without copying it. */
function* splitIntoChunks(bytes: Buffer): Generator<Buffer> {
  for (let from = 0; from < bytes.length; from += chunkBytes) yield bytes.subarray(from, from + chunkBytes);
}

/**
 * Returns the public pages by path, and null for any other path: the OpenAPI document, the JSON Schema of import
 * documents, and the reference, as a page and as Markdown. Everything is read and rendered once, here, and nothing is
 * fetched from another host.
 */
export function publicPages(installation: Installation): (path: string) => PublicPage | null {
  const { baseUrls, region } = installation;
  const document = openApiDocument({ baseUrls });
  const reference = readDocument(document);
  const baseUrl = baseUrls[region];
  const part = (id: string, text: string, common: string): [path: string, page: PublicPage] => [
    `/docs/${id}.md`,
    page('markdown', partMarkdown(text, common, baseUrl)),
  ];
  const [reads, events] = [readsMarkdown(reference, installation), eventsMarkdown(reference)];
  const html = page('html', referencePage(reference, installation), { 'Content-Security-Policy': pagePolicy });
  const pages = new Map<string, PublicPage>([
    ['/v1/openapi.json', page('json', openApiText(baseUrls), anyOrigin)],
    ['/v1/import-1.schema.json', page('json', importSchemaFile(), anyOrigin)],
    ['/v1/postman-collection.json', page('json', postmanCollection(reference, baseUrl), anyOrigin)],
    ['/docs', html],
    ['/docs/', html],
    ['/docs/reference.css', page('css', readStyle())],
    ['/docs/reference.js', page('js', readScript())],
    ['/docs/icon.svg', page('svg', ownFile('icon.svg'))],
    ['/docs.md', page('markdown', referenceMarkdown(reference, installation))],
    ['/llms.txt', page('text', llmsText(reference, baseUrl))],
    ...reference.reads.map((read) => part(read.id, readMarkdown(read), reads)),
    ...reference.events.map((event) => part(event.id, eventMarkdown(event), events)),
  ]);
  return (path) => pages.get(path) ?? null;
}

/** Comments and spaces are for those who change a file, and a sixth of its bytes. */
const readStyle = (): string =>
  Buffer.concat([sharedStyle, ownFile('reference.css')])
    .toString()
    .replace(/\/\*.*?\*\/\s*/gs, '')
    .replace(/(?<=[;{},])\s+/g, '')
    .replaceAll(';}', '}')
    .replaceAll(': ', ':');

/** A comment of the script begins its line, so that no text of it is taken for one. */
const readScript = (): string =>
  ownFile('reference.js')
    .toString()
    .replace(/^ *\/\*\*.*?\*\/\n/gms, '')
    .replace(/^ *\/\/.*\n/gm, '');

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
