import { readFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { errorCodes, errorHelp } from '#domain/contract/errors.ts';
import { eventData, eventEnvelope, eventTypes } from '#domain/contract/events.ts';
import { shareApi } from '#test/setup.ts';
import { defaultBaseUrls } from '../../../apps/api/config.ts';
import { publicPages } from '../../../apps/api/docs/public-pages.ts';
import { languages } from '../../../apps/api/docs/samples.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { versions } from '../../../apps/api/openapi/changes.ts';
import { openApiDocument } from '../../../apps/api/openapi/document.ts';
import { deliveryHeaderExamples } from '../../../apps/api/openapi/examples.ts';
import { eventSchema, schemaReference } from '../../../apps/api/openapi/schemas.ts';
import { eventOperationId } from '../../../apps/api/openapi/webhooks.ts';

const findPage = publicPages({ baseUrls: defaultBaseUrls, region: 'us' });
const read = (path: string): string => findPage(path)?.body.toString() ?? '';
const page = read('/docs');
const document = openApiDocument({ baseUrls: defaultBaseUrls });
const { headers, schemas } = document.components;

/** What the page shows as text, without its markup. */
const shown = decode(page.replaceAll(/<[^>]+>/g, ''));

function decode(text: string): string {
  const characters: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
  return text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => characters[name] ?? '');
}

/** Returns what readers see of Markdown within a line. */
const plain = (text: string): string => text.replaceAll('`', '').replaceAll('**', '');

/** Returns every text that the document has under a name, at any depth. */
function collect(value: unknown, name: string): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) =>
    key === name && typeof part === 'string' ? [part] : collect(part, name),
  );
}

/** Every paragraph that the document says of reads, events, parameters, headers and fields. */
const descriptions = collect(
  [document.paths, document.webhooks, document.components.parameters, headers, schemas],
  'description',
).flatMap((text) => text.split('\n\n'));

/** Returns the lines that Markdown needs of a schema: a field with its type begins one, and its values are in it. */
function listFields(schema: Schema, indent = ''): { start: string; values: string[] }[] {
  const { properties = {}, items, anyOf = [] } = resolve(schema);
  const own = Object.entries(properties).flatMap(([name, property]) => [
    { start: `${indent}- \`${name}\` (`, values: resolve(property).enum ?? [] },
    ...listFields(property, `${indent}  `),
  ]);
  return [...own, ...[...(items ? [items] : []), ...anyOf].flatMap((each) => listFields(each, indent))];
}

interface Schema {
  $ref?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  enum?: string[];
}

const resolve = (schema: Schema): Schema =>
  schema.$ref === undefined ? schema : (schemas[schema.$ref.split('/').at(-1) ?? ''] as Schema);

