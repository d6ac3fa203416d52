/**
 * Creating, rotating and revoking keys: permissions, errors, and an audit entry for each change.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { everything, listAuditEntries } from '#domain/audit-log/search.ts';
import { validKeysPerOrganization } from '#domain/contract/limits.ts';
import type { Scope } from '#domain/contract/scopes.ts';
import { type ChangeKey, changeKey } from '#domain/keys/change.ts';
import { type CreateKey, createKey } from '#domain/keys/create.ts';
import { listKeys } from '#domain/keys/list.ts';
import { revokeKey } from '#domain/keys/revoke.ts';
import { type RotateKey, rotateKey } from '#domain/keys/rotate.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setupDatabase, startTestApi } from '#test/setup.ts';

const day = 86_400;
const permissions = ['org.keys.manage', 'org.read', 'org.clients.read'];

/**
 * A database with a member who may manage keys, and the three changes as that member requests them.
 */
async function setupKeys() {
  const { database, owner, make } = await setupDatabase();
  const db = owner;
  const creator = await make.member({ permissions, signedIn: true });
  const own = { organizationId: creator.orgId, by: { personId: creator.userId } };
  return {
    database,
    owner,
    make,
    creator,
    create: (fields: Partial<CreateKey> = {}, now?: () => Date) =>
      createKey(
        db,
        { ...own, scopes: ['org.read'], label: '', expiresAt: null, ...fields } as CreateKey,
        testKeySecrets,
        now,
      ),
    rotate: (keyId: string, fields: Partial<RotateKey> = {}, now?: () => Date) =>
      rotateKey(db, { ...own, keyId, overlapSeconds: day, expiresAt: null, ...fields }, testKeySecrets, now),
    change: (keyId: string, fields: Partial<ChangeKey>) => changeKey(db, { ...own, keyId, ...fields }),
    revoke: (keyId: string, personId = creator.userId) =>
      revokeKey(db, { organizationId: creator.orgId, keyId, by: { personId } }),
    list: (now = new Date()) => listKeys(db, creator.orgId, now),
    entries: async () =>
      (
        await owner.pool.query<Record<string, unknown>>(
          'select action, person_id, key_id, detail from audit_entry order by at, id',
        )
      ).rows,
  };
}

describe('creating a key', () => {
  it('is rejected for a creator who is no active member', async () => {
    const { create, make, owner, creator } = await setupKeys();
    for (const status of ['invited', 'suspended', 'left']) {
      await owner.pool.query('update membership set status = $1 where person_id = $2', [status, creator.userId]);
      await expect(create()).rejects.toMatchObject({ reason: 'not_an_active_member' });
    }
    const elsewhere = await make.member({ signedIn: true });
    await expect(create({ by: { personId: elsewhere.userId } })).rejects.toMatchObject({
      reason: 'not_an_active_member',
    });
    await expect(create({ by: { personId: 'unknown' } })).rejects.toMatchObject({ reason: 'not_an_active_member' });
  });

  it('is rejected for a member without the permission, unless an operator creates it for them', async () => {
    const { create, make, creator } = await setupKeys();
    const reader = await make.member({ orgId: creator.orgId, permissions: ['org.read'], signedIn: true });
    await expect(create({ by: { personId: reader.userId } })).rejects.toMatchObject({ reason: 'may_not_manage_keys' });
    await create({ by: 'orgctl', creatorId: reader.userId });
    const owner = await make.member({ orgId: creator.orgId, roleKey: 'owner', signedIn: true });
    await create({ by: { personId: owner.userId } });
  });

  it('is rejected for a scope that the creator does not hold now, also for an operator', async () => {
    const { create, make, creator } = await setupKeys();
    await expect(create({ scopes: ['org.read', 'org.billing.manage'] })).rejects.toMatchObject({
      reason: 'scope_not_held',
      message: expect.stringContaining('org.billing.manage'),
    });
    await expect(
      create({ by: 'orgctl', creatorId: creator.userId, scopes: ['org.billing.manage'] }),
    ).rejects.toMatchObject({
      reason: 'scope_not_held',
    });
    await create({ scopes: ['org.clients.read'] });
    await make.permissionLost(creator, 'org.clients.read');
    await expect(create({ scopes: ['org.clients.read'] })).rejects.toMatchObject({ reason: 'scope_not_held' });
  });

  it('is rejected without a scope, for a scope that does not exist, and with an expiry that has passed', async () => {
    const { create, list } = await setupKeys();
    const now = new Date();
    await expect(create({ scopes: [] })).rejects.toMatchObject({ reason: 'no_scopes' });
    await expect(create({ scopes: ['org.keys.manage' as Scope] })).rejects.toThrow();
    await expect(create({ expiresAt: now }, () => now)).rejects.toMatchObject({ reason: 'expiry_in_the_past' });
    expect(await list()).toEqual([]);
  });

  it('returns a key that works at once, stores only its hint, and is recorded once', async () => {
    const { create, database, creator, entries, list } = await setupKeys();
    const made = await create({ label: 'reporting', scopes: ['org.read', 'org.read'] });
    const api = await startTestApi(database);
    expect((await api.get(`/v1/orgs/${creator.orgId}`, { key: made.key })).status).toBe(200);
    const hint = `${made.key.slice(0, 11)}…${made.key.slice(-4)}`;
    expect(await list()).toMatchObject([
      { id: made.id, hint, label: 'reporting', scopes: ['org.read'], state: 'valid' },
    ]);
    expect((await entries())[0]).toEqual({
      action: 'key.create',
      person_id: creator.userId,
      key_id: made.id,
      detail: { hint, scopes: ['org.read'], predecessorId: null },
    });
  });
});

