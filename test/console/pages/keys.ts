import { validKeysPerOrganization } from '#domain/contract/limits.ts';
import type { Scope } from '#domain/contract/scopes.ts';
import { changeKey } from '#domain/keys/change.ts';
import { createKey } from '#domain/keys/create.ts';
import { listValidKeys } from '#domain/keys/list.ts';
import { testKeySecrets } from '#test/secrets.ts';
import type { ConsoleInstallation, Enrolled } from '../setup.ts';
import type { JudgedPage } from './page.ts';

const day = 86_400_000;
const read: readonly Scope[] = ['org.read', 'org.clients.read'];

/** A key of the organization with a history: creator, time, number of calls. */
async function insertKey(
  t: ConsoleInstallation,
  { orgId, personId }: Pick<Enrolled, 'orgId' | 'personId'>,
  fields: { label: string; scopes?: readonly Scope[]; daysOld?: number; expiresInDays?: number; calls?: number },
): Promise<string> {
  const { label, scopes = read, daysOld = 3, expiresInDays, calls = 0 } = fields;
  const input = {
    organizationId: orgId,
    creatorId: personId,
    scopes,
    label,
    expiresAt: expiresInDays === undefined ? null : new Date(Date.now() + expiresInDays * day),
  };
  const { id } = await createKey(
    t.owner,
    { ...input, by: 'orgctl' },
    testKeySecrets,
    () => new Date(Date.now() - daysOld * day),
  );
  await t.owner.pool.query(
    `insert into audit_entry (at, organization_id, person_id, key_id, action, status, address)
     select now() - make_interval(mins => n * 7), $1, $2, $3, 'api.getOrg', 200, ('203.0.113.' || (n % 3 + 1))::inet
       from generate_series(1, $4) n`,
    [orgId, personId, id, calls],
  );
  return id;
}

/** Keys in each state of the list. */
async function makeKeys(t: ConsoleInstallation, ada: Enrolled): Promise<void> {
  const bo = await t.make.member({
    orgId: ada.orgId,
    name: 'Bo Lindqvist',
    permissions: ['org.read', 'org.clients.read'],
  });
  await insertKey(t, ada, { label: 'Monthly report', calls: 120, expiresInDays: 60 });
  await insertKey(t, ada, {
    label: 'Intake system',
    scopes: ['org.read', 'org.members.read', 'org.roles.read'],
    calls: 9,
    expiresInDays: 6,
  });
  await insertKey(t, ada, { label: 'تقرير شهري', daysOld: 80 });
  await insertKey(t, { ...ada, personId: bo.userId }, { label: 'Calendar', calls: 30 });
  await t.make.permissionLost(bo, 'org.clients.read');
}

async function firstKey(t: ConsoleInstallation, ada: Enrolled): Promise<string> {
  const keys = await listValidKeys(t.owner, ada.orgId, new Date());
  return (
    keys.find(({ label }) => label === 'Monthly report')?.id ??
    (await insertKey(t, ada, { label: 'Monthly report', calls: 12 }))
  );
}

