/** Every action of the audit log: who is notified by mail, or why no member is. */
import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { changeAddress } from '#domain/identity/orgctl-actions.ts';
import { stopRequiringProvider } from '#domain/identity/sso-provider.ts';
import { mailKinds } from '#domain/mail/kinds.ts';
import { mailsOfActions } from '#domain/mail/notified-actions.ts';
import { assignRole, reinstateMember, removeMember, suspendMember, unassignRole } from '#domain/members/change.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { setupDatabase, shareInstallation } from '#test/setup.ts';
import { makeSignedInOwner } from '#test/signed-in-owner.ts';
import { knownActions } from '../../apps/console/components/action-sentences.ts';
import { importFile } from '../../apps/import/document/import-file.ts';

const ownerRoleId = '0a1f0000-0000-7000-8000-000000000001';

const shared = shareInstallation(setupDatabase);

async function setUp() {
  const { owner, make, database } = shared();
  const { run, orgId, userId } = await makeSignedInOwner({ owner, make });
  const webhook = await make.webhook({ orgId });
  return {
    owner,
    make,
    database,
    run,
    orgId,
    userId,
    webhookId: webhook.id,
    /** Suspends the webhook, which maintenance then finds. */
    async suspend() {
      await run(`update webhook set state = 'suspended', suspended_reason = 'gone' where id = $1`, [webhook.id]);
      await run('select record_notices(1000)');
    },
    record: (action: string, detail: object = {}) =>
      run(`insert into audit_entry (organization_id, person_id, action, detail) values ($1, $2, $3, $4)`, [
        orgId,
        userId,
        action,
        JSON.stringify(detail),
      ]),
    /** Returns the kinds of the mails since the last time, and to whom they are. */
    async take() {
      const mails = await run<{ kind: string; personId: string }>(
        `with gone as (delete from mail where organization_id = $1 or person_id = $2 returning *)
         select kind, person_id as "personId" from gone order by kind collate "C", created_at, id`,
        [orgId, userId],
      );
      for (const { kind, personId } of mails) if (kind !== 'invitation') expect(personId).toBe(userId);
      return mails.map(({ kind }) => kind);
    },
    /** An owner who has not signed in, so that only the other owner gets mail. */
    another: (status = 'active', roleKey = 'owner') => make.member({ orgId, status, roleKey, confirmed: false }),
    put: (member: string, roles: string[], status = 'active') =>
      run(`select platform.put_member($1, $2, 'Ada', $2 || '@example.org', $3, status => $4)`, [
        orgId,
        member,
        roles,
        status,
      ]),
  };
}
type Arranged = Awaited<ReturnType<typeof setUp>>;

/** What an entry has that is notified, where its action alone is not. */
const notifiedDetails: Readonly<Record<string, (t: Arranged) => object>> = {
  'key.change': () => ({ changed: ['allowedAddresses'] }),
  'sign_in.complete': () => ({ isNewBrowser: true }),
  'organization.change': () => ({ changed: ['securityContact'], securityContact: { from: null, to: 'a@example.org' } }),
};

const invited = ({ orgId }: Arranged) =>
  ({ organizationId: orgId, email: 'new@example.org', by: 'orgctl', mailKeys: testSealingKeys }) as const;

/** Actions whose mails do not come from their entry: what causes them, and the kinds that it causes. */
const caused: Readonly<Record<string, (t: Arranged) => Promise<string[]>>> = {
  async 'webhook.suspend'(t) {
    await t.record('webhook.suspend', { webhookId: t.webhookId });
    expect(await t.take()).toEqual([]);
    await t.suspend();
    return t.take();
  },
  async 'webhook.resume'(t) {
    await t.suspend();
    await t.run(`select settle_mail(id, attempts, 'sent', '250', null) from mail where organization_id = $1`, [
      t.orgId,
    ]);
    await t.record('webhook.resume', { webhookId: t.webhookId });
    return (await t.take()).filter((kind) => kind !== 'webhook.suspended');
  },
  async 'member.invite'(t) {
    await createEnrolment(t.owner, { ...invited(t), name: 'Ada', roleKeys: ['owner'] });
    return t.take();
  },
  async 'member.link'(t) {
    await createEnrolment(t.owner, { ...invited(t), name: 'Ada' });
    await t.take();
    await createEnrolment(t.owner, invited(t));
    return t.take();
  },
  async 'member.suspend'(t) {
    const { userId: personId } = await t.another();
    await t.take();
    await suspendMember(t.owner, { organizationId: t.orgId, personId, by: 'orgctl' });
    return t.take();
  },
  async 'member.reinstate'(t) {
    const { userId: personId } = await t.another('suspended');
    await t.take();
    await reinstateMember(t.owner, { organizationId: t.orgId, personId, by: 'orgctl' });
    return t.take();
  },
  async 'member.remove'(t) {
    const { userId: personId } = await t.another();
    await t.take();
    await removeMember(t.owner, { organizationId: t.orgId, personId, by: 'orgctl' });
    return t.take();
  },
  async 'member.role_assign'(t) {
    const { userId: personId } = await t.another('active', 'member');
    expect(await t.take()).toEqual([]);
    await assignRole(t.owner, { organizationId: t.orgId, personId, roleId: ownerRoleId, by: 'orgctl' });
    return t.take();
  },
  async 'member.role_unassign'(t) {
    const { userId: personId } = await t.another();
    await t.take();
    await unassignRole(t.owner, { organizationId: t.orgId, personId, roleId: ownerRoleId, by: 'orgctl' });
    return t.take();
  },
  async 'audit_log.download'(t) {
    // An evidence package also has an entry at its end: one download is one mail.
    await t.record('audit_log.download', { format: 'evidence' });
    await t.record('audit_log.evidence', { manifestSha256: 'x' });
    expect(await t.take()).toEqual(['audit_log.evidence']);
    await t.record('audit_log.download', { format: 'evidence' });
    await t.record('audit_log.download', { filter: {} });
    return t.take();
  },
  async 'sso.require'(t) {
    await t.run(
      `insert into sso_provider (organization_id, issuer, client_id, secret_sealed, is_required, created_at)
       values ($1, 'https://id.example.org', 'x', 'x', true, now())`,
      [t.orgId],
    );
    // Also by orgctl org sso-off.
    await stopRequiringProvider(t.owner, t.orgId);
    const stopped = await t.take();
    await t.record('sso.require', { from: false, to: true });
    return [...(await t.take()), ...stopped];
  },
  async 'sign_in.change_address'(t) {
    await changeAddress(t.owner, { email: `${t.userId}@example.org`, to: 'new@example.org' });
    return [...new Set(await t.take())];
  },
  async 'platform.put_member'(t) {
    await t.put('usr_owner', ['owner']);
    const added = await t.take();
    await t.put('usr_owner', ['owner']);
    expect(await t.take()).toEqual([]);
    await t.put('usr_owner', ['owner', 'member'], 'suspended');
    expect(await t.take()).toEqual(['owner.remove']);
    await t.put('usr_owner', ['owner']);
    expect(await t.take()).toEqual(['owner.add']);
    await t.put('usr_owner', [], 'left');
    return [...added, ...(await t.take())];
  },
  import: (t) => importOwners(t, false),
  'import.backfill': (t) => importOwners(t, true),
};

