/** Bodies in gzip and br: who gets which, and that they are the same bodies. */
import { execFile } from 'node:child_process';
import { type IncomingMessage, request } from 'node:http';
import { promisify } from 'node:util';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { exchange } from '#test/exchange.ts';
import { shareApi } from '#test/setup.ts';
import { chooseEncoding } from '../../../apps/api/accept-encoding.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { giveGrants } from '../bounds/readers.ts';

const installation = shareApi();

interface Bytes {
  status: number;
  encoding: string | undefined;
  etag: string | undefined;
  length: string | undefined;
  vary: string | undefined;
  sent: Buffer;
  /** Decoded. */
  body: Buffer;
}

/** Reads the bytes of a response as they were sent; null: without `Accept-Encoding`. */
function readBytes(path: string, key: string | null, accepted: string | null, more: Record<string, string> = {}) {
  const headers = { ...(key === null ? {} : { authorization: `Bearer ${key}` }), ...more };
  const all = accepted === null ? headers : { ...headers, 'accept-encoding': accepted };
  return new Promise<Bytes>((resolve, reject) => {
    const collect = async (response: IncomingMessage): Promise<Bytes> => {
      const sent = Buffer.concat(await response.toArray());
      const { 'content-encoding': encoding, etag, vary, 'content-length': length } = response.headers;
      const body = encoding === 'gzip' ? gunzipSync(sent) : encoding === 'br' ? brotliDecompressSync(sent) : sent;
      return { status: response.statusCode ?? 0, encoding, etag, length, vary, sent, body };
    };
    const url = installation().api.url + path;
    request(url, { headers: all, agent: false }, (response) => collect(response).then(resolve, reject))
      .on('error', reject)
      .end();
  });
}

/** Returns an organization whose `getOrg` has a body of so many bytes, and a key of it. */
async function setupBody(bytes: number) {
  const { make, owner } = installation();
  const { key, orgId } = await make.apiKey();
  const path = `/v1/orgs/${orgId}`;
  const { body } = await readBytes(path, key, null);
  await owner.pool.query(`update organization set name = name || repeat('n', $2) where id = $1`, [
    orgId,
    bytes - body.length,
  ]);
  return { path, key };
}