export const pages: readonly JudgedPage[] = [
  { route: 'listKeys', picture: 'keys-empty', path: (_t, { orgId }) => `/o/${orgId}/keys` },
  {
    route: 'listKeys',
    picture: 'keys',
    async path(t, ada) {
      await makeKeys(t, ada);
      return `/o/${ada.orgId}/keys`;
    },
  },
  {
    route: 'listKeys',
    picture: 'keys-ended',
    async path(t, { orgId, personId }) {
      const id = await insertKey(t, { orgId, personId }, { label: 'Old report', daysOld: 90 });
      await t.make.keyRevoked({ id, orgId, creatorId: personId, key: '' });
      return `/o/${orgId}/keys?state=ended`;
    },
  },
  { route: 'showNewKey', picture: 'key-new', path: (_t, { orgId }) => `/o/${orgId}/keys/new` },
  {
    route: 'createKey',
    picture: 'key-made',
    path: (_t, { orgId }) => `/o/${orgId}/keys/new`,
    async steps(page) {
      await page.getByLabel('Name').fill('Seat planner');
      await page.getByLabel('org.billing.manage').check();
      await page.getByRole('button', { name: 'Create API key' }).click();
      await page.getByRole('heading', { name: 'API key created' }).waitFor();
    },
  },
  {
    route: 'showKey',
    picture: 'key',
    path: async (t, ada) => `/o/${ada.orgId}/keys/${await firstKey(t, ada)}`,
  },
  {
    route: 'showEditKey',
    picture: 'key-edit',
    path: async (t, ada) => `/o/${ada.orgId}/keys/${await firstKey(t, ada)}/edit`,
    async steps(page) {
      await page.getByLabel('Description').fill('On the office server');
      await page.getByLabel('Allowed IP addresses').fill('203.0.113.0/24\n2001:db8:4::/48\n198.51.100');
      await page.getByRole('button', { name: 'Save API key' }).click();
      await page.getByText('is neither').waitFor();
    },
  },
  {
    route: 'showKey',
    picture: 'key-restricted',
    async path(t, ada) {
      const id = await firstKey(t, ada);
      const allowedAddresses = ['203.0.113.0/24', '2001:db8:4::/48', '198.51.100.7', '198.51.100.8'];
      const description = 'On the office server. Ask the IT desk before you rotate it.';
      const change = { organizationId: ada.orgId, keyId: id, by: 'orgctl', description, allowedAddresses } as const;
      await changeKey(t.owner, change);
      return `/o/${ada.orgId}/keys/${id}`;
    },
  },
  {
    route: 'showRotateKey',
    picture: 'key-rotate',
    path: async (t, ada) => `/o/${ada.orgId}/keys/${await firstKey(t, ada)}/rotate`,
  },
  {
    route: 'showRevokeKey',
    picture: 'key-revoke',
    path: async (t, ada) => `/o/${ada.orgId}/keys/${await firstKey(t, ada)}/revoke?reported=yes`,
  },
  {
    route: 'showNewKey',
    picture: 'key-step-up',
    path: (_t, { orgId }) => `/o/${orgId}/keys/new`,
    async steps(page, t) {
      await page.getByLabel('Name').fill('Monthly report');
      await page.getByRole('checkbox', { name: 'org.read' }).check();
      const confirmed = (when: string) =>
        t.owner.pool.query(`update console_session set second_factor_at = ${when} where state = 'full'`);
      await confirmed(`now() - interval '6 minutes'`);
      await page.getByRole('button', { name: 'Create API key' }).click();
      await page.getByRole('dialog', { name: 'Confirm your identity' }).waitFor();
      await confirmed('now()');
    },
  },
  { route: 'showCompromisedKey', picture: 'key-compromised', path: (_t, { orgId }) => `/o/${orgId}/keys/compromised` },
  {
    route: 'findCompromisedKey',
    picture: 'key-not-ours',
    path: (_t, { orgId }) => `/o/${orgId}/keys/compromised`,
    async steps(page, t) {
      const { key } = await t.make.apiKey();
      await page.getByLabel('API key, or text that contains it').fill(key);
      await page.getByRole('button', { name: 'Find API key' }).click();
      await page.getByRole('heading', { name: 'API key not found' }).waitFor();
    },
  },
  {
    route: 'showNewKey',
    picture: 'key-new-full',
    async path(t, ada) {
      const validCount = (await listValidKeys(t.owner, ada.orgId, new Date())).length;
      for (let n = validCount; n < validKeysPerOrganization; n += 1)
        await insertKey(t, ada, { label: `Office ${n}`, daysOld: n * 3, calls: n % 2 });
      return `/o/${ada.orgId}/keys/new`;
    },
    // Leaves free numbers for the pages after it.
    async steps(_page, t, { orgId }) {
      await t.owner.pool.query(
        `update api_key set revoked_at = now(), number = null where organization_id = $1 and label like 'Office %'`,
        [orgId],
      );
    },
  },
];
