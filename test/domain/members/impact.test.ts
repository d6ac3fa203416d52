/** The preview of a change lists exactly the keys and reads that the change stops. */
import { expect, it } from 'vitest';
import { operationsOfScope } from '#domain/contract/operations.ts';
import { assignRole, removeMember, unassignRole } from '#domain/members/change.ts';
import { listKeysOfCreator, previewImpact, previewRoleImpact } from '#domain/members/impact.ts';
import { changeRole } from '#domain/members/roles.ts';
import { startTestApi } from '#test/setup.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { setupStaff, systemRole } from './staff.ts';

it('the reads of each scope are those that the API declares', () => {
  const declared = Object.fromEntries(
    Object.keys(operationsOfScope).map((scope) => [
      scope,
      endpoints
        .filter((endpoint) => endpoint.scope === scope)
        .map(({ operationId }) => operationId)
        .sort(),
    ]),
  );
  const known = Object.entries(operationsOfScope).map(([scope, operations]) => [scope, [...operations].sort()]);
  expect(Object.fromEntries(known)).toEqual(declared);
});

it('the preview lists the valid keys and reads that stop with a member or a role, and the API then rejects exactly those', async () => {
  const t = await setupStaff();
  const { orgId } = t;
  const creator = await t.make.member({ orgId, permissions: ['org.read', 'org.roles.read'] });
  const by = 'orgctl' as const;
  // this role has org.read too
  await assignRole(t.owner, { organizationId: orgId, personId: creator.userId, roleId: systemRole.billing, by });
  const key = await t.make.apiKey({
    creator,
    scopes: ['org.read', 'org.roles.read', 'org.billing.manage'],
    label: 'case tracking',
  });
  const revoked = await t.make.apiKey({ creator, scopes: ['org.read'] });
  await t.make.keyRevoked(revoked);
  const expired = await t.make.apiKey({ creator, scopes: ['org.read'] });
  await t.make.keyExpired(expired);
  await t.make.apiKey({ creator: t.boss, scopes: ['org.read'] });
  await t.make.grant({ professional: creator });
  const since = new Date(Date.now() + 86_400_000);
  await t.make.grant({ professional: creator, since });
  const { id: withdrawn } = await t.make.grant({ professional: creator, since });
  await t.owner.pool.query(`update client_grant set status = 'withdrawn' where id = $1`, [withdrawn]);
  const now = new Date();
  expect(await listKeysOfCreator(t.db, orgId, creator.userId, now)).toMatchObject([
    { id: key.id, label: 'case tracking', working: ['org.read', 'org.roles.read', 'org.billing.manage'] },
  ]);

  const onRoleLost = await previewImpact(
    t.db,
    orgId,
    creator.userId,
    { kind: 'unassign', roleId: creator.roleId ?? '' },
    now,
  );
  expect(onRoleLost).toEqual({
    openGrants: 0,
    keys: [
      {
        id: key.id,
        label: 'case tracking',
        hint: expect.stringContaining('…'),
        creatorId: creator.userId,
        scopes: ['org.roles.read'],
        operations: ['listRoles'],
        losesAllScopes: false,
      },
    ],
  });
  const onRoleChanged = await previewRoleImpact(t.db, orgId, creator.roleId ?? '', ['org.read'], now);
  expect(onRoleChanged).toEqual(onRoleLost.keys);
  const onRemoval = await previewImpact(t.db, orgId, creator.userId, { kind: 'remove' }, now);
  expect(onRemoval).toMatchObject({
    openGrants: 2,
    keys: [{ id: key.id, operations: ['getOrg', 'listRoles', 'getOrgSeats'], losesAllScopes: true }],
  });
  expect((await previewImpact(t.db, orgId, t.member.userId, { kind: 'suspend' }, now)).keys).toEqual([]);

  const api = await startTestApi(t.database);
  const paths = { getOrg: '', listRoles: '/roles', getOrgSeats: '/seats' };
  const statuses = async () => {
    const entries = Object.entries(paths).map(async ([operation, path]) => {
      const response = await api.get(`/v1/orgs/${orgId}${path}`, { key: key.key });
      return [operation, response.status];
    });
    return Object.fromEntries(await Promise.all(entries));
  };
  expect(await statuses()).toEqual({ getOrg: 200, listRoles: 200, getOrgSeats: 200 });
  await changeRole(t.owner, {
    organizationId: orgId,
    roleId: creator.roleId ?? '',
    by,
    permissions: ['org.read'],
  });
  expect(await statuses()).toEqual({ getOrg: 200, listRoles: 403, getOrgSeats: 200 });
  await unassignRole(t.owner, {
    organizationId: orgId,
    personId: creator.userId,
    roleId: creator.roleId ?? '',
    by,
  });
  expect(await statuses()).toEqual({ getOrg: 200, listRoles: 403, getOrgSeats: 200 }); // billing has org.read too
  await removeMember(t.owner, { organizationId: orgId, personId: creator.userId, by });
  expect(await statuses()).toEqual({ getOrg: 403, listRoles: 403, getOrgSeats: 403 });
});