/** Imports an owner, the same again, and then the same member without the role. */
async function importOwners(t: Arranged, backfill: boolean): Promise<string[]> {
  const server = parsePostgresUrl(t.database.ownerUrl);
  const [organization] = await t.run<object>(
    `select id, name, slug, kind, status, to_char(created_at, 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as "createdAt"
     from organization where id = $1`,
    [t.orgId],
  );
  const owners = async (roleKeys: string[], status = 'active') => {
    const members = [{ userId: 'usr_owner', name: 'Ada', email: 'ada@example.org', title: null, status, roleKeys }];
    const document = { region: 'us', asOf: '2026-11-20', organizations: [{ ...organization, members }] };
    const source = Readable.from([Buffer.from(JSON.stringify(document))]);
    await importFile({ server, source, fileName: 'x', region: 'us', backfill });
    return t.take();
  };
  const added = await owners(['owner']);
  expect(await owners(['owner'])).toEqual([]);
  expect(await owners(['owner', 'member'], 'suspended')).toEqual(['owner.remove']);
  expect(await owners(['owner', 'member'])).toEqual(['owner.add']);
  return [...added, ...(await owners(['member']))];
}

it('is listed once: by its mails, or by a sentence that says why there is none', () => {
  const actions = knownActions.map(({ action }) => action).filter((action) => !action.startsWith('api.'));
  expect(Object.keys(mailsOfActions).sort()).toEqual([...actions, 'probe.create'].sort());
  for (const mails of Object.values(mailsOfActions))
    if (typeof mails === 'string') expect(mails).toMatch(/^[A-Z].{20,}\.$/);
  const told = new Set(Object.values(mailsOfActions).flatMap((mails) => (typeof mails === 'string' ? [] : mails)));
  const ofTime = ['webhook.failing', 'key.expiring', 'audit_log.anchor'];
  expect([...told, ...ofTime].sort()).toEqual([...mailKinds].sort());
});

describe.each(Object.entries(mailsOfActions))('%s', (action, mails) => {
  it(typeof mails === 'string' ? 'causes no mail' : `causes ${mails.join(', ')}`, async () => {
    const t = await setUp();
    const cause = caused[action];
    if (typeof mails === 'string') {
      const more = { memberId: t.userId, key: 'owner', roleKeys: ['owner'], isNewBrowser: true, to: true };
      await t.record(action, { webhookId: t.webhookId, changed: ['allowedAddresses'], ...more });
      return expect(await t.take()).toEqual([]);
    }
    if (cause !== undefined) return expect((await cause(t)).sort()).toEqual([...mails].sort());
    await t.record(action, notifiedDetails[action]?.(t));
    expect(await t.take()).toEqual([...mails]);
  });
});

it.each([
  ['key.change', { changed: ['label', 'description'] }],
  ['sign_in.complete', { isNewBrowser: false }],
  ['organization.change', { changed: ['displayName'], displayName: { from: null, to: 'x' } }],
])('%s causes no mail when it changes nothing of security: %j', async (action, detail) => {
  const t = await setUp();
  await t.record(action, detail);
  expect(await t.take()).toEqual([]);
});

it('owners get no mail about a member who is none, by any change', async () => {
  const t = await setUp();
  await t.put('usr_member', ['member']);
  await t.put('usr_member', ['admin'], 'suspended');
  await t.put('usr_member', ['admin']);
  await t.put('usr_member', [], 'left');
  expect(await t.take()).toEqual([]);
});
