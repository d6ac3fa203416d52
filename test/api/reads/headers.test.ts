/** The headers of keyed answers. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { shareApi } from '#test/setup.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';

const installation = shareApi();

const uuidV7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

function expectKeyedHeaders(response: Response): void {
  expect(response.headers.get('request-id')).toMatch(uuidV7);
  expect(response.headers.get('ratelimit-policy')).toBe('"key";q=120;w=60');
  expect(response.headers.get('ratelimit')).toMatch(/^"key";r=\d{1,3};t=([1-9]|[1-5]\d|60)$/);
  expect(response.headers.get('cache-control')).toBe('private, no-cache');
  expect(response.headers.get('vary')).toBe('Authorization, Accept-Encoding');
  expect(response.headers.get('x-powered-by')).toBeNull();
}

describe.each(endpoints)('$operationId', ({ resource, scope }) => {
  it('sends every documented header with every status to a valid key', async () => {
    const { api, make } = installation();
    const expiresAt = new Date(Date.now() + 86_400_000);
    const { key, orgId } = await make.apiKey({ expiresAt });
    const path = `/v1/orgs/${orgId}${resource}`;

    const whole = await api.get(path, { key });
    expect(whole.status).toBe(200);
    expect(whole.headers.get('content-type')).toBe('application/json');
    const etag = whole.headers.get('etag') ?? '';
    expect(etag).toMatch(/^(W\/)?"[\w-]{22}"$/);
    const unchanged = await api.get(path, { key, headers: { 'if-none-match': etag } });
    expect(unchanged.status).toBe(304);
    expect(unchanged.headers.get('etag')).toBe(etag);

    const malformed = await api.get(`/v1/orgs/x${resource}`, { key });
    const missing = await api.get(`/v1/orgs/${randomUUID()}${resource}`, { key });
    const posted = await api.get(path, { key, method: 'POST' });
    const nowhere = await api.get(`${path}/nowhere`, { key });
    const statuses = [malformed, missing, posted, nowhere].map((response) => response.status);
    expect(statuses).toEqual([400, 404, 403, 404]);
    for (const response of [whole, unchanged, malformed, missing, posted, nowhere]) {
      expectKeyedHeaders(response);
      expect(response.headers.get('key-expires')).toBe(expiresAt.toISOString());
    }
    for (const response of [malformed, missing, posted, nowhere]) expect(response.headers.get('etag')).toBeNull();
  });

  it('sends them also when the key is rejected, and Key-Expires only for a key with an expiry', async () => {
    const { api, make } = installation();
    const creator = await make.member({ permissions: [scope] });
    const made = await make.apiKey({ creator, scopes: [scope] });
    const path = `/v1/orgs/${creator.orgId}${resource}`;
    await make.permissionLost(creator, scope);
    const forbidden = await api.get(path, { key: made.key });
    await make.keyRevoked(made);
    const revoked = await api.get(path, { key: made.key });

    expect([forbidden.status, revoked.status]).toEqual([403, 401]);
    for (const response of [forbidden, revoked]) {
      expectKeyedHeaders(response);
      expect(response.headers.get('key-expires')).toBeNull();
    }
  });
});

it('the RateLimit header counts down the calls of a key, rejections included', async () => {
  const { api, make } = installation();
  const { key, orgId } = await make.apiKey();
  const left: (string | undefined)[] = [];
  for (const path of [`/v1/orgs/${orgId}`, '/v1/orgs/x', `/v1/orgs/${randomUUID()}`, '/nowhere']) {
    const response = await api.get(path, { key });
    left.push(response.headers.get('ratelimit')?.split(';')[1]);
  }
  expect(left).toEqual(['r=119', 'r=118', 'r=117', 'r=116']);
});

it('every response has a unique id, also without a key', async () => {
  const { api } = installation();
  const responses = await Promise.all(Array.from({ length: 20 }, () => api.get('/v1/orgs/x')));
  const ids = responses.map((response) => response.headers.get('request-id'));
  for (const id of ids) expect(id).toMatch(uuidV7);
  expect(new Set(ids).size).toBe(20);
});
