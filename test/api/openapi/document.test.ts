import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { errorStatus } from '#domain/contract/errors.ts';
import { eventEnvelope, eventTypes } from '#domain/contract/events.ts';
import { defaultBaseUrls } from '../../../apps/api/config.ts';
import { publicPages } from '../../../apps/api/docs/public-pages.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { openApiDocument, openApiText } from '../../../apps/api/openapi/document.ts';
import {
  deliveryHeaderExamples,
  eventExamples,
  exampleSecret,
  responseExamples,
} from '../../../apps/api/openapi/examples.ts';

const document = openApiDocument({ baseUrls: defaultBaseUrls });
const committed = new URL('../../../apps/api/openapi/openapi.json', import.meta.url);

interface Integer {
  type?: unknown;
  format?: unknown;
  minimum?: number;
  maximum?: number;
}
const isOpenInteger = (schema: object & Integer) => [schema.type].flat().includes('integer') && !('const' in schema);
function statesSize({ format, minimum, maximum }: Integer): boolean {
  const most = format === 'int32' ? 2 ** 31 - 1 : format === 'int64' ? Number.MAX_SAFE_INTEGER : -1;
  return [minimum, maximum].every((bound) => bound !== undefined && Math.abs(bound) <= most);
}

describe('the OpenAPI document', () => {
  it('is the committed file, and is served byte for byte (if not: npm run tool -- openapi)', () => {
    const text = readFileSync(committed, 'utf8');
    expect(openApiText(defaultBaseUrls)).toBe(text);
    expect(publicPages({ baseUrls: defaultBaseUrls, region: 'us' })('/v1/openapi.json')).toMatchObject({
      status: 200,
      type: 'application/json',
      body: Buffer.from(text),
    });
  });

  it('names the servers of the installation', () => {
    const { servers } = openApiDocument({ baseUrls: { us: 'https://a.test', ca: 'https://b.test' } });
    expect(servers.map(({ url }) => url)).toEqual(['https://a.test', 'https://b.test']);
  });

  it('describes every declared read and every event, and nothing else', () => {
    expect(Object.keys(document.paths)).toEqual(endpoints.map(({ resource }) => `/v1/orgs/{orgId}${resource}`));
    expect(Object.keys(document.webhooks)).toEqual(eventTypes);
  });

  it('states the size of every integer, so that no generated client overflows: int32, or int64 up to 2^53 - 1', () => {
    const unsized: string[] = [];
    let integers = 0;
    const visit = (value: unknown, path: string) => {
      if (typeof value !== 'object' || value === null) return;
      if (isOpenInteger(value)) {
        integers++;
        if (!statesSize(value)) unsized.push(path);
      }
      for (const [name, part] of Object.entries(value)) visit(part, `${path}.${name}`);
    };
    visit(document, '$');
    expect(unsized).toEqual([]);
    expect(integers).toBeGreaterThan(15);
  });

  it('leaves every object open, because responses and events may gain fields', () => {
    expect(JSON.stringify(document)).not.toContain('additionalProperties');
  });

  it('has an example for every error code, with its status', () => {
    const text = JSON.stringify(document);
    for (const [code, status] of Object.entries(errorStatus)) {
      expect(document.info.description).toContain(`| ${status} | \`${code}\` |`);
      if (code !== 'method_not_allowed') expect(text).toContain(`"error":"${code}"`);
    }
  });

  it.each(endpoints)('has examples of $operationId that match the contract exactly', ({ operationId, response }) => {
    const examples = Object.values(responseExamples[operationId] ?? {});
    expect(examples).not.toEqual([]);
    for (const { value } of examples) expect(response.parse(value)).toEqual(value);
  });

  it.each(eventTypes)('has an example of %s that matches the contract exactly', (type) => {
    const value = eventExamples[type]?.value;
    expect(eventEnvelope(type).parse(value)).toEqual(value);
  });
});

describe('the signature check that the introduction shows', () => {
  const body = JSON.stringify(eventExamples['client.started']?.value);
  const header = deliveryHeaderExamples['Service-Signature'];
  const sentAt = deliveryHeaderExamples['webhook-timestamp'];

  it('accepts the test vector, and the newer of two signatures', async () => {
    const isGenuine = await shownCheck();
    expect(isGenuine(body, header, exampleSecret, sentAt)).toBe(true);
    expect(isGenuine(body, header.replace(',', `,v1=${'0'.repeat(64)},`), exampleSecret, sentAt)).toBe(true);
  });

  it('rejects another body, another secret, an old timestamp and a malformed header', async () => {
    const isGenuine = await shownCheck();
    expect(isGenuine(`${body} `, header, exampleSecret, sentAt)).toBe(false);
    expect(isGenuine(body, header, 'whsec_another', sentAt)).toBe(false);
    expect(isGenuine(body, header, exampleSecret, sentAt + 301)).toBe(false);
    for (const none of ['', 'v1=', 't=,v1=zz', 'nonsense'])
      expect(isGenuine(body, none, exampleSecret, sentAt)).toBe(false);
  });

  /** Runs the script of the page unchanged. */
  async function shownCheck(): Promise<(body: string, header: string, secret: string, nowSeconds: number) => boolean> {
    const code = /```js\n([\s\S]*?)```/.exec(document.info.description)?.[1] ?? '';
    const module = await import(`data:text/javascript,${encodeURIComponent(`${code}\nexport { isGenuine };`)}`);
    return module.isGenuine;
  }
});
