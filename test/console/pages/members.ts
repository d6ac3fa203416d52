import type { Scope } from '#domain/contract/scopes.ts';
import { createKey } from '#domain/keys/create.ts';
import { testKeySecrets } from '#test/secrets.ts';
import type { ConsoleInstallation, Enrolled } from '../setup.ts';
import type { JudgedPage } from './page.ts';

/** Realistic names: of any length and script, and some that contain markup. */
const names = [
  'Bo Lindqvist',
  'Chloé Dubois',
  'דנה לוי',
  'محمد العلي',
  '陳怡君',
  '<b>Dan</b> & "Co"',
  '=HYPERLINK("http://x")',
  'Wolfeschlegelsteinhausenbergerdorff'.repeat(20),
];

const made = new WeakMap<ConsoleInstallation, ReturnType<typeof makeStaff>>();

/** The people of an installation, created once. */
function getStaff(t: ConsoleInstallation, ada: Enrolled): ReturnType<typeof makeStaff> {
  const staff = made.get(t) ?? makeStaff(t, ada);
  made.set(t, staff);
  return staff;
}

/** A firm's people in every status. Returns a member whose keys and clients affect others. */
async function makeStaff(t: ConsoleInstallation, ada: Enrolled): Promise<{ personId: string; roleId: string }> {
  const { orgId } = ada;
  const statuses = ['active', 'active', 'suspended', 'left'];
  for (const [index, name] of names.entries())
    await t.make.member({ orgId, name, status: statuses[index % 4] ?? 'active', roleKey: 'member' });
  const creator = await t.make.member({
    orgId,
    name: 'Frida Okafor',
    permissions: ['org.read', 'org.clients.read', 'org.members.read'],
  });
  await t.owner.pool.query(
    `update role set name = 'Case manager', description = 'Sees clients and colleagues' where id = $1`,
    [creator.roleId],
  );
  await t.owner.pool.query(
    `insert into membership_role (organization_id, person_id, role_id) select $1, $2, id from role
      where organization_id is null and key = 'billing'`,
    [orgId, creator.userId],
  );
  const keys: [string, Scope[]][] = [
    ['Monthly report', ['org.read', 'org.clients.read']],
    ['Intake system', ['org.clients.read', 'org.members.read']],
  ];
  for (const [label, scopes] of keys)
    await createKey(
      t.owner,
      { organizationId: orgId, creatorId: creator.userId, scopes, label, expiresAt: null, by: 'orgctl' },
      testKeySecrets,
    );
  for (let n = 0; n < 3; n += 1) await t.make.grant({ professional: creator });
  return { personId: creator.userId, roleId: creator.roleId ?? '' };
}

/** The page of the member who created keys, or one below it. */
const ofCreator =
  (rest = '') =>
  async (t: ConsoleInstallation, ada: Enrolled) => {
    const { personId, roleId } = await getStaff(t, ada);
    return `/o/${ada.orgId}/members/person/${personId}${rest.replace('ROLE', roleId)}`;
  };

/** The page of a custom role that gives keys their scopes, or one below it. */
const ofRole =
  (rest = '') =>
  async (t: ConsoleInstallation, ada: Enrolled) => {
    const { roleId } = await getStaff(t, ada);
    return `/o/${ada.orgId}/members/roles/${roleId}${rest}`;
  };

/** Members and roles. */
export const pages: readonly JudgedPage[] = [
  {
    route: 'showSettings',
    picture: 'settings',
    path: (_t, { orgId }) => `/o/${orgId}/settings`,
    async steps(page) {
      await page.getByLabel('Security contact').fill('it desk');
      await page.getByLabel('Allowed address domains').fill('example.org');
      await page.getByRole('button', { name: 'Save settings' }).click();
      await page.getByText('Enter a complete email address').waitFor();
    },
  },
  { route: 'listMembers', picture: 'members-one', path: (_t, ada) => `/o/${ada.orgId}/members?q=Ada` },
  {
    route: 'listMembers',
    picture: 'members',
    async path(t, ada) {
      await getStaff(t, ada);
      return `/o/${ada.orgId}/members?status=all`;
    },
  },
  { route: 'listMembers', picture: 'members-none', path: (_t, ada) => `/o/${ada.orgId}/members?q=nobody` },
  { route: 'showInvite', picture: 'member-invite', path: (_t, ada) => `/o/${ada.orgId}/members/invite` },
  {
    route: 'inviteMember',
    picture: 'member-invited',
    path: (_t, ada) => `/o/${ada.orgId}/members/invite`,
    async steps(page) {
      await page.getByLabel('Email address').fill(`new.${Math.random().toString(36).slice(2)}@example.org`);
      await page.getByRole('textbox', { name: 'Name' }).fill('Nina Ortiz');
      await page.getByRole('button', { name: 'Create invitation' }).click();
      await page.getByRole('heading', { name: 'Invitation created' }).waitFor();
    },
  },
  {
    route: 'showMember',
    picture: 'member-self',
    path: (_t, ada) => `/o/${ada.orgId}/members/person/${ada.personId}`,
  },
  { route: 'showMember', picture: 'member', path: ofCreator() },
  {
    route: 'showMember',
    picture: 'member-suspended',
    async path(t, { orgId }) {
      const { userId } = await t.make.member({ orgId, name: 'Sven Holm', status: 'suspended', roleKey: 'member' });
      return `/o/${orgId}/members/person/${userId}`;
    },
  },
  { route: 'showMemberChange', picture: 'member-change', path: ofCreator('/change') },
  { route: 'showRemoveRole', picture: 'member-take-role', path: ofCreator('/roles/ROLE/remove') },
  { route: 'showSuspend', picture: 'member-suspend', path: ofCreator('/suspend') },
  { route: 'showRemove', picture: 'member-remove', path: ofCreator('/remove') },
  { route: 'showLeave', picture: 'leave-rejected', path: (_t, ada) => `/o/${ada.orgId}/leave` },
  {
    route: 'showLeave',
    picture: 'leave',
    async path(t, { orgId }) {
      await t.enrol({ orgId, name: 'Second Owner' });
      return `/o/${orgId}/leave`;
    },
  },
  {
    route: 'showNotifications',
    picture: 'notifications',
    path: (_t, ada) => `/o/${ada.orgId}/notifications`,
  },
  { route: 'listRoles', picture: 'roles-system', path: (_t, ada) => `/o/${ada.orgId}/members/roles` },
  { route: 'showNewRole', picture: 'role-new', path: (_t, ada) => `/o/${ada.orgId}/members/roles/new` },
  { route: 'showRole', picture: 'role', path: ofRole() },
  {
    route: 'showRole',
    picture: 'role-unused',
    async path(t, { orgId }) {
      const roleId = await t.make.role({ orgId, permissions: ['org.read'], name: 'Auditor' });
      return `/o/${orgId}/members/roles/${roleId}`;
    },
  },
  { route: 'showRoleChange', picture: 'role-change', path: ofRole('/change') },
  {
    route: 'changeRole',
    picture: 'role-change-stops',
    path: ofRole('/change'),
    async steps(page) {
      await page.getByLabel('org.clients.read').uncheck();
      await page.getByRole('button', { name: 'Save changes' }).click();
      await page.getByRole('heading', { name: 'Review affected API keys' }).waitFor();
    },
  },
];
