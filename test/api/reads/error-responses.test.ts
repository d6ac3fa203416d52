/** Every error response, for each of the nine reads. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { requestsPerWindow } from '#domain/contract/limits.ts';
import { scopes } from '#domain/contract/scopes.ts';
import { generateKey } from '#domain/keys/key.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { shareApi, type TestInstallation } from '#test/setup.ts';
import { type Endpoint, endpoints } from '../../../apps/api/endpoints.ts';
import { expectErrorResponse } from '../error-response.ts';

const tagSecret = testKeySecrets.tagSecrets[0];
const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const otherMethods = ['POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'];

const shared = shareApi({ BASE_URL_CA: 'https://reads.example.ca/' });
const sharedWithoutDatabase = shareApi({
  API_DATABASE_URL: 'postgresql://none:none@127.0.0.1:1/none',
  REDIS_URL: '',
});

/** Creates an organization with an owner's key, and the path of the read. */
async function setupRead({ resource }: Endpoint, installation: TestInstallation = shared()) {
  const creator = await installation.make.member();
  const made = await installation.make.apiKey({ creator });
  return { ...installation, creator, made, key: made.key, path: `/v1/orgs/${creator.orgId}${resource}` };
}

describe.each(endpoints)('$operationId', (endpoint) => {
  it('answers 401 unauthenticated when no key was sent', async () => {
    const { api, path, key } = await setupRead(endpoint);
    for (const authorization of [undefined, `Basic ${btoa(key)}`, key, 'Bearer', 'Bearer ', `Token ${key}`]) {
      const response = await api.get(path, { headers: authorization === undefined ? {} : { authorization } });
      await expectErrorResponse(response, 'unauthenticated', /Authorization: Bearer/);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
    }
  });

  it('answers 401 invalid_api_key to a text that is not a key, without asking the database', async () => {
    const { api, path, key } = await setupRead(endpoint, sharedWithoutDatabase());
    expect((await api.get(path, { key })).status).toBe(503);
    const changed = key.endsWith('0') ? '1' : '0';
    const noKeys = {
      'another text': 'secret',
      'another prefix': `sk_live_${key.slice(7)}`,
      'an unknown region': key.replace('aln_us_', 'aln_eu_'),
      'one character less': key.slice(0, -1),
      'one character more': `${key}0`,
      'a wrong checksum': key.slice(0, -1) + changed,
      'a tag made with another secret': generateKey('us', Buffer.from('someone else’s secret, 32 bytes!')),
      'a character outside base62': `${key.slice(0, 20)}-${key.slice(21)}`,
    };
    for (const noKey of Object.values(noKeys)) {
      const response = await api.get(path, { headers: bearer(noKey) });
      await expectErrorResponse(response, 'invalid_api_key', /not a valid API key/);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
    }
  });

  it('answers 401 invalid_api_key to a key of the other region, and names that region and its server', async () => {
    const { api, path } = await setupRead(endpoint);
    const response = await api.get(path, { key: generateKey('ca', tagSecret) });
    await expectErrorResponse(response, 'invalid_api_key', /Canada.*https:\/\/reads\.example\.ca\./);
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
  });

  it('answers 401 invalid_api_key to an unknown, a revoked and an expired key, and says which', async () => {
    const { api, path, make, creator } = await setupRead(endpoint);
    const [revoked, expired] = [await make.apiKey({ creator }), await make.apiKey({ creator })];
    await make.keyRevoked(revoked);
    await make.keyExpired(expired);

    const cases: [string, RegExp][] = [
      [generateKey('us', tagSecret), /not known/],
      [revoked.key, /revoked/],
      [expired.key, /expired/],
    ];
    for (const [key, message] of cases) {
      const response = await api.get(path, { key });
      await expectErrorResponse(response, 'invalid_api_key', message);
      expect(response.headers.get('www-authenticate')).toBe('Bearer');
    }
  });

  it('answers 400 invalid_request to a malformed organization id and to any query parameter', async () => {
    const { api, path, key, creator } = await setupRead(endpoint);
    const malformed = [
      '1',
      'null',
      creator.orgId.slice(1),
      `${creator.orgId}0`,
      creator.orgId.replaceAll('-', ''),
      '%00',
      "'",
    ];
    for (const orgId of malformed) {
      await expectErrorResponse(
        await api.get(`/v1/orgs/${orgId}${endpoint.resource}`, { key }),
        'invalid_request',
        /UUID/,
      );
    }
    for (const query of ['?limit=1', '?a', '?=', '?x=%00']) {
      await expectErrorResponse(await api.get(`${path}${query}`, { key }), 'invalid_request', /query parameters/);
    }
    expect((await api.get(path.toUpperCase().replace('/V1/ORGS', '/v1/orgs'), { key })).status).toBe(
      endpoint.resource === '' ? 200 : 404, // an uppercase id is the same id; an uppercase path is another path
    );
  });

  it('answers 403 insufficient_scope to a key that carries every scope but the one it needs', async () => {
    const { api, path, make, creator } = await setupRead(endpoint);
    const { key } = await make.apiKey({ creator, scopes: scopes.filter((scope) => scope !== endpoint.scope) });
    const message = await expectErrorResponse(await api.get(path, { key }), 'insufficient_scope');
    expect(message).toContain(endpoint.scope);
  });

  it('answers 403 address_not_allowed to a key that only other addresses may use', async () => {
    const { api, path, make, creator } = await setupRead(endpoint);
    const { key } = await make.apiKey({ creator, allowedAddresses: ['203.0.113.0/24', '2001:db8::/32'] });
    await expectErrorResponse(await api.get(path, { key }), 'address_not_allowed', /IP address/);
    const here = await make.apiKey({ creator, allowedAddresses: ['203.0.113.0/24', '127.0.0.1'] });
    expect((await api.get(path, { key: here.key })).status).toBe(200);
  });

  it('answers 200 to a key that carries its scope and no other, of a creator with that permission and no other', async () => {
    const { api, make } = await setupRead(endpoint);
    const creator = await make.member({ permissions: [endpoint.scope] });
    const { key } = await make.apiKey({ creator, scopes: [endpoint.scope] });
    const response = await api.get(`/v1/orgs/${creator.orgId}${endpoint.resource}`, { key });
    expect(response.status).toBe(200);
  });

  it('answers 404 not_found for an organization that does not exist', async () => {
    const { api, key } = await setupRead(endpoint);
    const response = await api.get(`/v1/orgs/${randomUUID()}${endpoint.resource}`, { key });
    await expectErrorResponse(response, 'not_found', /no organization/);
  });

  it('answers 403 forbidden for another organization, a creator who left and a creator without the permission, and says which', async () => {
    const { api, make, owner } = await setupRead(endpoint);
    const creator = await make.member({ permissions: [endpoint.scope] });
    const { key } = await make.apiKey({ creator, scopes: [endpoint.scope] });
    const path = `/v1/orgs/${creator.orgId}${endpoint.resource}`;

    const other = await make.organization();
    const elsewhere = await api.get(`/v1/orgs/${other}${endpoint.resource}`, { key });
    await expectErrorResponse(elsewhere, 'forbidden', /belongs to another organization/);

    for (const status of ['suspended', 'invited']) {
      await owner.pool.query('update membership set status = $1 where person_id = $2', [status, creator.userId]);
      await expectErrorResponse(await api.get(path, { key }), 'forbidden', /no longer an active member/);
    }
    await owner.pool.query(`update membership set status = 'active' where person_id = $1`, [creator.userId]);
    await make.permissionLost(creator, endpoint.scope);
    await expectErrorResponse(
      await api.get(path, { key }),
      'forbidden',
      new RegExp(`no longer holds ${endpoint.scope}`),
    );

    await owner.pool.query(`update membership set status = 'left' where person_id = $1`, [creator.userId]);
    await expectErrorResponse(await api.get(path, { key }), 'forbidden', /has left the organization/);
  });

  it('ignores a permission that the creator holds in another organization', async () => {
    const { api, make, owner, creator } = await setupRead(endpoint);
    const here = await make.member({ permissions: [] });
    await make.role({ orgId: here.orgId, permissions: [...scopes] });
    // The creator of the key is an owner there and a member without a permission here.
    await owner.pool.query(
      `insert into membership (organization_id, person_id, name, email, status)
        values ($1, $2, 'Ada', 'a@example.org', 'active')`,
      [here.orgId, creator.userId],
    );
    const { id, key } = await make.apiKey({ creator });
    await owner.pool.query('update api_key set organization_id = $1, number = 25 where id = $2', [here.orgId, id]);
    const response = await api.get(`/v1/orgs/${here.orgId}${endpoint.resource}`, { key });
    await expectErrorResponse(response, 'forbidden', /no longer holds/);
  });

  it('answers 403 api_key_not_accepted with Allow to every other method sent with a key', async () => {
    const { api, path, key } = await setupRead(endpoint);
    const otherRegion = generateKey('ca', tagSecret);
    for (const method of otherMethods) {
      for (const sent of [key, otherRegion, 'aln_us_nonsense']) {
        const response = await api.get(path, { method, key: sent });
        expect([method, response.status, response.headers.get('allow')]).toEqual([method, 403, 'GET']);
        if (method !== 'HEAD') await expectErrorResponse(response, 'api_key_not_accepted', /GET/);
      }
    }
  });

  it('answers 405 with Allow to every other method sent without a key', async () => {
    const { api, path } = await setupRead(endpoint);
    for (const method of otherMethods) {
      const response = await api.get(path, { method });
      expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, 'GET']);
      if (method !== 'HEAD') await expectErrorResponse(response, 'method_not_allowed');
    }
  });

  it('answers 404 not_found at every path next to its own', async () => {
    const { api, path, key } = await setupRead(endpoint);
    for (const beside of [`${path}/`, `${path}/x`, path.replace('/v1/', '/v2/'), path.replace('/orgs/', '/org/')]) {
      await expectErrorResponse(await api.get(beside, { key }), 'not_found', /nothing at this path/);
      await expectErrorResponse(await api.get(beside), 'not_found', /nothing at this path/);
    }
  });

  it('answers 429 rate_limited with Retry-After to the 121st request of a key, and 200 to another key', async () => {
    const { api, path, key, make, creator } = await setupRead(endpoint);
    const first = await Promise.all(Array.from({ length: requestsPerWindow }, () => api.get(path, { key })));
    expect(new Set(first.map((response) => response.status))).toEqual(new Set([200]));

    const rejected = await api.get(path, { key });
    const waitSeconds = Number(rejected.headers.get('retry-after'));
    await expectErrorResponse(rejected, 'rate_limited', new RegExp(`Try again in ${waitSeconds} s`));
    expect(waitSeconds).toBeGreaterThanOrEqual(1);
    expect(waitSeconds).toBeLessThanOrEqual(60);
    expect(rejected.headers.get('ratelimit')).toBe(`"key";r=0;t=${waitSeconds}`);

    const other = await make.apiKey({ creator });
    expect((await api.get(path, { key: other.key })).status).toBe(200);
  });
});

it('a malformed path gets 400, 401 or 404, never an internal error', async () => {
  const { api, make } = shared();
  const { key } = await make.apiKey();
  for (const path of [
    '/',
    '/v1',
    '/v1/orgs',
    '/v1/orgs/',
    '//v1/orgs/x',
    '/v1/orgs/%2e%2e/clients',
    '/v1/orgs/%zz',
    '/%ff',
  ]) {
    for (const sent of [{ key }, {}]) {
      const response = await api.get(path, sent);
      expect({ path, status: response.status }).toMatchObject({ status: expect.toBeOneOf([400, 401, 404]) });
    }
  }
});