describe('changing a key', () => {
  it('stores name, description and addresses, each range once and with the bits beyond its prefix set to 0', async () => {
    const { create, change, list } = await setupKeys();
    const { id } = await create({ label: 'reporting' });
    const allowedAddresses = ['2001:DB8::1', '203.0.113.77/24', '203.0.113.0/24', '10.1.2.3', '::/0'];
    await change(id, { label: 'Reports', description: 'On the office server', allowedAddresses });
    expect(await list()).toMatchObject([
      {
        label: 'Reports',
        description: 'On the office server',
        allowedAddresses: ['10.1.2.3/32', '203.0.113.0/24', '::/0', '2001:db8::1/128'],
      },
    ]);
  });

  it('is recorded once with the old and the new name and addresses, and not when nothing changes', async () => {
    const { create, change, entries, creator } = await setupKeys();
    const { id, hint } = await create({ label: 'reporting', allowedAddresses: ['10.1.2.3'] });
    await change(id, { label: 'Reports', description: 'secret words', allowedAddresses: ['10.1.2.0/24'] });
    await change(id, { label: 'Reports', description: 'secret words', allowedAddresses: ['10.1.2.9/24'] });
    const [, ...changes] = await entries();
    expect(changes).toEqual([
      {
        action: 'key.change',
        person_id: creator.userId,
        key_id: id,
        detail: {
          hint,
          changed: ['label', 'description', 'allowedAddresses'],
          allowedAddresses: ['10.1.2.0/24'],
          allowedBefore: ['10.1.2.3/32'],
        },
      },
    ]);
  });

  it('keeps the name of the time in entries, whatever the key is called later', async () => {
    const { create, change, creator, owner } = await setupKeys();
    const { id } = await create({ label: 'reporting' });
    await change(id, { label: 'Reports' });
    const { entries } = await listAuditEntries(owner, creator.orgId, everything, null, 10);
    const shown = entries.map(({ action, keyLabel, detail }) => [action, keyLabel, detail?.renamed]);
    expect(shown).toEqual([
      ['key.change', 'Reports', { from: 'reporting', to: 'Reports' }],
      ['key.create', 'reporting', undefined],
    ]);
  });

  it('is rejected without the permission, for another organization’s key and for one that is not valid', async () => {
    const { create, change, revoke, make, creator, list } = await setupKeys();
    const { id } = await create({ label: 'reporting' });
    const reader = await make.member({ orgId: creator.orgId, permissions: ['org.read'], signedIn: true });
    const label = 'Reports';
    await expect(change(id, { label, by: { personId: reader.userId } })).rejects.toMatchObject({
      reason: 'may_not_manage_keys',
    });
    const { id: elsewhere } = await make.apiKey();
    await expect(change(elsewhere, { label })).rejects.toMatchObject({ reason: 'no_such_key' });
    await expect(change(id, {})).rejects.toMatchObject({ reason: 'nothing_to_change' });
    await revoke(id);
    await expect(change(id, { label })).rejects.toMatchObject({ reason: 'key_not_live' });
    expect(await list()).toMatchObject([{ label: 'reporting' }]);
  });

  it('is rejected for what is no address or range, for more than 20, and for a text that is too long', async () => {
    const { create, change, list, owner } = await setupKeys();
    const { id } = await create({ label: 'reporting' });
    const wrong = ['', 'localhost', '10.0.0.0/33', '10.1', '::1%eth0', '::ffff:10.0.0.1', '10.0.0.1/', '10.0.0.1/8/8'];
    // PostgreSQL reads no such prefix.
    wrong.push('2001:db8::/032');
    for (const text of wrong)
      await expect(change(id, { allowedAddresses: ['10.0.0.1', text] })).rejects.toMatchObject({
        reason: 'address_rejected',
      });
    const addresses = Array.from({ length: 21 }, (_, n) => `10.0.0.${n}`);
    await expect(change(id, { allowedAddresses: addresses })).rejects.toMatchObject({ reason: 'address_rejected' });
    await expect(create({ allowedAddresses: addresses })).rejects.toMatchObject({ reason: 'address_rejected' });
    await expect(owner.pool.query('update api_key set allowed_addresses = $1', [addresses])).rejects.toThrow(
      'api_key_allowed_addresses_at_most_20',
    );
    await expect(change(id, { label: 'x'.repeat(101) })).rejects.toMatchObject({ reason: 'too_long' });
    await expect(change(id, { description: 'x'.repeat(501) })).rejects.toMatchObject({ reason: 'too_long' });
    expect(await list()).toMatchObject([{ label: 'reporting', description: '', allowedAddresses: [] }]);
    await change(id, { allowedAddresses: addresses.slice(1) });
  });

  it('is kept by a rotation: the successor has the name, the description and the addresses', async () => {
    const { create, change, rotate, list } = await setupKeys();
    const { id } = await create({ label: 'reporting' });
    const texts = { label: 'Reports', description: 'Office', allowedAddresses: ['10.1.2.0/24'] };
    await change(id, texts);
    await rotate(id);
    expect(await list()).toMatchObject([texts, texts]);
  });
});

