import { readFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { defaultBaseUrls } from '../../apps/api/config.ts';
import { publicPages } from '../../apps/api/docs/public-pages.ts';
import { findDescription, ownDescriptions } from '../../apps/import/document/descriptions.ts';
import { DocumentReader } from '../../apps/import/document/document-reader.ts';
import { documentFields, documentLayout, formats } from '../../apps/import/document/format.ts';
import { checks } from '../../apps/import/document/item-check.ts';
import { importSchemaText } from '../../apps/import/document/json-schema.ts';
import { readTokens } from '../../apps/import/document/json-tokens.ts';
import { generateSample, sampleDefaults } from '../../apps/import/generate/sample.ts';
import { type Loose, smallDocument, uuid } from './document.ts';

const committed = readFileSync(new URL('../../apps/import/import-1.schema.json', import.meta.url), 'utf8');
const validator = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true });
addFormats.default(validator);
const isValid = validator.compile(JSON.parse(committed));

/** Returns the problems that the reader finds in each object by itself. */
async function read(document: unknown): Promise<string[]> {
  const problems: string[] = [];
  const reader = new DocumentReader(
    documentLayout,
    ({ kind, path, value }) =>
      problems.push(...checks[kind](path, value).problems.map((one) => `${one.path}: ${one.problem}`)),
    (path, problem) => problems.push(`${path}: ${problem}`),
  );
  for await (const { tokens } of readTokens(Readable.from([JSON.stringify(document)])))
    for (const token of tokens) reader.accept(token);
  return problems;
}

/** Returns the keys to each value of a document: objects, lists and fields. */
function listPaths(value: Loose, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [path];
  const keys = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  return [path, ...keys.flatMap((key) => listPaths(value[key], [...path, key]))];
}

const whole = (): Loose => ({ $schema: 'https://example.org/v1/import-1.schema.json', ...smallDocument() });
const missing = Symbol('missing');

/** Returns the document with one value replaced, or without it. */
function mutated(path: readonly (string | number)[], value: unknown): Loose {
  const document = whole();
  if (path.length === 0) return value === missing ? undefined : value;
  const parent = path.slice(0, -1).reduce((below, key) => below[key], document);
  const last = path.at(-1) ?? '';
  if (value !== missing) parent[last] = value;
  else if (Array.isArray(parent)) parent.splice(Number(last), 1);
  else delete parent[last];
  return document;
}

/** What stands at the borders of the types of fields. */
const borders: unknown[] = [
  missing,
  null,
  true,
  0,
  -1,
  1.5,
  1e7,
  10_000_001,
  2 ** 31,
  Number.MAX_SAFE_INTEGER,
  2 ** 53,
  '',
  ' ',
  '\u00a0',
  '\0',
  '\ud800',
  'x'.repeat(255),
  'x'.repeat(256),
  '😀'.repeat(127),
  '😀'.repeat(200),
  uuid('A', 1).toUpperCase(),
  'Ada@Example.org',
  ' ada@bücher.example ',
  '\u212aim@example.org',
  'a@b@example.org',
  '2026-02-29',
  '0001-01-01',
  '9999-12-31',
  '2026-12',
  '0000-12',
  '2026-11-20T00:00:00Z',
  '2026-11-20T23:59:59.123456789Z',
  '2026-11-20T23:59:60Z',
  '2026-11-20T00:00:00+00:00',
  'active',
  'owner',
  'USD',
  [],
  {},
  ['owner', 'owner'],
  [null],
];

describe('the JSON Schema of the import format', () => {
  it('is the committed file, and is served byte for byte (if not: npm run tool -- import-schema)', () => {
    expect(importSchemaText()).toBe(committed);
    const findPage = publicPages({ baseUrls: defaultBaseUrls, region: 'us' });
    expect(findPage('/v1/import-1.schema.json')).toEqual({
      ...findPage('/v1/openapi.json'),
      body: Buffer.from(committed),
      encoded: { br: expect.any(Function), gzip: expect.any(Function) },
      headers: { ...findPage('/v1/openapi.json')?.headers, ETag: expect.stringMatching(/^"[\w-]{22}"$/) },
    });
  });

  it('describes every field and nothing else', () => {
    const kinds = { ...formats, document: { fields: documentFields } };
    const fields = Object.entries(kinds).flatMap(([kind, format]) =>
      Object.keys(format.fields).map((field) => [kind as keyof typeof kinds, field] as const),
    );
    expect(fields.filter(([kind, field]) => findDescription(kind, field) === undefined)).toEqual([]);
    const own = Object.entries(ownDescriptions).flatMap(([kind, each]) =>
      Object.keys(each).map((field) => [kind, field]),
    );
    expect(fields).toEqual(expect.arrayContaining(own));
  });

  it('accepts the small document, with an address for editors or without, and a generated one', async () => {
    const options = { ...sampleDefaults, region: 'us', asOf: '2026-11-20' } as const;
    const sample = JSON.parse(await text(Readable.from(generateSample(options))));
    for (const document of [whole(), smallDocument(), sample]) {
      expect(await read(document)).toEqual([]);
      expect(isValid(document), JSON.stringify(isValid.errors)).toBe(true);
    }
  });

  it('rejects nothing that the reader accepts, and says most of what it rejects: each value at each border', async () => {
    const documents = listPaths(whole()).flatMap((path) =>
      borders.map((value) => ({
        change: `${path.join('.')} = ${JSON.stringify(value)}`,
        document: mutated(path, value),
      })),
    );
    const found = { both: [] as string[], reader: [] as string[], schema: [] as string[], neither: [] as string[] };
    for (const { change, document } of documents.filter((each) => each.document !== undefined)) {
      const isRead = (await read(document)).length === 0;
      if (isValid(document)) found[isRead ? 'neither' : 'reader'].push(change);
      else found[isRead ? 'schema' : 'both'].push(change);
    }
    expect(found.schema).toEqual([]);
    expect(found.neither.length).toBeGreaterThan(500);
    expect(found.reader.length / found.both.length).toBeLessThan(0.05);
  });

  it('rejects no document with one random change that the reader accepts', async () => {
    const paths = listPaths(whole());
    const value = fc.oneof(
      fc.constantFrom(...borders.filter((border) => border !== missing)),
      fc.string({ unit: 'binary', maxLength: 300 }),
      fc.emailAddress(),
      fc.uuid(),
      fc.integer(),
      fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
      fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<unknown>,
    );
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...paths.slice(1)), value, async (path, changed) => {
        const document = mutated(path, changed);
        if ((await read(document)).length === 0) expect(isValid(document), JSON.stringify(isValid.errors)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });
});