describe('the reference at /docs', () => {
  it('is at most 25 kB in gzip, with its style, its script and its icon', () => {
    const files = [
      '/docs',
      ...[...page.matchAll(/(?:src|href)="(\/docs\/[^"]+\.(?:css|js|svg))"/g)].map(([, path = '']) => path),
    ];
    expect(new Set(files).size).toBe(4);
    const bytes = [...new Set(files)].map((path) => gzipSync(findPage(path)?.body ?? '').length);
    expect(bytes.reduce((sum, each) => sum + each, 0)).toBeLessThanOrEqual(25_000);
  });

  it('shows every description of the document, without a script', () => {
    expect(descriptions.length).toBeGreaterThan(80);
    expect(descriptions.map(plain).filter((text) => !shown.includes(text))).toEqual([]);
    for (const [heading] of document.info.description.matchAll(/(?<=^# ).+$/gm)) expect(shown).toContain(heading);
  });

  it.each(endpoints)(
    'has of $operationId its path, scope, fields, examples and a sample in each language',
    (endpoint) => {
      const { operationId, resource, scope, summary, response } = endpoint;
      const section = page.split(`<section id="${operationId}"`)[1]?.split('</section>')[0] ?? '';
      const text = decode(section.replaceAll(/<[^>]+>/g, ''));
      for (const part of [`/v1/orgs/{orgId}${resource}`, scope, summary]) expect(text).toContain(part);
      for (const { id } of languages) expect(section).toContain(`class="box sample ${id}"`);
      for (const field of Object.keys(response.toJSONSchema().properties ?? {}))
        expect(section).toContain(`<dt><code>${field}</code>`);
      const sample = /`{3}sh\n([\s\S]*?)`{3}/.exec(read(`/docs/${operationId}.md`))?.[1]?.trim();
      expect(text).toContain(sample);
    },
  );

  it.each(eventTypes)('has of %s its fields and an example', (type) => {
    const section = page.split(`<section id="${eventOperationId(type)}"`)[1]?.split('</section>')[0] ?? '';
    const common = page.split('<section id="events"')[1]?.split('</section>')[0] ?? '';
    for (const field of Object.keys(eventEnvelope(type).shape)) expect(common).toContain(`<dt><code>${field}</code>`);
    for (const field of Object.keys(eventData[type].shape)) expect(section).toContain(`<dt><code>${field}</code>`);
    expect(decode(section.replaceAll(/<[^>]+>/g, ''))).toContain(`"type": "${type}"`);
  });

  it.each(errorCodes)('has of %s a meaning, a remedy and a place to link to', (code) => {
    const section = page.split(`<section id="error-${code}"`)[1]?.split('</section>')[0] ?? '';
    const text = decode(section.replaceAll(/<[^>]+>/g, ''));
    expect(text).toContain(plain(errorHelp[code].meaning));
    expect(text).toContain(plain(errorHelp[code].remedy));
    expect(document.info.description).toContain(errorHelp[code].remedy);
  });

  it('has no link that leads nowhere, and loads nothing from another host', () => {
    const ids = new Set([...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id));
    const links = [...page.matchAll(/ (?:href|src)="([^"]+)"/g)].map(([, link = '']) => link);
    expect(links.length).toBeGreaterThan(50);
    const dead = links.filter((link) => (link.startsWith('#') ? !ids.has(link.slice(1)) : findPage(link) === null));
    expect(dead).toEqual([`${defaultBaseUrls.ca}/docs`, 'https://www.standardwebhooks.com']);
    expect([...page.matchAll(/<(?:script|link|img)[^>]+(?:src|href)="(?!\/)/g)]).toEqual([]);
    expect(ids.size).toBe([...page.matchAll(/ id="/g)].length);
  });

  it('leads to clients, kits, certify, the changelog and every file from its contents', () => {
    const contents = page.split('<nav')[1]?.split('</nav>')[0] ?? '';
    const files = ['/v1/openapi.json', '/v1/postman-collection.json', '/docs.md', '/llms.txt'];
    for (const link of ['#clients', '#kits', '#certify', '#changelog', ...files])
      expect(contents).toContain(`href="${link}"`);
    expect(shown).toContain('npm run tool -- certify ');
  });

  it('escapes what a base URL contains', () => {
    const hostile = publicPages({ baseUrls: { us: 'https://a.test/<script>"', ca: 'https://b.test' }, region: 'us' });
    const text = hostile('/docs')?.body.toString() ?? '';
    expect(text).toContain('https://a.test/&lt;script&gt;&quot;');
    expect(text.match(/<script/g)).toHaveLength(1);
  });

  it('names the server of its region, and leads to the page of the other', () => {
    const ca = publicPages({ baseUrls: { us: 'https://a.test', ca: 'https://b.test' }, region: 'ca' });
    expect(ca('/docs.md')?.body.toString()).toContain("export ORG_API_BASE_URL='https://b.test'");
    const text = ca('/docs')?.body.toString();
    expect(text).toContain('<span class="region">Canada</span>\n<a href="https://a.test/docs">United States</a>');
  });

  it('installs clients and kits by the lines of their READMEs', () => {
    for (const folder of ['typescript', 'python', 'receiver-typescript', 'receiver-python']) {
      const text = readFileSync(path.join(import.meta.dirname, '../../../apps/clients', folder, 'README.md'), 'utf8');
      expect(shown).toContain(/^(?:npm|pip) install .*$/m.exec(text)?.[0]);
    }
  });

  it('has the version of the document at the top of its changelog', () => {
    expect(document.info.version).toBe(versions[0].version);
    expect(shown).toContain(plain(versions[0].changes[0] ?? ''));
  });

  it('forbids inline scripts and styles, frames, other origins, and text that becomes markup or a script', () => {
    expect(findPage('/docs')?.headers['Content-Security-Policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; " +
        "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
    expect(page).not.toMatch(/ style=| on\w+=|<style|<script>|javascript:/);
    for (const path of ['/docs', '/docs/', '/docs/reference.js', '/docs.md', '/v1/openapi.json']) {
      expect(findPage(path)?.headers).toMatchObject({
        ETag: expect.stringMatching(/^"[\w-]{22}"$/),
        'Cache-Control': 'public, no-cache',
        'Referrer-Policy': 'no-referrer',
      });
    }
  });

  it('serves only its own files', () => {
    for (const path of ['/docs/package.json', '/docs/../package.json', '/docs/page.ts', '/v1/openapi', '/'])
      expect(findPage(path)).toBeNull();
  });
});

describe('the reference as Markdown', () => {
  it('says everything that the document says, also the order of each list', () => {
    const lines = read('/docs.md').replaceAll(/ One of `.+`\.$/gm, '');
    expect(descriptions.filter((text) => !lines.includes(text))).toEqual([]);
    expect(descriptions.filter((text) => /ordered by/i.test(text)).length).toBeGreaterThan(6);
  });

  it.each(endpoints)('has of $operationId every field with its values, and what all reads have', (endpoint) => {
    const lines = read(`/docs/${endpoint.operationId}.md`).split('\n');
    const fields = listFields(schemaReference(endpoint.response));
    expect(fields.length).toBeGreaterThan(0);
    for (const { start, values } of fields) {
      const line = lines.filter((each) => each.startsWith(start));
      expect(line, start).not.toEqual([]);
      for (const value of values)
        expect(
          line.some((each) => each.includes(`\`${value}\``)),
          value,
        ).toBe(true);
    }
    for (const name of [...Object.keys(document.components.parameters), ...Object.keys(headers)])
      expect(lines).toContainEqual(expect.stringMatching(new RegExp(`^- \`${name}\` \\(.+\\): .`)));
  });

  it.each(eventTypes)('has of %s every field with its values, and a delivery that can be verified', (type) => {
    const text = read(`/docs/${eventOperationId(type)}.md`);
    const lines = text.split('\n');
    const fields = listFields((eventSchema(type) as Schema).properties?.data ?? {});
    expect(fields.length).toBeGreaterThan(0);
    for (const { start, values } of fields) {
      const line = lines.find((each) => each.startsWith(start));
      expect(line, start).toBeDefined();
      for (const value of values) expect(line).toContain(`\`${value}\``);
    }
    for (const name of Object.keys(eventEnvelope(type).shape)) expect(text).toContain(`\n- \`${name}\` (`);
    for (const [name, value] of Object.entries(deliveryHeaderExamples)) {
      expect(text).toContain(`\n- \`${name}\` (`);
      expect(lines).toContain(`${name}: ${value}`);
    }
  });

  it('has every read with its samples and examples, every event, and every error code with its remedy', () => {
    const text = read('/docs.md');
    for (const { operationId, summary, description } of endpoints) {
      const part = read(`/docs/${operationId}.md`).split('\n## Reads\n')[0] ?? '';
      expect(part).toContain(`### ${summary}`);
      expect(part).toContain(description);
      expect(part.match(/^```\w+$/gm)?.slice(-languages.length)).toEqual(
        languages.map(({ fence }) => `\`\`\`${fence}`),
      );
      expect(text).toContain(part);
    }
    for (const type of eventTypes)
      expect(text).toContain(read(`/docs/${eventOperationId(type)}.md`).split('\n## Events\n')[0]);
    for (const code of errorCodes) expect(text).toContain(errorHelp[code].remedy);
    expect(text.match(/^# .+$/gm)).toEqual(['# Organization API']);
  });

  it('is listed in llms.txt, each part by a link that works', () => {
    const links = [...read('/llms.txt').matchAll(/\]\(([^)]+)\)/g)].map(([, link = '']) => link);
    expect(links).toHaveLength(3 + endpoints.length + eventTypes.length);
    for (const link of links) expect(findPage(link.replace(defaultBaseUrls.us, '')), link).not.toBeNull();
  });
});

describe('the address of the API', () => {
  const installation = shareApi();
  const open = (accept: string) =>
    fetch(new URL('/', installation().api.url), { headers: { accept }, redirect: 'manual' });

  it('leads a browser to the reference', async () => {
    const response = await open('text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8');
    expect([response.status, response.headers.get('location'), response.headers.get('vary')]).toEqual([
      303,
      '/docs',
      'Accept',
    ]);
  });

  it.each(['*/*', 'application/json', 'application/json, text/html;q=0.5'])(
    'answers a program that accepts %s with 404',
    async (accept) => {
      const response = await open(accept);
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ error: 'not_found' });
    },
  );

  it('serves Markdown and plain text as such', async () => {
    const { api } = installation();
    const types = await Promise.all(
      ['/docs.md', '/docs/getOrg.md', '/llms.txt'].map(async (path) =>
        (await api.get(path)).headers.get('content-type'),
      ),
    );
    expect(types).toEqual([
      'text/markdown; charset=utf-8',
      'text/markdown; charset=utf-8',
      'text/plain; charset=utf-8',
    ]);
  });
});