describe('revoking a key', () => {
  it('is rejected without the permission in this organization, and for another organization’s key', async () => {
    const { create, revoke, make, creator, list } = await setupKeys();
    const { id } = await create();
    const reader = await make.member({ orgId: creator.orgId, permissions: ['org.read'], signedIn: true });
    const elsewhere = await make.member({ signedIn: true });
    for (const person of [reader, elsewhere])
      await expect(revoke(id, person.userId)).rejects.toMatchObject({ reason: 'may_not_manage_keys' });
    const foreign = await make.apiKey({ creator: elsewhere });
    for (const keyId of [foreign.id, randomUUID()])
      await expect(revoke(keyId)).rejects.toMatchObject({ reason: 'no_such_key' });
    expect(await list()).toMatchObject([{ state: 'valid' }]);
  });

  it('is carried out and recorded once, also when it is repeated', async () => {
    const { create, revoke, list, entries, creator } = await setupKeys();
    const { id, hint } = await create();
    await Promise.all([revoke(id), revoke(id), revoke(id)]);
    await revoke(id);
    expect(await list()).toMatchObject([{ id, state: 'revoked' }]);
    expect((await entries()).filter(({ action }) => action === 'key.revoke')).toEqual([
      { action: 'key.revoke', person_id: creator.userId, key_id: id, detail: { hint } },
    ]);
  });
});

