/** Who may write which entries of the audit log, and in whose name. */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { eventTypes } from '#domain/contract/events.ts';
import type { TestLogin } from '#test/global-setup.ts';
import type { MadeMember } from '#test/make.ts';
import { setupDatabase } from '#test/setup.ts';
import { knownActions } from '../../../apps/console/components/action-sentences.ts';

/** An organization with a signed-in owner, a webhook of the cluster and another one. */
async function setupWriters() {
  const t = await setupDatabase();
  const boss = await t.make.member({ signedIn: true });
  const { orgId } = boss;
  const [managed, own] = [await t.make.webhook({ orgId }), await t.make.webhook({ orgId })];
  await t.owner.pool.query(
    `update webhook set managed_by = 'WebhookSubscription us/orders', managed_uid = $2 where id = $1`,
    [managed.id, randomUUID()],
  );
  await t.owner.pool.query('delete from audit_entry');
  const as = async (login: TestLogin) => {
    const client = new pg.Client({ connectionString: t.database.urls[login] });
    await client.connect();
    onTestFinished(() => client.end());
    return client;
  };
  const connectAsImport = async () => {
    const client = new pg.Client({ connectionString: t.database.ownerUrl });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query('set role org_api_import');
    return client;
  };
  const countEntries = async () => (await t.owner.pool.query('select from audit_entry')).rowCount;
  return { ...t, boss, orgId, managed, own, as, connectAsImport, countEntries };
}

const rejected = { code: '23514', constraint: 'audit_entry_writer' };

it.each(['api', 'worker', 'console', 'platform', 'operator'] as const)(
  'the login of the %s can insert, change or delete no entry itself',
  async (login) => {
    const t = await setupWriters();
    const client = await t.as(login);
    for (const statement of [
      `insert into public.audit_entry (organization_id, action) values ('${t.orgId}', 'member.remove')`,
      `insert into public.audit_entry_default (organization_id, action) values ('${t.orgId}', 'member.remove')`,
      `update public.audit_entry set action = 'x'`,
      'delete from public.audit_entry',
      `select public.record_orgctl_entry('${t.orgId}', null, 'member.remove', null)`,
    ])
      await expect(client.query(statement), statement).rejects.toMatchObject({ code: '42501' });
  },
);

describe('the console', () => {
  const write = (client: pg.Client, who: MadeMember, action = 'member.remove', more: { key?: string } = {}) =>
    client.query('select record_console_entry($1, $2, $3, $4, $5, $6)', [
      who.orgId,
      who.userId,
      more.key ?? null,
      action,
      '192.0.2.1',
      null,
    ]);

  it('writes in the name of an active, confirmed member with an open session only', async () => {
    const t = await setupWriters();
    const { orgId } = t;
    const client = await t.as('console');
    await write(client, t.boss);
    const without = {
      session: await t.make.member({ orgId }),
      confirmation: await t.make.member({ orgId, signedIn: true, confirmed: false }),
      membership: { ...(await t.make.member({ signedIn: true })), orgId },
      organization: { ...t.boss, orgId: randomUUID() },
    };
    for (const [what, who] of Object.entries(without))
      await expect(write(client, who), what).rejects.toMatchObject(rejected);
    for (const change of [
      `update membership set status = 'suspended' where person_id = $1`,
      `update membership set status = 'left' where person_id = $1`,
      `update console_session set expires_at = created_at where person_id = $1`,
      `update console_session set last_seen_at = now() - interval '36 minutes' where person_id = $1`,
      `update console_session set state = 'password_passed', second_factor_at = null where person_id = $1`,
    ]) {
      const who = await t.make.member({ orgId, signedIn: true });
      await t.owner.pool.query(change, [who.userId]);
      await expect(write(client, who), change).rejects.toMatchObject(rejected);
    }
    expect(await t.countEntries()).toBe(1);
  });

  it('writes that members removed or suspended themselves only after they did', async () => {
    const t = await setupWriters();
    const { orgId } = t;
    const client = await t.as('console');
    const own = (who: MadeMember, action: string, organization = orgId) =>
      client.query('select record_console_entry($1, $2, null, $3, null, $4)', [
        organization,
        who.userId,
        action,
        { memberId: who.userId },
      ]);
    const change = (who: MadeMember, status: string) =>
      t.owner.pool.query('update membership set status = $2 where person_id = $1', [who.userId, status]);
    const [gone, suspended] = [
      await t.make.member({ orgId, signedIn: true }),
      await t.make.member({ orgId, signedIn: true }),
    ];
    await change(gone, 'left');
    await change(suspended, 'suspended');
    await own(gone, 'member.remove');
    await own(suspended, 'member.suspend');
    await expect(own(t.boss, 'member.remove', await t.make.organization())).rejects.toMatchObject(rejected);
    await expect(own(suspended, 'member.remove')).rejects.toMatchObject(rejected);
    await expect(own(await t.make.member({ orgId, signedIn: true }), 'member.suspend')).rejects.toMatchObject(rejected);
    await t.owner.pool.query(`update console_session set state = 'password_passed', second_factor_at = null`);
    await expect(own(gone, 'member.remove')).rejects.toMatchObject(rejected);
    expect(await t.countEntries()).toBe(2);
  });

  it('writes actions of members only, and about keys of the same organization', async () => {
    const t = await setupWriters();
    const client = await t.as('console');
    for (const action of ['webhook.suspend', 'webhook.redelivered', 'import', 'api.getOrg', 'probe.create', '', 'x'])
      await expect(write(client, t.boss, action), action).rejects.toMatchObject(rejected);
    const key = await t.make.apiKey();
    await expect(write(client, t.boss, 'key.revoke', { key: key.id })).rejects.toMatchObject(rejected);
  });

  it('renames no member without an entry, also when it writes none itself', async () => {
    const t = await setupWriters();
    const client = await t.as('console');
    const { rows } = await t.owner.pool.query('select name from membership where person_id = $1', [t.boss.userId]);
    await client.query(`update membership set name = 'Forged' where person_id = $1`, [t.boss.userId]);
    const entries = await t.owner.pool.query('select action, person_id, detail, names from audit_entry');
    expect(entries.rows).toEqual([
      {
        action: 'member.change',
        person_id: null,
        detail: { memberId: t.boss.userId, changed: ['name'] },
        names: { member: 'Forged', renamed: { from: rows[0].name, to: 'Forged' } },
      },
    ]);
  });

  it('writes in the name of a person without a session only that a sign-in failed', async () => {
    const t = await setupWriters();
    const who = await t.make.member({ orgId: t.orgId, signedIn: true });
    await t.owner.pool.query('delete from console_session where person_id = $1', [who.userId]);
    const client = await t.as('console');
    await write(client, who, 'sign_in.failure');
    for (const action of ['sign_in.password', 'sign_in.complete', 'password.change', 'session.sign_out'])
      await expect(write(client, who, action), action).rejects.toMatchObject(rejected);
  });
});