describe.each(endpoints)('$operationId', ({ resource }) => {
  it('has the same bytes after decoding, the same tag as a weak one, and 304 to either form of it', async () => {
    const { make, owner } = installation();
    const creator = await make.member();
    const { key } = await make.apiKey({ creator });
    await giveGrants(owner, creator, 20);
    const path = `/v1/orgs/${creator.orgId}${resource}`;
    const plain = await readBytes(path, key, null);
    expect(plain).toMatchObject({ status: 200, encoding: undefined, etag: expect.stringMatching(/^"/) });
    for (const encoding of ['br', 'gzip']) {
      const accepted = `${encoding}, identity;q=0`; // small bodies too
      const encoded = await readBytes(path, key, accepted);
      expect(encoded).toMatchObject({ status: 200, encoding, etag: `W/${plain.etag}` });
      expect(encoded.length).toBe(String(encoded.sent.length));
      expect(encoded.body.equals(plain.body)).toBe(true);
      for (const tag of [plain.etag, encoded.etag])
        expect(await readBytes(path, key, accepted, { 'if-none-match': tag ?? '' })).toMatchObject({
          status: 304,
          encoding: undefined,
          etag: encoded.etag,
          vary: 'Authorization, Accept-Encoding',
          sent: Buffer.alloc(0),
        });
    }
    expect(await readBytes(path, key, null, { 'if-none-match': `W/${plain.etag}` })).toMatchObject({
      status: 304,
      etag: plain.etag,
    });
  });
});

it('a body is encoded from 1,400 bytes', async () => {
  for (const [bytes, encoding] of [
    [1_399, undefined],
    [1_400, 'gzip'],
  ] as const) {
    const { path, key } = await setupBody(bytes);
    const read = await readBytes(path, key, 'gzip');
    expect([read.body.length, read.encoding, read.etag?.startsWith('W/')]).toEqual([bytes, encoding, bytes === 1_400]);
  }
});

it.each<[header: string, encoding: string | null, isRequired?: boolean]>([
  ['', null],
  ['gzip', 'gzip'],
  ['br', 'br'],
  ['gzip, deflate, br, zstd', 'br'],
  ['GZIP', 'gzip'],
  ['x-gzip', 'gzip'],
  ['br;q=0.5, gzip', 'gzip'],
  ['gzip;q=0.001', 'gzip'],
  ['gzip ; q=0.8 ,br;Q=0.9', 'br'],
  ['br;q=0, gzip;q=0.000', null],
  ['identity, gzip;q=0.5', null],
  ['identity;q=0.5, gzip;q=0.5', 'gzip'],
  ['*', 'br'],
  ['*;q=0', null],
  ['br;q=0, *', 'gzip'],
  ['gzip, *;q=0', 'gzip', true],
  ['identity;q=0', null],
  ['identity;q=0, gzip;q=0.1', 'gzip', true],
  ['deflate, zstd', null],
  ['gzip;q=2', null],
  ['gzip;q=high, br;q=', null],
  ['gzip;q=0.8;x=1, , ;q=1', null],
])('%j accepts %s', (header, encoding, isRequired = false) => {
  expect(chooseEncoding(header)).toEqual({ encoding, isRequired });
});

it('a client that accepts nothing that the service has gets the body as it is', async () => {
  const { path, key } = await setupBody(2_000);
  for (const accepted of ['deflate', 'identity;q=0', '*;q=0', 'gzip;q=0'])
    expect(await readBytes(path, key, accepted)).toMatchObject({ status: 200, encoding: undefined });
});

it('every response of a read names Accept-Encoding in Vary, and error responses are not encoded', async () => {
  const { key } = await installation().make.apiKey();
  for (const [path, bearer, status] of [
    ['/v1/orgs/x', key, 400],
    ['/v1/orgs/x', null, 401],
    ['/nowhere', key, 404],
  ] as const)
    expect(await readBytes(path, bearer, 'gzip, identity;q=0')).toMatchObject({
      status,
      encoding: undefined,
      vary: 'Authorization, Accept-Encoding',
    });
});

it('fetch and curl decode a large roster to the bytes that a client without an encoding gets', async () => {
  const { api, make, owner } = installation();
  const creator = await make.member();
  const { key } = await make.apiKey({ creator });
  await giveGrants(owner, creator, 3_000, ' Éàü 家');
  const path = `/v1/orgs/${creator.orgId}/clients`;
  const plain = await readBytes(path, key, null);
  for (const encoding of ['br', 'gzip']) {
    const encoded = await readBytes(path, key, encoding);
    expect(encoded).toMatchObject({ encoding, etag: `W/${plain.etag}`, length: String(encoded.sent.length) });
    expect(encoded.body.equals(plain.body)).toBe(true);
    expect(encoded.sent.length * 3).toBeLessThan(plain.sent.length);
    expect(await readBytes(path, key, encoding, { 'if-none-match': encoded.etag ?? '' })).toMatchObject({
      status: 304,
      etag: encoded.etag,
      sent: Buffer.alloc(0),
    });
  }
  const fetched = await api.get(path, { key });
  expect(fetched.headers.get('content-encoding')).toBe('gzip');
  expect(Buffer.from(await fetched.arrayBuffer()).equals(plain.body)).toBe(true);
  const args = ['--silent', '--compressed', '--header', `Authorization: Bearer ${key}`, api.url + path];
  const { stdout } = await promisify(execFile)('curl', args, { encoding: 'buffer', maxBuffer: 1e8 });
  expect(stdout.equals(plain.body)).toBe(true);
});

it('parallel calls for a large body share its encoding', async () => {
  const { api, make, owner } = installation();
  const creator = await make.member();
  const { key } = await make.apiKey({ creator });
  await giveGrants(owner, creator, 1_000);
  const count = async () => {
    const { body } = await exchange(`${api.metricsUrl}/metrics`);
    return Number(/^org_api_bodies_encoded_total\{size="large",encoding="br"\} (\d+)/m.exec(body)?.[1] ?? 0);
  };
  const before = await count();
  const path = `/v1/orgs/${creator.orgId}/clients`;
  const reads = await Promise.all(Array.from({ length: 20 }, () => readBytes(path, key, 'br')));
  for (const { body } of reads) expect(body.equals(reads[0]?.body ?? Buffer.alloc(0))).toBe(true);
  expect(reads[0]?.body.length).toBeGreaterThan(100_000);
  const encoded = (await count()) - before;
  expect(encoded).toBeGreaterThan(0);
  expect(encoded).toBeLessThan(10);
});

it('parallel calls of one key for a large body get the encoding that each asks for', async () => {
  const { make, owner } = installation();
  const creator = await make.member();
  const { key } = await make.apiKey({ creator });
  await giveGrants(owner, creator, 1_000);
  const path = `/v1/orgs/${creator.orgId}/clients`;
  const asked = Array.from({ length: 15 }, (_, n) => (['br', 'gzip', null] as const)[n % 3] ?? null);
  const reads = await Promise.all(asked.map((encoding) => readBytes(path, key, encoding)));
  expect(reads.map(({ encoding = null }) => encoding)).toEqual(asked);
  for (const { body } of reads) expect(body.equals(reads[2]?.body ?? Buffer.alloc(0))).toBe(true);
});

it('the OpenAPI document and the reference are encoded too, for HEAD as for GET', async () => {
  for (const path of ['/v1/openapi.json', '/docs']) {
    const plain = await readBytes(path, null, null);
    for (const encoding of ['br', 'gzip']) {
      const encoded = await readBytes(path, null, encoding);
      expect(encoded).toMatchObject({ encoding, etag: `W/${plain.etag}`, vary: 'Accept-Encoding' });
      expect(encoded.body.equals(plain.body)).toBe(true);
      const head = await exchange(installation().api.url + path, {
        method: 'HEAD',
        headers: { 'accept-encoding': encoding },
      });
      expect(head.headers).toMatchObject({ 'content-encoding': encoding, 'content-length': encoded.length });
      for (const tag of [plain.etag, encoded.etag])
        expect(await readBytes(path, null, encoding, { 'if-none-match': tag ?? '' })).toMatchObject({
          status: 304,
          encoding: undefined,
          etag: encoded.etag,
        });
    }
  }
});