describe('rotating a key', () => {
  it('creates a successor with the same scopes and label; both work until the overlap ends', async () => {
    const { create, rotate, list, entries, owner, database, creator } = await setupKeys();
    const start = new Date();
    const old = await create({ scopes: ['org.read', 'org.clients.read'], label: 'case tracking' }, () => start);
    const successor = await rotate(old.id, { overlapSeconds: 7 * day }, () => start);
    const end = new Date(start.getTime() + 7 * day * 1000);
    expect(successor.predecessorEndsAt).toEqual(end);
    expect(await list()).toMatchObject([
      { id: old.id, state: 'valid', expiresAt: end },
      {
        id: successor.id,
        state: 'valid',
        expiresAt: null,
        scopes: ['org.read', 'org.clients.read'],
        label: 'case tracking',
      },
    ]);
    expect((await list(end)).map(({ state }) => state)).toEqual(['expired', 'valid']);
    expect((await entries()).at(-1)).toMatchObject({
      action: 'key.rotate',
      key_id: successor.id,
      detail: { predecessorId: old.id },
    });

    const api = await startTestApi(database);
    const readStatus = async (key: string) => (await api.get(`/v1/orgs/${creator.orgId}`, { key })).status;
    expect([await readStatus(old.key), await readStatus(successor.key)]).toEqual([200, 200]);
    await owner.pool.query(
      `update api_key set created_at = created_at - interval '8 days', expires_at = expires_at - interval '8 days'
        where id = $1`,
      [old.id],
    );
    expect([await readStatus(old.key), await readStatus(successor.key)]).toEqual([401, 200]);
  });

  it('never extends the old key beyond its own expiry', async () => {
    const { create, rotate } = await setupKeys();
    const expiresAt = new Date(Date.now() + 3_600_000);
    const old = await create({ expiresAt });
    expect((await rotate(old.id, { overlapSeconds: day })).predecessorEndsAt).toEqual(expiresAt);
  });

  it('without overlap revokes the old key at once', async () => {
    const { create, rotate, list } = await setupKeys();
    const old = await create();
    await rotate(old.id, { overlapSeconds: 0 });
    expect((await list()).map(({ state }) => state)).toEqual(['revoked', 'valid']);
  });

  it('has no overlap when 25 keys are valid, and reports that', async () => {
    const { create, rotate, list } = await setupKeys();
    const made = [];
    for (let n = 0; n < validKeysPerOrganization; n += 1) made.push(await create());
    const now = new Date();
    const successor = await rotate(made[4]?.id ?? '', { overlapSeconds: day }, () => now);
    expect(successor.predecessorEndsAt).toEqual(now);
    const states = (await list()).map(({ id, state }) => [id, state]);
    expect(states.filter(([, state]) => state === 'valid').length).toBe(validKeysPerOrganization);
    expect(states).toContainEqual([made[4]?.id, 'revoked']);
  });

  it('is rejected with an overlap below 0 or above 7 days, and for a key that is not valid', async () => {
    const { create, rotate, revoke, list } = await setupKeys();
    const start = new Date();
    const { id } = await create({ expiresAt: new Date(start.getTime() + 1_000) }, () => start);
    for (const overlapSeconds of [-1, 7 * day + 1, Number.NaN, Number.POSITIVE_INFINITY])
      await expect(rotate(id, { overlapSeconds })).rejects.toMatchObject({ reason: 'overlap_too_long' });
    await expect(rotate(id, {}, () => new Date(start.getTime() + 1_000))).rejects.toMatchObject({
      reason: 'key_not_live',
    });
    await revoke(id);
    await expect(rotate(id)).rejects.toMatchObject({ reason: 'key_not_live' });
    await expect(rotate(randomUUID())).rejects.toMatchObject({ reason: 'no_such_key' });
    expect((await list()).length).toBe(1);
  });

  it('is rejected without all its scopes or without the permission to manage keys', async () => {
    const { create, rotate, make, creator } = await setupKeys();
    const { id } = await create({ scopes: ['org.read', 'org.clients.read'] });
    const reader = await make.member({
      orgId: creator.orgId,
      permissions: ['org.read', 'org.clients.read'],
      signedIn: true,
    });
    await expect(rotate(id, { by: { personId: reader.userId } })).rejects.toMatchObject({
      reason: 'may_not_manage_keys',
    });
    const keeper = await make.member({
      orgId: creator.orgId,
      permissions: ['org.keys.manage', 'org.read'],
      signedIn: true,
    });
    await expect(rotate(id, { by: { personId: keeper.userId } })).rejects.toMatchObject({ reason: 'scope_not_held' });
  });

  it('creates one successor when it is requested twice at once without overlap', async () => {
    const { create, rotate, list } = await setupKeys();
    const { id } = await create();
    const tries = await Promise.allSettled([1, 2, 3].map(() => rotate(id, { overlapSeconds: 0 })));
    expect(tries.filter(({ status }) => status === 'fulfilled').length).toBe(1);
    expect((await list()).map(({ state }) => state)).toEqual(['revoked', 'valid']);
  });
});