it('the worker writes what the system did with a webhook of the organization, and no proof of a cancelled delivery', async () => {
  const t = await setupWriters();
  const client = await t.as('worker');
  const write = (action: string, detail: object, orgId = t.orgId) =>
    client.query('select record_worker_entry($1, $2, $3)', [orgId, action, detail]);
  const webhookId = t.own.id;
  await write('webhook.suspend', { webhookId });
  await write('delivery.cancel', { webhookId, deliveries: 3 });
  for (const [action, detail, orgId] of [
    ['webhook.delete', { webhookId }],
    ['member.remove', { webhookId }],
    ['delivery.cancel', { webhookId, eventId: randomUUID() }],
    ['webhook.suspend', { webhookId, managedBy: 'WebhookSubscription us/orders' }],
    ['webhook.suspend', { webhookId }, await t.make.organization()],
    ['webhook.suspend', { webhookId: randomUUID() }],
    ['webhook.suspend', {}],
  ] as const)
    await expect(write(action, detail, orgId), action).rejects.toMatchObject(rejected);
  const { rows } = await t.owner.pool.query('select person_id, key_id, address from audit_entry');
  expect(rows).toEqual(Array(2).fill({ person_id: null, key_id: null, address: null }));
});

it('the Kubernetes operator writes about managed webhooks, in the name of their object', async () => {
  const t = await setupWriters();
  const client = await t.as('operator');
  const write = (action: string, managedBy: string | null, webhookId = t.managed.id, more: object = {}) =>
    client.query('select record_object_entry($1, $2, $3)', [t.orgId, action, { webhookId, managedBy, ...more }]);
  await write('webhook.change', 'WebhookSubscription us/orders');
  for (const [action, managedBy, webhookId, more] of [
    ['webhook.change', 'WebhookSubscription us/other'],
    ['webhook.redeliver', 'WebhookSubscription us/orders'],
    ['webhook.change', null],
    ['webhook.change', 'WebhookSubscription us/orders', t.own.id],
    ['member.remove', 'WebhookSubscription us/orders'],
    ['delivery.cancel', 'WebhookSubscription us/orders', t.managed.id, { eventId: randomUUID() }],
  ] as const)
    await expect(write(action, managedBy, webhookId, more), `${action} ${managedBy}`).rejects.toMatchObject(rejected);
  expect(await t.countEntries()).toBe(1);
});

it('the import writes about existing organizations only', async () => {
  const t = await setupWriters();
  const client = await t.connectAsImport();
  const write = (action: string, orgId = t.orgId, detail: object = { sha256: '00' }) =>
    client.query('select record_import_entry($1, $2, $3)', [orgId, action, detail]);
  await write('import');
  for (const outcome of [
    () => write('member.remove'),
    () => write('import', randomUUID()),
    () => write('import', t.orgId, { managedBy: 'WebhookSubscription us/orders' }),
  ])
    await expect(outcome()).rejects.toMatchObject(rejected);
});

it('the actions of the writers are those that the console describes', async () => {
  const { owner } = await setupDatabase();
  const { rows } = await owner.pool.query<{ source: string }>(
    `select p.prosrc as source from pg_proc p where p.proname ~ '^record_[a-z]+_(entry|end|notified)$'`,
  );
  const written = new Set(rows.flatMap(({ source }) => source.match(/(?<=')([a-z_]+\.[a-z_]+|import)(?=')/g) ?? []));
  for (const type of eventTypes) written.delete(type);
  const { rows: inserting } = await owner.pool.query<{ source: string }>(
    `select p.prosrc as source from pg_proc p where p.prosrc ~ 'insert into audit_entry' and p.proname !~ '^record_'`,
  );
  for (const { source } of inserting)
    for (const [action] of source.matchAll(/(?<=')family\.[a-z_]+(?=')/g)) written.add(action);
  const { rows: ofPlatform } = await owner.pool.query<{ source: string }>(
    `select p.prosrc as source from pg_proc p where p.pronamespace = 'platform'::regnamespace`,
  );
  for (const { source } of ofPlatform)
    for (const [, action] of source.matchAll(/record_change\(\w+(?:\.\w+)?, '([a-z_]+)'/g))
      written.add(`platform.${action}`);
  const known = knownActions.map(({ action }) => action).filter((action) => !action.startsWith('api.'));
  expect(rows.length).toBe(8);
  expect([...written].sort()).toEqual([...known, 'probe.create'].sort());
});
