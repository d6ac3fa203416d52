import type { FilledForm } from './filled-form.ts';
import type { Scene } from './scene.ts';

const needsProvider = 'needs a provider that answers: provider-page.test.ts';
const ofSpareRole = ({ spareRoleId }: Scene) => ({ roleId: spareRoleId });
const memberPage = (rest: string) => (scene: Scene) => `/o/${scene.orgId}/members/person/${rest}`;

/** Forms of keys, members, roles, clients and seats. */
export const organizationForms: Readonly<Record<string, FilledForm>> = {
  createKey: {
    fields: () => ({
      name: 'Monthly report',
      description: 'On the office server',
      scopes: ['org.read'],
      expiry: 'never',
      expiresOn: '',
      allowedAddresses: '203.0.113.0/24',
    }),
  },
  editKey: {
    fields: () => ({ name: 'Weekly report', description: 'On the office server', allowedAddresses: '203.0.113.9' }),
  },
  setProvider: {
    fields: () => ({ issuer: 'https://login.example.com', clientId: 'console', clientSecret: 'a-secret' }),
    notAlone: needsProvider,
  },
  requireProvider: { notAlone: needsProvider },
  stopRequiringProvider: { notAlone: needsProvider },
  removeProvider: { notAlone: needsProvider },

  findCompromisedKey: { fields: ({ key }) => ({ key: key.key }) },
  rotateKey: {
    fields: () => ({ overlapHours: '24', expiry: 'date', expiresOn: '2099-01-31' }),
  },
  revokeKey: {},

  inviteMember: {
    fields: ({ spareRoleKey }) => ({
      email: 'newcomer@example.org',
      name: 'Newcomer',
      title: 'Paralegal',
      roles: ['member', spareRoleKey],
    }),
  },
  changeMember: { fields: () => ({ name: 'Another Name', title: 'Partner' }) },
  renewInvitation: {
    page: (scene) => memberPage(scene.invited.userId)(scene),
    params: ({ invited }) => ({ personId: invited.userId }),
  },
  assignRole: {
    page: (scene) => memberPage(scene.member.userId)(scene),
    fields: ({ spareRoleId }) => ({ roleId: spareRoleId }),
  },
  unassignRole: {},
  suspendMember: {},
  reinstateMember: {
    page: (scene) => memberPage(scene.suspended.userId)(scene),
    params: ({ suspended }) => ({ personId: suspended.userId }),
  },
  removeMember: {},
  changeNotifications: { fields: () => ({ kinds: ['key.expiring'] }) },
  leaveOrganization: { notAlone: 'the last owner cannot leave: the test beside the walk' },

  createRole: {
    fields: () => ({ name: 'Intake', description: 'For the front desk', key: '', permissions: ['org.read'] }),
  },
  changeRole: {
    params: ofSpareRole,
    fields: () => ({ name: 'Intake', description: 'For the front desk', permissions: ['org.read'] }),
  },
  deleteRole: { page: ({ orgId, spareRoleId }) => `/o/${orgId}/members/roles/${spareRoleId}`, params: ofSpareRole },

  changeSettings: {
    fields: () => ({
      displayName: 'Harbor Family Law',
      timeZone: 'America/Toronto',
      securityContact: 'it@example.org',
      invitationDomains: 'example.org',
      sessionHours: '8',
    }),
  },

  endGrant: {},
  moveGrant: { fields: ({ member }) => ({ to: member.userId }) },
  assignSeat: {
    page: ({ orgId, seatlessGrant }) => `/o/${orgId}/clients/${seatlessGrant.id}/seat`,
    params: ({ seatlessGrant }) => ({ grantId: seatlessGrant.id }),
    fields: () => ({ from: 'client' }),
  },
  endSeat: {},
};
