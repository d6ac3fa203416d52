/** What the console shows about keys: uses, callers, endpoints, replacements. */
import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { findKeyUsage, listCallers, listCreatorRoles, listEndedKeys, listValidKeys } from '#domain/keys/list.ts';
import { rotateKey } from '#domain/keys/rotate.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { sumCalls } from '#test/sum-calls.ts';
import { writeEntries } from '#test/write-entries.ts';

const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);
const now = () => new Date();

it('uses are calls that were answered, also rejected ones, without calls over the limit and actions on the key', async () => {
  const { owner, make } = await setupDatabase();
  const ada = await make.member({ signedIn: true });
  const { id } = await make.apiKey({ creator: ada });
  const entry = { orgId: ada.orgId, keyId: id };
  expect(await findKeyUsage(owner, ada.orgId, id, now())).toMatchObject({ lastUsedAt: null, uses24h: 0 });
  await writeEntries(owner, [
    { ...entry, at: hoursAgo(30) },
    { ...entry, at: hoursAgo(23), address: '203.0.113.1' },
    { ...entry, at: hoursAgo(2), status: 403, code: 'forbidden', address: '203.0.113.2' },
    { ...entry, at: hoursAgo(1), status: 429, action: 'api.rate_limited' },
    { ...entry, at: hoursAgo(1), status: null, action: 'key.report' },
    { orgId: ada.orgId, keyId: randomUUID() },
  ]);
  await sumCalls(owner);
  const key = await findKeyUsage(owner, ada.orgId, id, now());
  expect(key?.uses24h).toBe(2);
  expect(key?.lastUsedAt?.getTime()).toBeCloseTo(hoursAgo(2).getTime(), -4);
  expect(await listCallers(owner, ada.orgId, id)).toMatchObject([
    { address: '203.0.113.2', uses: 1 },
    { address: '203.0.113.1', uses: 1 },
    { address: null, uses: 1 },
  ]);
});

it('the list and the page of a key count its uses exactly', async () => {
  const { owner, make } = await setupDatabase();
  const ada = await make.member({ signedIn: true });
  const { id } = await make.apiKey({ creator: ada });
  await owner.pool.query(
    `insert into audit_entry (organization_id, key_id, action, status) select $1, $2, 'api.getOrg', 200
      from generate_series(1, 2500)`,
    [ada.orgId, id],
  );
  await sumCalls(owner);
  expect((await listValidKeys(owner, ada.orgId, now()))[0]?.uses24h).toBe(2500);
  expect((await findKeyUsage(owner, ada.orgId, id, now()))?.uses24h).toBe(2500);
});

it('a key’s working scopes are those that its creator holds now', async () => {
  const { owner, make } = await setupDatabase();
  const bo = await make.member({
    name: 'Bo',
    permissions: ['org.read', 'org.clients.read', 'org.keys.manage'],
    signedIn: true,
  });
  const { id } = await make.apiKey({ creator: bo, scopes: ['org.clients.read', 'org.read'] });
  const working = async () => (await findKeyUsage(owner, bo.orgId, id, now()))?.working;
  expect(await working()).toEqual(['org.clients.read', 'org.read']);
  await make.permissionLost(bo, 'org.clients.read');
  expect(await working()).toEqual(['org.read']);
  expect(await listCreatorRoles(owner, bo.orgId, bo.userId)).toEqual([{ id: bo.roleId, name: 'A role' }]);
  await owner.pool.query(`update membership set status = 'suspended' where person_id = $1`, [bo.userId]);
  expect(await findKeyUsage(owner, bo.orgId, id, now())).toMatchObject({
    working: [],
    creatorName: 'Bo',
    creatorStatus: 'suspended',
    state: 'valid',
  });
});

it('a rotated key and its successor refer to each other, and inactive keys have their own list with pages', async () => {
  const { owner, make } = await setupDatabase();
  const ada = await make.member({ signedIn: true });
  const old = await make.apiKey({ creator: ada });
  const input = {
    organizationId: ada.orgId,
    keyId: old.id,
    by: { personId: ada.userId },
    overlapSeconds: 3600,
    expiresAt: null,
  };
  const { id } = await rotateKey(owner, input, testKeySecrets);
  expect(await findKeyUsage(owner, ada.orgId, old.id, now())).toMatchObject({ successorId: id, state: 'valid' });
  expect(await findKeyUsage(owner, ada.orgId, id, now())).toMatchObject({ predecessorId: old.id });
  const later = new Date(Date.now() + 3_700_000);
  expect((await listValidKeys(owner, ada.orgId, later)).map((key) => key.id)).toEqual([id]);
  expect((await listEndedKeys(owner, ada.orgId, null, later)).keys).toMatchObject([{ id: old.id, state: 'expired' }]);

  for (let n = 0; n < 26; n += 1) {
    const key = await make.apiKey({ creator: ada });
    await make.keyRevoked(key);
  }
  const first = await listEndedKeys(owner, ada.orgId, null, later);
  const second = await listEndedKeys(owner, ada.orgId, first.older, later);
  expect([first.keys.length, second.keys.length, second.older]).toEqual([25, 2, null]);
  expect(new Set([...first.keys, ...second.keys].map((key) => key.id)).size).toBe(27);
});

it('another organization’s key is not found, and neither are its callers', async () => {
  const { owner, make } = await setupDatabase();
  const theirs = await make.apiKey();
  const here = await make.organization();
  await writeEntries(owner, [{ orgId: theirs.orgId, keyId: theirs.id, address: '203.0.113.1' }]);
  expect(await findKeyUsage(owner, here, theirs.id, now())).toBeNull();
  expect(await listCallers(owner, here, theirs.id)).toEqual([]);
  expect(await listValidKeys(owner, here, now())).toEqual([]);
});
