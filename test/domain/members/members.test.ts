/** Members and roles: who may change whom, and that an owner remains. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { everything, listAuditEntries } from '#domain/audit-log/search.ts';
import {
  assignRole,
  changeMember,
  reinstateMember,
  removeMember,
  suspendMember,
  unassignRole,
} from '#domain/members/change.ts';
import { getRoleDetails, listRoles } from '#domain/members/list-roles.ts';
import { changeRole, createRole, deleteRole } from '#domain/members/roles.ts';
import { setupPeople } from '#test/people.ts';
import { describeAction, describeActor, formatSentence } from '../../../apps/console/components/action-sentences.ts';
import { outcomes, setupStaff, systemRole } from './staff.ts';

type Staff = Awaited<ReturnType<typeof setupStaff>>;
const requested = (t: Staff, who: { userId: string }, whom: { userId: string }) => ({
  organizationId: t.orgId,
  personId: whom.userId,
  by: { personId: who.userId },
});

describe('changing a member', () => {
  it('is rejected without the permission in this organization', async () => {
    const t = await setupStaff();
    const elsewhere = await t.make.member({ signedIn: true });
    for (const who of [t.member, elsewhere]) {
      for (const action of [suspendMember, reinstateMember, removeMember])
        await expect(action(t.db, requested(t, who, t.admin))).rejects.toMatchObject({
          reason: 'may_not_manage_members',
        });
      await expect(changeMember(t.db, { ...requested(t, who, t.admin), name: 'X' })).rejects.toMatchObject({
        reason: 'may_not_manage_members',
      });
      await expect(
        assignRole(t.db, { ...requested(t, who, t.member), roleId: systemRole.owner }),
      ).rejects.toMatchObject({
        reason: 'may_not_manage_members',
      });
    }
    for (const whom of [elsewhere, { userId: 'nobody' }])
      await expect(suspendMember(t.db, requested(t, t.boss, whom))).rejects.toMatchObject({ reason: 'no_such_member' });
    expect(await t.entries()).toEqual([]);
  });

  it('suspends, reinstates, renames and removes, and records each change', async () => {
    const t = await setupStaff();
    const request = requested(t, t.admin, t.member);
    await suspendMember(t.db, request);
    await expect(suspendMember(t.db, request)).rejects.toMatchObject({ reason: 'wrong_status' });
    expect(await t.readStatus(t.member.userId)).toBe('suspended');
    await reinstateMember(t.db, request);
    await expect(reinstateMember(t.db, request)).rejects.toMatchObject({ reason: 'wrong_status' });
    await changeMember(t.db, { ...request, name: ' Ada ', title: 'Paralegal' });
    await changeMember(t.db, { ...request, title: null });
    const { rows } = await t.owner.pool.query('select name, title from membership where person_id = $1', [
      t.member.userId,
    ]);
    expect(rows).toEqual([{ name: 'Ada', title: null }]);
    for (const fields of [{}, { name: '' }, { name: ' ' }, { name: 'x'.repeat(201) }, { title: 'x'.repeat(10_000) }])
      await expect(changeMember(t.db, { ...request, ...fields })).rejects.toMatchObject({
        name: 'OrganizationError',
      });
    await removeMember(t.db, request);
    expect(await t.readStatus(t.member.userId)).toBe('left');
    await expect(removeMember(t.db, request)).rejects.toMatchObject({ reason: 'no_such_member' });
    const { rows: roles } = await t.owner.pool.query('select role_id from membership_role where person_id = $1', [
      t.member.userId,
    ]);
    expect(roles).toEqual([]);
    const memberId = t.member.userId;
    expect(await t.entries()).toEqual([
      { action: 'member.suspend', person: t.admin.userId, detail: { memberId } },
      { action: 'member.reinstate', person: t.admin.userId, detail: { memberId } },
      {
        action: 'member.change',
        person: t.admin.userId,
        detail: { memberId, changed: ['name', 'title'], renamed: { from: expect.any(String), to: 'Ada' } },
      },
      { action: 'member.change', person: t.admin.userId, detail: { memberId, changed: ['title'] } },
      { action: 'member.remove', person: t.admin.userId, detail: { memberId, status: 'active' } },
    ]);
  });

  it('who is an owner requires an owner: an administrator cannot change or create one', async () => {
    const t = await setupStaff();
    const second = await t.make.member({ orgId: t.orgId, roleKey: 'owner', signedIn: true });
    const request = requested(t, t.admin, second);
    for (const action of [suspendMember, reinstateMember, removeMember])
      await expect(action(t.db, request)).rejects.toMatchObject({ reason: 'only_owners' });
    await expect(changeMember(t.db, { ...request, name: 'X' })).rejects.toMatchObject({ reason: 'only_owners' });
    for (const action of [assignRole, unassignRole]) {
      await expect(action(t.db, { ...request, roleId: systemRole.billing })).rejects.toMatchObject({
        reason: 'only_owners',
      });
      await expect(
        action(t.db, { ...requested(t, t.admin, t.member), roleId: systemRole.owner }),
      ).rejects.toMatchObject({
        reason: 'only_owners',
      });
    }
    await assignRole(t.db, { ...requested(t, t.boss, t.member), roleId: systemRole.owner });
    await suspendMember(t.db, requested(t, t.boss, second));
  });

  it('never gives more than its actor holds: roles, reinstatement, custom roles', async () => {
    const t = await setupStaff();
    const clerk = await t.make.member({
      orgId: t.orgId,
      permissions: ['org.members.manage', 'org.roles.manage', 'org.read'],
      signedIn: true,
    });
    await expect(
      assignRole(t.db, { ...requested(t, clerk, t.member), roleId: systemRole.billing }),
    ).rejects.toMatchObject({
      reason: 'not_held',
    });
    await expect(assignRole(t.db, { ...requested(t, clerk, clerk), roleId: systemRole.admin })).rejects.toMatchObject({
      reason: 'not_held',
    });
    await suspendMember(t.db, requested(t, clerk, t.admin));
    await expect(reinstateMember(t.db, requested(t, clerk, t.admin))).rejects.toMatchObject({ reason: 'not_held' });
    const by = { personId: clerk.userId };
    const role = { organizationId: t.orgId, by, name: 'Keys' };
    await expect(createRole(t.db, { ...role, permissions: ['org.keys.manage'] })).rejects.toMatchObject({
      reason: 'not_held',
    });
    await expect(
      changeRole(t.db, {
        organizationId: t.orgId,
        by,
        roleId: clerk.roleId ?? '',
        permissions: ['org.members.manage', 'org.keys.manage'],
      }),
    ).rejects.toMatchObject({ reason: 'not_held' });
    const { id } = await createRole(t.db, { ...role, permissions: ['org.read'] });
    await assignRole(t.db, { ...requested(t, clerk, t.member), roleId: id });
    await assignRole(t.db, { ...requested(t, clerk, t.member), roleId: id }); // no second row
    await unassignRole(t.db, { ...requested(t, clerk, t.member), roleId: id });
    await unassignRole(t.db, { ...requested(t, clerk, t.member), roleId: id });
    expect((await t.entries()).map(({ action }) => action)).toEqual([
      'member.suspend',
      'role.create',
      'member.role_assign',
      'member.role_unassign',
    ]);
  });

  it('allows everyone except the last owner to leave', async () => {
    const t = await setupStaff();
    await removeMember(t.db, requested(t, t.member, t.member));
    await expect(removeMember(t.db, requested(t, t.boss, t.boss))).rejects.toMatchObject({ reason: 'last_owner' });
    await expect(suspendMember(t.db, requested(t, t.boss, t.boss))).rejects.toMatchObject({ reason: 'last_owner' });
    await expect(
      unassignRole(t.db, { ...requested(t, t.boss, t.boss), roleId: systemRole.owner }),
    ).rejects.toMatchObject({
      reason: 'last_owner',
    });
    await expect(removeMember(t.owner, { ...requested(t, t.boss, t.boss), by: 'orgctl' })).rejects.toMatchObject({
      reason: 'last_owner',
    });
    // A suspended owner cannot act, so does not count.
    const second = await t.make.member({ orgId: t.orgId, roleKey: 'owner', signedIn: true });
    await suspendMember(t.db, requested(t, t.boss, second));
    await expect(removeMember(t.db, requested(t, t.boss, t.boss))).rejects.toMatchObject({ reason: 'last_owner' });
    expect(await t.readStatus(t.boss.userId)).toBe('active');
    await reinstateMember(t.db, requested(t, t.boss, second));
    await removeMember(t.db, requested(t, t.boss, t.boss));
    expect(await t.readStatus(t.boss.userId)).toBe('left');
  });
});

describe('an owner who has not enrolled', () => {
  it('does not count as the last owner: the last one who signs in remains, until another has enrolled', async () => {
    const t = await setupPeople();
    const ada = await t.enrol({ roleKey: 'owner' });
    const imported = await t.make.member({ orgId: ada.orgId, roleKey: 'owner' });
    const self = { organizationId: ada.orgId, personId: ada.personId, by: { personId: ada.personId } };
    for (const action of [
      () => removeMember(t.db, self),
      () => suspendMember(t.owner, { ...self, by: 'orgctl' }),
      () => unassignRole(t.db, { ...self, roleId: systemRole.owner }),
    ])
      await expect(action()).rejects.toMatchObject({
        reason: 'last_owner',
        message: expect.stringContaining('First assign the role Owner to a member who can sign in.'),
      });
    // The imported owner may be removed: they could not act, so no owner is lost.
    const bo = await t.enrol({ orgId: ada.orgId, roleKey: 'owner' });
    await removeMember(t.db, { ...self, personId: imported.userId });
    await removeMember(t.db, self);
    await expect(
      removeMember(t.db, { organizationId: ada.orgId, personId: bo.personId, by: { personId: bo.personId } }),
    ).rejects.toMatchObject({ reason: 'last_owner' });
  });
});

describe('two owners at the same moment', () => {
  it.each([
    ['leave', (t: Staff, who: { userId: string }) => removeMember(t.db, requested(t, who, who))],
    ['suspend themselves', (t: Staff, who: { userId: string }) => suspendMember(t.db, requested(t, who, who))],
    [
      'give the role back',
      (t: Staff, who: { userId: string }) =>
        unassignRole(t.db, { ...requested(t, who, who), roleId: systemRole.owner }),
    ],
  ] as const)('who %s leave one owner', async (_, action) => {
    const t = await setupStaff();
    const second = await t.make.member({ orgId: t.orgId, roleKey: 'owner', signedIn: true });
    const third = await t.make.member({ orgId: t.orgId, roleKey: 'owner', signedIn: true });
    expect(await outcomes([t.boss, second, third].map((who) => action(t, who)))).toEqual([
      'done',
      'done',
      'last_owner',
    ]);
  });

  it('who remove each other leave one owner', async () => {
    const t = await setupStaff();
    const second = await t.make.member({ orgId: t.orgId, roleKey: 'owner', signedIn: true });
    const result = await outcomes([
      removeMember(t.db, requested(t, t.boss, second)),
      removeMember(t.db, requested(t, second, t.boss)),
    ]);
    expect(result).toEqual(['done', 'may_not_manage_members']);
  });
});

describe('a custom role', () => {
  it('is created, changed and deleted with an audit entry each; a system role cannot be', async () => {
    const t = await setupStaff();
    const by = { personId: t.admin.userId };
    const base = { organizationId: t.orgId, by };
    const made = await createRole(t.db, {
      ...base,
      name: 'Case Manager',
      permissions: ['org.clients.read', 'org.read'],
    });
    expect(made.key).toBe('case-manager');
    await expect(createRole(t.db, { ...base, name: 'Case  manager', permissions: [] })).rejects.toMatchObject({
      reason: 'role_key_taken',
    });
    for (const key of ['owner', 'member'])
      await expect(createRole(t.db, { ...base, name: 'X', key, permissions: [] })).rejects.toMatchObject({
        reason: 'role_key_taken',
      });
    await expect(createRole(t.db, { ...base, name: 'X', permissions: ['org.everything'] })).rejects.toMatchObject({
      reason: 'unknown_permission',
    });
    for (const fields of [{ name: '' }, { name: 'x'.repeat(201) }, { name: '¶' }, { name: 'X', key: 'A B' }])
      await expect(createRole(t.db, { ...base, permissions: [], ...fields })).rejects.toMatchObject({
        reason: 'field_invalid',
      });
    const roleId = made.id;
    await changeRole(t.db, { ...base, roleId, permissions: ['org.read', 'org.roles.read'], description: 'Reads' });
    const { rows } = await t.owner.pool.query('select key, name, description, permissions from role where id = $1', [
      roleId,
    ]);
    expect(rows).toEqual([
      { key: 'case-manager', name: 'Case Manager', description: 'Reads', permissions: ['org.read', 'org.roles.read'] },
    ]);
    await expect(changeRole(t.db, { ...base, roleId })).rejects.toMatchObject({ reason: 'nothing_to_change' });
    await assignRole(t.db, { ...requested(t, t.admin, t.member), roleId });
    await expect(deleteRole(t.db, { ...base, roleId })).rejects.toMatchObject({ reason: 'role_in_use' });
    await unassignRole(t.db, { ...requested(t, t.admin, t.member), roleId });
    await deleteRole(t.db, { ...base, roleId });
    expect(await t.entries()).toMatchObject([
      { action: 'role.create', detail: { roleId, permissions: ['org.read', 'org.clients.read'] } },
      {
        action: 'role.change',
        detail: {
          roleId,
          changed: ['description', 'permissions'],
          added: ['org.roles.read'],
          removed: ['org.clients.read'],
        },
      },
      { action: 'member.role_assign', detail: { roleId, memberId: t.member.userId } },
      { action: 'member.role_unassign' },
      { action: 'role.delete', detail: { roleId, key: 'case-manager' } },
    ]);
    const foreign = await t.make.role({ orgId: await t.make.organization(), permissions: ['org.read'] });
    for (const id of [foreign, randomUUID(), roleId]) {
      await expect(deleteRole(t.db, { ...base, roleId: id })).rejects.toMatchObject({ reason: 'no_such_role' });
      await expect(assignRole(t.db, { ...requested(t, t.boss, t.member), roleId: id })).rejects.toMatchObject({
        reason: 'no_such_role',
      });
    }
    for (const id of Object.values(systemRole)) {
      await expect(deleteRole(t.db, { ...base, roleId: id })).rejects.toMatchObject({ reason: 'system_role' });
      await expect(changeRole(t.db, { ...base, roleId: id, name: 'X' })).rejects.toMatchObject({
        reason: 'system_role',
      });
    }
    await expect(
      createRole(t.db, { ...base, by: { personId: t.member.userId }, name: 'X', permissions: [] }),
    ).rejects.toMatchObject({ reason: 'may_not_manage_roles' });
  });

  it('is not deleted while it is assigned at the same moment', async () => {
    const t = await setupStaff();
    for (let round = 0; round < 5; round += 1) {
      const roleId = await t.make.role({ orgId: t.orgId, permissions: ['org.read'] });
      const by = { personId: t.boss.userId };
      const result = await outcomes([
        deleteRole(t.db, { organizationId: t.orgId, roleId, by }),
        assignRole(t.db, { ...requested(t, t.boss, t.member), roleId }),
      ]);
      expect(result).toEqual(['done', expect.toBeOneOf(['no_such_role', 'role_in_use'])]);
    }
  });

  it('that only former members hold, as after an import, can be deleted, and counts no member', async () => {
    const t = await setupStaff();
    const by = { personId: t.admin.userId };
    const roleId = await t.make.role({ orgId: t.orgId, permissions: ['org.read'] });
    const gone = await t.make.member({ orgId: t.orgId, roleKey: 'member', signedIn: true });
    for (const who of [gone, t.member])
      await t.owner.pool.query(
        'insert into membership_role (organization_id, person_id, role_id) values ($1, $2, $3)',
        [t.orgId, who.userId, roleId],
      );
    await t.owner.pool.query(`update membership set status = 'left' where person_id = $1`, [gone.userId]);
    expect(await getRoleDetails(t.db, t.orgId, roleId)).toMatchObject({ holders: 1 });
    await expect(deleteRole(t.db, { organizationId: t.orgId, roleId, by })).rejects.toMatchObject({
      reason: 'role_in_use',
      message: expect.stringContaining('One member has'),
    });
    // A rejection changes nothing.
    const held = () => t.owner.pool.query('select person_id from membership_role where role_id = $1', [roleId]);
    expect((await held()).rows).toHaveLength(2);
    await t.owner.pool.query(`update membership set status = 'left' where person_id = $1`, [t.member.userId]);
    expect(await getRoleDetails(t.db, t.orgId, roleId)).toMatchObject({ holders: 0 });
    expect((await listRoles(t.db, t.orgId)).find(({ id }) => id === roleId)).toMatchObject({ holders: 0 });
    await deleteRole(t.db, { organizationId: t.orgId, roleId, by });
    expect((await held()).rows).toEqual([]);
    await expect(getRoleDetails(t.db, t.orgId, roleId)).rejects.toMatchObject({ reason: 'no_such_role' });
  });

  it('that its holder loses at the same moment cannot be passed on', async () => {
    const t = await setupStaff();
    const second = await t.make.member({ orgId: t.orgId, roleKey: 'admin', signedIn: true });
    const result = await outcomes([
      unassignRole(t.db, { ...requested(t, t.boss, second), roleId: systemRole.admin }),
      assignRole(t.db, { ...requested(t, second, t.member), roleId: systemRole.admin }),
    ]);
    // Either change was first; the two never both succeed.
    expect(result).toEqual(
      expect.toBeOneOf([
        ['done', 'done'],
        ['done', 'may_not_manage_members'],
      ]),
    );
  });
});

it('a rename changes no earlier entry of the log, and is recorded with the old and the new name', async () => {
  const t = await setupStaff();
  const request = requested(t, t.admin, t.member);
  const roleId = await t.make.role({ orgId: t.orgId, permissions: ['org.read'], name: 'Clerk' });
  const webhook = await t.make.webhook({ orgId: t.orgId, description: 'Case system' });
  await assignRole(t.db, { ...request, roleId });
  const describeLines = async () =>
    (await listAuditEntries(t.db, t.orgId, everything, null, 50)).entries
      .map((entry) => `${formatSentence(describeActor(entry))}: ${formatSentence(describeAction(entry))}`)
      .reverse();
  const before = await describeLines();
  expect(before).toEqual([
    'Support: Added webhook Case system for hooks.example.com',
    'Admin: Assigned role Clerk to Member',
  ]);
  for (const text of [
    `update role set name = 'Aide' where id = '${roleId}'`,
    `update webhook set description = 'Archive' where id = '${webhook.id}'`,
    `update membership set name = 'Adele Min' where person_id = '${t.admin.userId}'`,
  ])
    await t.owner.pool.query(text);
  await changeMember(t.db, { ...request, name: 'Ada' });
  await suspendMember(t.db, request);
  expect(await describeLines()).toEqual([
    ...before,
    'System: Renamed Admin to Adele Min',
    'Adele Min: Renamed Member to Ada',
    'Adele Min: Suspended Ada',
  ]);
});

it('an action of a member whose session ended while the request ran is rejected, and changes nothing', async () => {
  const t = await setupStaff();
  const roleId = await t.make.role({ orgId: t.orgId, permissions: ['org.read'], name: 'Clerk' });
  await t.owner.pool.query('update console_session set expires_at = created_at where person_id = $1', [t.admin.userId]);
  const request = requested(t, t.admin, t.member);
  for (const act of [
    () => changeMember(t.db, { ...request, name: 'Ada' }),
    () => suspendMember(t.db, request),
    () => assignRole(t.db, { ...request, roleId }),
  ])
    await expect(act()).rejects.toMatchObject({ reason: 'not_an_active_member' });
  expect(await t.entries()).toEqual([]);
});
