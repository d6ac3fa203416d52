/** Requests before a key is known: failed authentications, proxies, bytes that are not HTTP. */
import { expect, it } from 'vitest';
import { failedAuthenticationsPerMinute } from '#domain/contract/limits.ts';
import { generateKey } from '#domain/keys/key.ts';
import { sendRaw } from '#test/exchange.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setup } from '#test/setup.ts';
import { expectErrorResponse } from '../error-response.ts';

const from = (address: string) => ({ 'x-forwarded-for': address });
const failFrom = (api: { get: (path: string, o: object) => Promise<Response> }, times: number, headers = {}) =>
  Promise.all(Array.from({ length: times }, () => api.get('/v1/orgs/x', { headers })));

it('after 600 failed authentications a minute from one address, further ones get 429, and a key of the region what it is due', async () => {
  const { api, make, owner } = await setup();
  const { key, orgId } = await make.apiKey();
  const revoked = await make.apiKey();
  await make.keyRevoked(revoked);
  const failures = await failFrom(api, failedAuthenticationsPerMinute);
  expect(new Set(failures.map(({ status }) => status))).toEqual(new Set([401]));

  const [tagSecret] = testKeySecrets.tagSecrets;
  for (const sent of [{}, { key: 'nonsense' }, { key: generateKey('ca', tagSecret) }]) {
    const rejected = await api.get('/v1/orgs/x', sent);
    await expectErrorResponse(rejected, 'rate_limited', /failed authentications/);
    expect(Number(rejected.headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
    expect(Number(rejected.headers.get('retry-after'))).toBeLessThanOrEqual(60);
    expect(rejected.headers.get('www-authenticate')).toBeNull();
  }
  expect((await api.get(`/v1/orgs/${orgId}`, { key })).status).toBe(200);
  expect((await api.get('/v1/orgs/x', { key })).status).toBe(400); // not a failed authentication

  for (const sent of [revoked.key, generateKey('us', tagSecret)]) {
    const rejected = await api.get('/v1/orgs/x', { key: sent });
    await expectErrorResponse(rejected, 'invalid_api_key', /revoked|not known/);
    expect(rejected.headers.get('www-authenticate')).toBe('Bearer');
  }
  const { rows } = await owner.pool.query(
    `select status, code from audit_entry where key_id = $1 and action like 'api.%'`,
    [revoked.id],
  );
  expect(rows).toEqual([{ status: 401, code: 'invalid_api_key' }]);
});

it('X-Forwarded-For is read from trusted proxies only, up to its nearest untrusted address', async () => {
  const { api, make, owner } = await setup({ TRUSTED_PROXIES: '127.0.0.0/8, 10.0.0.0/8, ::1, fd00::/8' });
  const direct = await setup();
  const readAddress = async (installation: typeof direct, forwarded: string | null) => {
    const { key, orgId } = await installation.make.apiKey();
    const headers = forwarded === null ? {} : from(forwarded);
    const response = await installation.api.get(`/v1/orgs/${orgId}`, { key, headers });
    const { rows } = await installation.owner.pool.query<{ address: string }>(
      'select host(address) as address from audit_entry where id = $1',
      [response.headers.get('request-id')],
    );
    return rows[0]?.address;
  };
  const proxied = { ...direct, api, make, owner };
  const cases: [string | null, string][] = [
    [null, '127.0.0.1'],
    ['203.0.113.9', '203.0.113.9'],
    ['198.51.100.1, 203.0.113.9', '203.0.113.9'],
    ['198.51.100.1, 203.0.113.9, 10.1.2.3', '203.0.113.9'],
    ['198.51.100.1,203.0.113.9 ,10.1.2.3, 10.9.9.9', '203.0.113.9'],
    ['2001:db8::7', '2001:db8::7'],
    ['2001:db8::7, fd00::1', '2001:db8::7'],
    ['::ffff:203.0.113.9', '203.0.113.9'],
    ['10.1.1.1, 10.2.2.2', '10.1.1.1'],
    ['198.51.100.1, nonsense', '127.0.0.1'],
    ['198.51.100.1, nonsense, 10.1.2.3', '10.1.2.3'],
    ['', '127.0.0.1'],
    ['203.0.113.9:4711', '203.0.113.9'],
    ['198.51.100.1:1, 203.0.113.9:4711, 10.1.2.3:80', '203.0.113.9'],
    ['[2001:db8::7]:4711', '2001:db8::7'],
    ['[2001:db8::7]', '2001:db8::7'],
    ['[2001:db8::7]:4711, [fd00::1]:8080', '2001:db8::7'],
    ['[::ffff:203.0.113.9]:4711', '203.0.113.9'],
    ['::FFFF:203.0.113.9', '203.0.113.9'],
    ['[203.0.113.9]:4711', '127.0.0.1'],
    ['203.0.113.9:', '127.0.0.1'],
    ['203.0.113.9:port', '127.0.0.1'],
    ['127.1:80', '127.0.0.1'],
    ['[2001:db8::7:4711', '127.0.0.1'],
  ];
  for (const [forwarded, address] of cases)
    expect([forwarded, await readAddress(proxied, forwarded)]).toEqual([forwarded, address]);
  expect(await readAddress(direct, '203.0.113.9')).toBe('127.0.0.1');
});

it('failures behind a trusted proxy count for each client, and for a whole /64 network of IPv6', async () => {
  const { api } = await setup({ TRUSTED_PROXIES: '127.0.0.1' });
  const statusFrom = async (address: string) => (await failFrom(api, 1, from(address)))[0]?.status;
  await failFrom(api, failedAuthenticationsPerMinute, from('203.0.113.9'));
  expect(await statusFrom('203.0.113.9')).toBe(429);
  expect(await statusFrom('203.0.113.10')).toBe(401);

  await failFrom(api, failedAuthenticationsPerMinute / 2, from('2001:db8:1:2:3::1'));
  await failFrom(api, failedAuthenticationsPerMinute / 2, from('2001:db8:1:2::9'));
  expect(await statusFrom('2001:db8:1:2:ffff::1')).toBe(429);
  expect(await statusFrom('2001:db8:1:3::1')).toBe(401);
});

it('malformed HTTP gets 400 as JSON and a closed connection; a header that is too large gets 431', async () => {
  const { api } = await setup();
  const cases: [string, string][] = [
    ['nonsense\r\n\r\n', '400 Bad Request'],
    ['GET /v1/orgs/x HTTP/1.1\r\nno colon\r\n\r\n', '400 Bad Request'],
    ['GET /livez HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n', '400 Bad Request'],
    [`GET /livez HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(20_000)}\r\n\r\n`, '431 Request Header Fields Too Large'],
  ];
  for (const [bytes, status] of cases) {
    const response = await sendRaw(api.url, bytes);
    const [head = '', body = ''] = response.split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status}\r\n`));
    expect(head).toContain('Content-Type: application/json');
    expect(head).toContain('Connection: close');
    expect(JSON.parse(body)).toEqual({ error: 'invalid_request', message: expect.any(String) });
  }
  expect((await api.get('/livez')).status).toBe(200);
});
