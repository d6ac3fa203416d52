/** The clients against the API: the same guarantees in each language. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { exchange } from '#test/exchange.ts';
import { setup, shareInstallation } from '#test/setup.ts';
import { endpoints } from '../../apps/api/endpoints.ts';
import { giveGrants } from '../api/bounds/readers.ts';
import { startRedis } from '../api/limiter/redis-server.ts';
import type { ClientSettings, DrivenClient } from './driver.ts';
import { drivers } from './drivers.ts';

/** An API with a Redis of its own, and a roster of 5 MB. */
const installation = shareInstallation(async (onFinished) => {
  const redis = await startRedis();
  onFinished(() => redis.stop());
  const installation = await setup({ REDIS_URL: redis.url }, onFinished);
  const creator = await installation.make.member();
  await giveGrants(installation.owner, creator, 20_000, ' of a long street in a town that has a long name too');
  const large = await installation.make.apiKey({ creator });
  return { ...installation, redis: redis.look, large };
});
const orgId = '0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d';
const key = `aln_us_${'k'.repeat(43)}`;

describe.each(drivers)('the client in $name, against the API,', ({ create }) => {
  const open = async (settings: ClientSettings, onWait?: () => Promise<void>): Promise<DrivenClient> => {
    const client = await create({ baseUrl: installation().api.url, ...settings }, onWait);
    if (typeof client === 'string') throw new Error(client);
    return client;
  };

  it('reads each of the nine, with the ETag, the limit and the id of the request', async () => {
    const { api, make } = installation();
    const made = await make.apiKey();
    const client = await open(made);
    for (const { operationId, resource } of endpoints) {
      const result = await client.call(operationId, made.orgId);
      const response = await api.get(`/v1/orgs/${made.orgId}${resource}`, made);
      expect(result).toEqual({
        data: await response.json(),
        isUnchanged: false,
        etag: response.headers.get('etag'),
        requestId: expect.stringMatching(/^[\w-]{10,}$/),
        rateLimit: { remaining: expect.any(Number), seconds: expect.any(Number) },
        keyExpires: null,
      });
    }
    expect(endpoints).toHaveLength(9);
  });

  it('says when the key expires', async () => {
    const expiresAt = new Date(Date.now() + 86_400_000);
    const made = await installation().make.apiKey({ expiresAt });
    const { keyExpires } = await (await open(made)).call('getOrg', made.orgId);
    expect(new Date(keyExpires ?? 0).getTime()).toBeCloseTo(expiresAt.getTime(), -4);
  });

  it('returns the cached body after a 304, and the new one after a change', async () => {
    const { make, owner } = installation();
    const made = await make.apiKey();
    const client = await open({ ...made, hasCache: true });
    const first = await client.call('getOrg', made.orgId);
    const second = await client.call('getOrg', made.orgId);
    expect(first.isUnchanged).toBe(false);
    expect(second).toMatchObject({ isUnchanged: true, data: first.data, etag: first.etag });
    await owner.pool.query(`update organization set name = 'Changed' where id = $1`, [made.orgId]);
    const third = await client.call('getOrg', made.orgId);
    expect(third).toMatchObject({ isUnchanged: false, data: { name: 'Changed' } });
    expect(await client.call('getOrg', made.orgId)).toMatchObject({ isUnchanged: true, data: { name: 'Changed' } });
  });

  it('returns null after a 304 to a tag of the caller, with a cache too', async () => {
    const made = await installation().make.apiKey();
    for (const hasCache of [false, true]) {
      const client = await open({ ...made, hasCache });
      const { etag, data } = await client.call('getOrg', made.orgId);
      expect(await client.call('getOrg', made.orgId, etag)).toMatchObject({ isUnchanged: true, data: null, etag });
      expect(await client.call('getOrg', made.orgId, '"other"')).toMatchObject({ isUnchanged: false, data });
    }
  });

  it('reports 400, 401, 403 and 404 by the code and the id of the request, after one attempt', async () => {
    const { make, logLines } = installation();
    const made = await make.apiKey({ scopes: ['org.read'] });
    const other = await make.apiKey();
    const results = await Promise.all(
      (
        [
          ['invalid_request', 400, made.key, 'getOrg', 'nope'],
          ['invalid_api_key', 401, key, 'getOrg', made.orgId],
          ['invalid_api_key', 401, made.key.replace('aln_us_', 'aln_ca_'), 'getOrg', made.orgId],
          ['forbidden', 403, made.key, 'getOrg', other.orgId],
          ['insufficient_scope', 403, made.key, 'getFirmRoster', made.orgId],
          ['not_found', 404, made.key, 'getOrg', orgId],
        ] as const
      ).map(async ([code, status, given, operationId, organizationId]) => {
        const client = await open({ key: given });
        const { error } = await client.call(operationId, organizationId);
        expect(error).toEqual({
          code,
          message: expect.stringMatching(`^${status} ${code}: \\S.* \\(request ${error?.requestId}\\)$`),
          status,
          requestId: expect.any(String),
          retryAfterSeconds: null,
        });
        expect(client.waits).toEqual([]);
        const printed = await client.print();
        expect(printed).toContain(error?.requestId);
        expect(printed).not.toContain(given);
        return error?.requestId ?? '';
      }),
    );
    for (const requestId of results) expect(logLines.join('').split(requestId).length).toBeGreaterThan(1);
    expect(logLines.join('')).not.toContain(made.key);
  });

  it('waits until the key has requests again when parallel calls exceed the limit', async () => {
    const { make, redis } = installation();
    const made = await make.apiKey();
    const client = await open(made, async () => void (await redis.flushall()));
    const startedAt = performance.now();
    const results = await Promise.all(Array.from({ length: 121 }, () => client.call('getOrg', made.orgId)));
    expect(results.filter(({ isUnchanged }) => isUnchanged === false)).toHaveLength(121);
    expect(client.waits.length).toBeGreaterThanOrEqual(1);
    const elapsedSeconds = (performance.now() - startedAt) / 1_000;
    for (const seconds of client.waits) {
      expect(seconds).toBeGreaterThan(59 - elapsedSeconds);
      expect(seconds).toBeLessThanOrEqual(60.5);
    }
  });

  it('reads a roster of 5 MB in gzip, and returns it from the cache after a 304 to its weak tag', async () => {
    const { api, large } = installation();
    const count = async () => {
      const { body } = await exchange(`${api.metricsUrl}/metrics`);
      return Number(/^org_api_bodies_encoded_total\{size="large",encoding="gzip"\} (\d+)/m.exec(body)?.[1] ?? 0);
    };
    const before = await count();
    const client = await open({ ...large, hasCache: true });
    const first = await client.call('getFirmRoster', large.orgId);
    expect(await count()).toBe(before + 1);
    expect(first.etag).toMatch(/^W\//);
    const identity = await exchange(`${api.url}/v1/orgs/${large.orgId}/clients`, {
      headers: { authorization: `Bearer ${large.key}` },
    });
    expect(identity.body.length).toBeGreaterThan(5_000_000);
    const hash = (text: string) => createHash('sha256').update(text).digest('hex');
    expect(hash(JSON.stringify(first.data))).toBe(hash(identity.body));
    const second = await client.call('getFirmRoster', large.orgId);
    expect([second.isUnchanged, second.etag]).toEqual([true, first.etag]);
    expect(hash(JSON.stringify(second.data))).toBe(hash(identity.body));
  });
});
