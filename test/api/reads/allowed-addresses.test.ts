/** Keys that only some IP addresses may use. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { changeKey } from '#domain/keys/change.ts';
import { fingerprints } from '#domain/keys/key.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { openTracing } from '#runtime/tracing.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setup, setupDatabase } from '#test/setup.ts';
import { getOrg } from '../../../apps/api/endpoints.ts';
import { LargeBodyReader } from '../../../apps/api/large-body-reader.ts';
import { newResponse } from '../bounds/setup-reader.ts';

const proxied = { TRUSTED_PROXIES: '127.0.0.0/8, 10.0.0.0/8' };
const from = (address: string) => ({ 'x-forwarded-for': address });

describe('a key with allowed addresses', () => {
  it('is judged by the address that the audit log shows: the proxies’, not the client’s own claim', async () => {
    const { api, make, owner } = await setup(proxied);
    const allowedAddresses = ['203.0.113.9', '198.51.100.0/24', '2001:db8:1::/48'];
    const { id, key, orgId } = await make.apiKey({ allowedAddresses });
    const cases: [forwarded: string, seen: string, status: number][] = [
      ['203.0.113.9', '203.0.113.9', 200],
      ['203.0.113.10', '203.0.113.10', 403],
      ['198.51.100.255', '198.51.100.255', 200],
      ['198.51.101.0', '198.51.101.0', 403],
      ['::ffff:203.0.113.9', '203.0.113.9', 200],
      ['2001:db8:1:ffff::1', '2001:db8:1:ffff::1', 200],
      ['2001:db8:2::1', '2001:db8:2::1', 403],
      // What is left of the nearest untrusted address is the client's own claim.
      ['203.0.113.9, 192.0.2.7', '192.0.2.7', 403],
      ['192.0.2.7, 203.0.113.9, 10.1.2.3', '203.0.113.9', 200],
    ];
    for (const [forwarded, , status] of cases) {
      const response = await api.get(`/v1/orgs/${orgId}`, { key, headers: from(forwarded) });
      expect([forwarded, response.status]).toEqual([forwarded, status]);
    }
    const { rows } = await owner.pool.query(
      `select host(address) as address, status, code from audit_entry where key_id = $1 and status is not null
       order by id`,
      [id],
    );
    expect(rows).toEqual(
      cases.map(([, address, status]) => ({ address, status, code: status === 403 ? 'address_not_allowed' : null })),
    );
  });

  it('is judged by the list of the moment: a change that has committed is seen by the next request', async () => {
    const { api, make, owner } = await setup(proxied);
    const made = await make.apiKey({ allowedAddresses: ['203.0.113.9'] });
    const status = async () => {
      const response = await api.get(`/v1/orgs/${made.orgId}`, { key: made.key, headers: from('198.51.100.7') });
      return response.status;
    };
    const allow = (...allowedAddresses: string[]) =>
      changeKey(owner, { organizationId: made.orgId, keyId: made.id, by: 'orgctl', allowedAddresses });
    expect(await status()).toBe(403);
    await allow('198.51.100.0/28');
    expect(await status()).toBe(200);
    await allow('198.51.100.8/29');
    expect(await status()).toBe(403);
    await allow();
    expect(await status()).toBe(200);
  });

  it('shares no statement of a large body between an allowed address and another one', async () => {
    const { database, make } = await setupDatabase();
    const { key, orgId } = await make.apiKey({ allowedAddresses: ['203.0.113.9'] });
    const server = parsePostgresUrl(database.urls.api);
    const api = await openDatabase({ server, applicationName: 'large', poolMax: 5 });
    onTestFinished(() => api.close());
    const tracing = await openTracing({ otlpEndpoint: null, app: 'test', region: 'us' });
    const bytes = 40 * 1_048_576;
    const memory = { key: bytes, organization: bytes, process: bytes };
    const wait = { maxWaiting: { each: 250, all: 500 }, waitMs: 60_000, onWaited: () => {} };
    const reader = new LargeBodyReader({ pool: api.pool, tracing, databasePoolMax: 5, memory, wait });
    const read = (address: string | null) =>
      reader.read({
        endpoint: getOrg,
        fingerprints: fingerprints(key, testKeySecrets.peppers),
        organizationId: orgId,
        address,
        response: newResponse(),
        encoding: null,
        deadlineMs: performance.now() + 60_000,
      });
    const results = await Promise.all(['203.0.113.9', '203.0.113.10', null].map(read));
    expect(results.map((result) => result.key?.decision)).toEqual(['ok', 'address_not_allowed', 'address_not_allowed']);
  });
});
