/** The outbox: who gets which mail, when it is still true, and that no mail fails an action. */
import { randomBytes, randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { writeInvitation } from '#domain/identity/mail-invitation.ts';
import { changeSettings, getSettings } from '#domain/identity/organization-settings.ts';
import { changeAddress } from '#domain/identity/orgctl-actions.ts';
import { createKey } from '#domain/keys/create.ts';
import { testKeySecrets, testSealingKeys } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { makeSignedInOwner } from '#test/signed-in-owner.ts';
import { tryMs } from '../../apps/worker/mail/smtp.ts';
import { admitMailSql } from '../../apps/worker/mail/sql.ts';

interface MailRow {
  id: string;
  kind: string;
  personId: string | null;
  state: string;
  address: string | null;
  about: string | null;
}

async function setUp() {
  const { owner, make, database } = await setupDatabase();
  const { run, orgId, userId } = await makeSignedInOwner({ owner, make });
  /** Makes a member, whom the other owners have heard of. */
  const member = async (fields: Parameters<typeof make.member>[0]) => {
    const made = await make.member(fields);
    await run(`delete from mail where kind = 'owner.add'`);
    return made;
  };
  return {
    owner,
    make: { ...make, member },
    database,
    run,
    orgId,
    userId,
    list: (kind?: string) =>
      run<MailRow>(
        `select id, kind, person_id as "personId", state, address, about from mail
         where $1::text is null or kind = $1 order by created_at, id`,
        [kind ?? null],
      ),
    recordEntry: (action: string, detail: object = {}, person: string | null = userId) =>
      run(`insert into audit_entry (organization_id, person_id, action, detail) values ($1, $2, $3, $4)`, [
        orgId,
        person,
        action,
        JSON.stringify(detail),
      ]),
    /** Makes the mails that wait due, and admits all that are still true. */
    async admit() {
      await run(`update mail set due_at = now() where state = 'waiting'`);
      type Admitted = { id: string; kind: string; facts: { items: { number: number }[] } };
      const admitted: Admitted[] = [];
      for (let [mail] = await run<Admitted>(admitMailSql); mail; [mail] = await run<Admitted>(admitMailSql))
        admitted.push(mail);
      return admitted;
    },
    settle: () => run(`select settle_mail(id, attempts, 'sent', '250', null) from mail where state = 'waiting'`),
    fail: (webhookId: string, ago = '2 hours') =>
      run(`update receiver set failing_since = now() - $2::interval where webhook_id = $1`, [webhookId, ago]),
    suspend: (webhookId: string) =>
      run(`update webhook set state = 'suspended', suspended_reason = 'failures' where id = $1`, [webhookId]),
    async invite(email: string) {
      const link = await createEnrolment(owner, { organizationId: orgId, email, by: 'orgctl' });
      const { personId, token } = link;
      await owner.change((tx) =>
        writeInvitation(tx, { organizationId: orgId, personId, email, token }, testSealingKeys),
      );
      return link;
    },
  };
}

describe('an action of a person', () => {
  it('is mailed to the confirmed members who have its permission, in its transaction', async () => {
    const t = await setUp();
    await t.make.member({ orgId: t.orgId });
    await t.make.member({ orgId: t.orgId, signedIn: true, permissions: ['org.webhooks.manage'] });
    const key = await t.make.member({ orgId: t.orgId, signedIn: true, permissions: ['org.keys.manage'] });
    const input = { organizationId: t.orgId, creatorId: t.userId, scopes: ['org.read'], expiresAt: null, label: 'x' };
    const { id } = await createKey(t.owner, { ...input, by: 'orgctl' } as never, testKeySecrets);
    const mails = await t.list('key.create');
    expect(mails.map(({ personId }) => personId).sort()).toEqual([t.userId, key.userId].sort());
    expect(mails.map(({ about }) => about)).toEqual([id, id]);
    expect(mails.map(({ address }) => address).sort()).toEqual(
      [t.userId, key.userId].map((u) => `${u}@example.org`).sort(),
    );
  });

  it('on their sign-in is mailed to them once, although the audit log of each organization has it', async () => {
    const t = await setUp();
    const other = await t.make.organization();
    await t.make.member({ orgId: other, userId: t.userId, signedIn: true });
    await t.run(
      `insert into audit_entry (organization_id, person_id, action)
       select organization_id, person_id, 'password.change' from membership`,
    );
    expect(await t.list()).toMatchObject([{ kind: 'password.change', address: `${t.userId}@example.org` }]);
  });

  it('that changes their address is mailed to both addresses', async () => {
    const t = await setUp();
    await changeAddress(t.owner, { email: `${t.userId}@example.org`, to: 'new@example.org' });
    const mails = await t.list('sign_in.change_address');
    expect(mails.map(({ address }) => address).sort()).toEqual(['new@example.org', `${t.userId}@example.org`]);
  });

  it('is mailed to owners when it is of the audit log', async () => {
    const t = await setUp();
    await t.make.member({ orgId: t.orgId, signedIn: true, roleKey: 'admin' });
    await t.recordEntry('audit_log.download');
    expect(await t.list()).toMatchObject([{ kind: 'audit_log.download', personId: t.userId }]);
  });

  it.each(['key.report', 'key.change', 'sso.set', 'audit_log.download'])(
    'that they may repeat is one mail until it is sent: %s',
    async (action) => {
      const t = await setUp();
      const repeat = async () => {
        for (let n = 0; n < 3; n += 1) await t.recordEntry(action, { changed: ['allowedAddresses'] });
        return (await t.list()).length;
      };
      expect(await repeat()).toBe(1);
      await t.settle();
      expect(await repeat()).toBe(2);
    },
  );

  it('succeeds when its mails cannot be written, whatever its entry contains', async () => {
    const t = await setUp();
    const actions = await t.run<{ action: string }>(
      `select distinct (regexp_matches(pg_get_triggerdef(oid), '''([a-z_.]+)''', 'g'))[1] as action
       from pg_trigger where tgname = 'audit_entry_notifies' and tgparentid = 0`,
    );
    expect(actions.length).toBeGreaterThan(10);
    const details = [
      {},
      { webhookId: randomUUID() },
      { key: { owner: 1 } },
      { roleKeys: 'owner' },
      { isNewBrowser: true },
      { securityContact: 'x', changed: 'allowedAddresses' },
      { securityContact: { from: 'a@example.org,b@example.org' }, changed: ['allowedAddresses'], to: 'x' },
    ];
    const member = await t.make.member({ orgId: t.orgId, roleKey: 'member' });
    const change = async () => {
      for (const { action } of actions) for (const detail of details) await t.recordEntry(action, detail);
      await t.run(`update sign_in set email = 'x' || email`);
      const role = `'0a1f0000-0000-7000-8000-000000000001'`;
      await t.run(`insert into membership_role values ($1, $2, ${role})`, [t.orgId, member.userId]);
      for (const status of ['suspended', 'active']) await t.run('update membership set status = $1', [status]);
      await t.run(`delete from membership_role where person_id = $1 and role_id = ${role}`, [member.userId]);
    };
    await change();
    await t.run(`alter table mail add constraint broken check (false) not valid`);
    await change();
    await t.run(`alter table mail rename to gone`);
    await change();
    const [counted] = await t.run<{ entries: number }>(`select count(*)::int as entries from audit_entry`);
    expect(counted?.entries).toBeGreaterThanOrEqual(3 * actions.length * details.length);
  });
});

describe('the security contact', () => {
  const choose = (t: Awaited<ReturnType<typeof setUp>>, address: string) =>
    t.run(
      `insert into organization_setting (organization_id, security_contact) values ($1, $2)
       on conflict (organization_id) do update set security_contact = excluded.security_contact`,
      [t.orgId, address],
    );

  it('gets a copy of what no member may turn off, and of nothing else', async () => {
    const t = await setUp();
    await choose(t, 'security@example.org');
    const { id } = await t.make.webhook({ orgId: t.orgId });
    await t.suspend(id);
    await t.recordEntry('password.change');
    await t.fail((await t.make.webhook({ orgId: t.orgId })).id);
    await t.run('select record_notices(1000)');
    await t.invite('new@example.org');
    await t.recordEntry('key.revoke');
    await t.recordEntry('audit_log.download');
    const mails = await t.list();
    const copies = mails.filter(({ personId }) => personId === null);
    expect(copies.map(({ kind, address }) => [kind, address])).toEqual([
      ['key.revoke', 'security@example.org'],
      ['audit_log.download', 'security@example.org'],
    ]);
    expect(mails.filter(({ personId }) => personId === t.userId)).toHaveLength(5);
  });

  it('gets none as a member with the same address, who has one', async () => {
    const t = await setUp();
    await choose(t, `${t.userId}@example.org`);
    await t.recordEntry('key.revoke');
    expect(await t.list()).toMatchObject([{ kind: 'key.revoke', personId: t.userId }]);
  });

  it('gets what happened before another one was chosen, who withholds nothing', async () => {
    const t = await setUp();
    await choose(t, 'security@example.org');
    await t.recordEntry('key.revoke');
    await choose(t, 'other@example.org');
    const admitted = await t.admit();
    expect(admitted).toHaveLength(2);
    expect((await t.list()).map(({ address }) => address)).toContain('security@example.org');
  });

  it('is notified of its change, the old one and the new one, as the owners are', async () => {
    const t = await setUp();
    const change = async (securityContact: string | null) =>
      changeSettings(t.owner, {
        ...(await getSettings(t.owner, t.orgId)),
        securityContact,
        organizationId: t.orgId,
        by: 'orgctl',
      });
    const listed = async () => {
      const mails = await t.list('security_contact.change');
      await t.settle();
      await t.run('delete from mail');
      return mails.map(({ address }) => address).sort();
    };
    const owner = `${t.userId}@example.org`;
    await change('old@example.org');
    expect(await listed()).toEqual(['old@example.org', owner].sort());
    await change('new@example.org');
    expect(await listed()).toEqual(['new@example.org', 'old@example.org', owner].sort());
    await change(null);
    expect(await listed()).toEqual(['new@example.org', owner].sort());
  });

  it('gets 50 mails a day at most: an owner chooses the address, and it might be of a stranger', async () => {
    const t = await setUp();
    await choose(t, 'stranger@example.org');
    for (let n = 0; n < 60; n += 1) await t.recordEntry('key.revoke');
    for (let n = 0; n < 5; n += 1)
      await t.recordEntry('organization.change', { securityContact: { from: 'stranger@example.org', to: null } });
    expect((await t.list()).filter(({ personId }) => personId === null)).toHaveLength(50);
    expect((await t.list('key.revoke')).filter(({ personId }) => personId !== null)).toHaveLength(60);
  });
});

describe('the end of a month', () => {
  it('is a mail with the anchor once, to the security contact, else to the owners', async () => {
    const t = await setUp();
    const other = await t.make.organization();
    await t.make.member({ orgId: other, signedIn: true });
    await t.run(
      `insert into organization_setting (organization_id, security_contact) values ($1, 'security@example.org')`,
      [other],
    );
    const hash = '0123456789abcdef'.repeat(4);
    await t.run(
      `insert into audit_chain (organization_id, month, length, hash)
       select o, date_trunc('month', now() at time zone 'UTC') - m * interval '1 month', 100 + m, decode($2, 'hex')
       from unnest($1::uuid[]) o, generate_series(0, 2) m`,
      [[t.orgId, other], hash],
    );
    const [{ ended } = { ended: '' }] = await t.run<{ ended: string }>(
      `select to_char(find_ended_month('UTC'), 'YYYY-MM') as ended`,
    );
    await t.run('select record_notices(1000)');
    await t.run('select record_notices(1000)');
    const mails = await t.list('audit_log.anchor');
    expect(mails.map(({ personId, address }) => [personId, address]).sort()).toEqual(
      [
        [t.userId, `${t.userId}@example.org`],
        [null, 'security@example.org'],
      ].sort(),
    );
    expect((await t.admit()).map(({ facts }) => facts)).toEqual([
      expect.objectContaining({ anchor: { month: ended, position: 101, hash } }),
      expect.objectContaining({ anchor: { month: ended, position: 101, hash } }),
    ]);
    await t.settle();
    await t.run('select record_notices(1000)');
    expect(await t.list('audit_log.anchor')).toHaveLength(2);
    // A month later there is another one; an organization without an entry in it gets none.
    await t.run(`update notice set step = '2001-01' where organization_id = $1`, [t.orgId]);
    await t.run(`delete from audit_chain where organization_id = $1`, [other]);
    await t.run(`update notice set step = '2001-01' where organization_id = $1`, [other]);
    await t.run('select record_notices(1000)');
    expect((await t.list('audit_log.anchor')).map(({ personId }) => personId).sort()).toEqual(
      [t.userId, t.userId, null].sort(),
    );
  });

  it('is no mail of a month of which retention has left nothing', async () => {
    const t = await setUp();
    await t.run(
      `insert into audit_chain (organization_id, month, length, hash, dropped_length, dropped_hash)
       select $1, find_ended_month('UTC'), 7, sha256('x'), 7, sha256('x')`,
      [t.orgId],
    );
    await t.run('select record_notices(1000)');
    expect(await t.list('audit_log.anchor')).toEqual([]);
  });

  it('is when the month has ended in the organization’s zone and in UTC', async () => {
    const t = await setUp();
    const ended = async (zone: string | null, at: string) => {
      const [row] = await t.run<{ month: string }>(
        `select to_char(find_ended_month($1, $2::timestamptz), 'YYYY-MM') as month`,
        [zone, at],
      );
      return row?.month;
    };
    expect(await ended('America/New_York', '2026-12-01T04:59:00Z')).toBe('2026-10');
    expect(await ended('America/New_York', '2026-12-01T05:00:00Z')).toBe('2026-11');
    expect(await ended('Asia/Tokyo', '2026-11-30T23:59:00Z')).toBe('2026-10');
    expect(await ended('Asia/Tokyo', '2026-12-01T00:00:00Z')).toBe('2026-11');
    expect(await ended(null, '2026-12-01T00:00:00Z')).toBe('2026-11');
    expect(await ended('Mars/Olympus', '2026-12-01T00:00:00Z')).toBe('2026-11');
  });
});

describe('what continues', () => {
  it('is one mail for each member, and one a day, however many webhooks fail and recover', async () => {
    const t = await setUp();
    for (let n = 0; n < 9; n += 1) await t.make.member({ orgId: t.orgId, signedIn: true });
    const hooks = [];
    for (let n = 0; n < 20; n += 1) hooks.push(await t.make.webhook({ orgId: t.orgId }));
    const record = () => t.run('select record_notices(1000)');
    for (const { id } of hooks) await t.fail(id);
    await record();
    await record();
    expect(await t.list('webhook.failing')).toHaveLength(10);
    for (const { facts } of await t.admit()) expect(facts.items).toHaveLength(20);
    await t.settle();
    for (let day = 1; day <= 3; day += 1) {
      await t.run(`update receiver set failing_since = null`);
      await record();
      for (const { id } of hooks) await t.fail(id);
      await record();
      expect(await t.list('webhook.failing')).toHaveLength(day * 10);
      await t.run(`update notice set at = at - interval '24 hours', step = (step::date - 1)::text`);
      await record();
      await record();
      expect(await t.list('webhook.failing')).toHaveLength((day + 1) * 10);
      await t.settle();
    }
  });

  it('waits for ten minutes, so that what begins together is one mail', async () => {
    const t = await setUp();
    await t.fail((await t.make.webhook({ orgId: t.orgId })).id);
    await t.run('select record_notices(1000)');
    await t.run(`update mail set due_at = due_at - interval '9 minutes'`);
    expect(await t.run(admitMailSql)).toEqual([]);
    await t.run(`update mail set due_at = due_at - interval '1 minute'`);
    expect(await t.run(admitMailSql)).toMatchObject([{ kind: 'webhook.failing' }]);
  });

  it('is no mail about a receiver that has failed for less than an hour', async () => {
    const t = await setUp();
    const { id } = await t.make.webhook({ orgId: t.orgId });
    await t.fail(id, '55 minutes');
    await t.run('select record_notices(1000)');
    expect(await t.list('webhook.failing')).toEqual([]);
  });

  it('is a mail about a key 14, 3 and 1 days before its end, unless it has a successor', async () => {
    const t = await setUp();
    const { id } = await t.make.apiKey({
      creator: { orgId: t.orgId, userId: t.userId, roleId: null },
      expiresAt: new Date(Date.now() + 60 * 86_400_000),
    });
    const told = async (left: string) => {
      await t.run(`update api_key set created_at = now() - interval '90 days', expires_at = now() + $1::interval`, [
        left,
      ]);
      await t.run('select record_notices(1000)');
      await t.run('select record_notices(1000)');
      return (await t.run<{ step: string }>('select step from notice order by at, step')).map(({ step }) => step);
    };
    expect(await told('15 days')).toEqual([]);
    expect(await told('13 days')).toEqual(['14']);
    expect(await told('70 hours')).toEqual(['14', '3']);
    expect(await told('23 hours')).toEqual(['14', '3', '1']);
    const [row] = await t.list('key.expiring');
    expect(row).toMatchObject({ kind: 'key.expiring', state: 'waiting' });
    await t.run(
      `insert into api_key (organization_id, creator_id, fingerprint, pepper_version, hint, scopes, number,
         predecessor_id)
       select organization_id, creator_id, $2, 1, 'x', scopes, 2, id from api_key where id = $1`,
      [id, randomBytes(32)],
    );
    expect((await t.admit()).map(({ kind }) => kind)).toEqual(['key.create']);
    expect(await t.list('key.expiring')).toMatchObject([{ state: 'dropped', address: null }]);
  });
});

describe('admission', () => {
  it('drops what is no longer true, and erases its address and token', async () => {
    const t = await setUp();
    const { personId } = await t.invite('new@example.org');
    const { id } = await t.make.webhook({ orgId: t.orgId });
    await t.fail(id);
    await t.run('select record_notices(1000)');
    await t.run(`delete from enrolment where person_id = $1`, [personId]);
    await t.run(`update receiver set failing_since = null`);
    expect(await t.admit()).toEqual([]);
    const rows = await t.run(
      `select distinct state, address, sealed, facts from mail where kind in ('invitation', 'webhook.failing')`,
    );
    expect(rows).toEqual([{ state: 'dropped', address: null, sealed: null, facts: null }]);
  });

  it('drops a mail to a member who has left, or turned its kind off meanwhile', async () => {
    const t = await setUp();
    const { id } = await t.make.webhook({ orgId: t.orgId });
    const other = await t.make.member({ orgId: t.orgId, signedIn: true });
    await t.fail(id);
    await t.run('select record_notices(1000)');
    await t.run(`insert into mail_opt_out values ($1, $2, 'webhook.failing')`, [t.orgId, t.userId]);
    await t.run(`update membership set status = 'left' where person_id = $1`, [other.userId]);
    expect((await t.admit()).map(({ kind }) => kind)).toEqual(['owner.remove']);
    await t.run(`update notice set at = at - interval '24 hours', step = 'before'`);
    await t.run('select record_notices(1000)');
    expect(await t.list('webhook.failing')).toMatchObject([{ state: 'dropped' }, { state: 'dropped' }]);
  });

  it('gives a mail to one worker at a time, and gives up after 72 hours', async () => {
    const t = await setUp();
    await t.recordEntry('password.change');
    const both = await Promise.all([t.run(admitMailSql), t.run(admitMailSql)]);
    expect(both.flat()).toHaveLength(1);
    const [held] = await t.run<{ ms: number }>(
      `select extract(epoch from due_at - clock_timestamp())::float * 1000 as ms from mail`,
    );
    expect(held?.ms).toBeGreaterThan(tryMs);
    await t.run(`update mail set created_at = now() - interval '73 hours'`);
    expect(await t.admit()).toEqual([]);
    expect(await t.list()).toMatchObject([{ state: 'expired', address: null }]);
  });

  it('that has ended decides nothing of the next one, unless the server took the mail', async () => {
    const t = await setUp();
    await t.recordEntry('password.change');
    await t.admit();
    const [{ id } = { id: '' }] = await t.admit();
    const settle = (outcome: string | null) => t.run(`select settle_mail($1, 1, $2, '550', 60)`, [id, outcome]);
    for (const late of ['rejected', null]) await settle(late);
    expect(await t.run('select state, attempts, reply from mail')).toEqual([
      { state: 'waiting', attempts: 2, reply: null },
    ]);
    await settle('sent');
    expect(await t.list()).toMatchObject([{ state: 'sent' }]);
  });

  it('says the same at a repeat whose first try is not known to have failed', async () => {
    const t = await setUp();
    const first = await t.make.webhook({ orgId: t.orgId });
    await t.fail(first.id);
    await t.run('select record_notices(1000)');
    const [told] = await t.admit();
    expect(told?.facts.items).toHaveLength(1);
    const second = await t.make.webhook({ orgId: t.orgId });
    await t.fail(second.id);
    expect((await t.admit())[0]?.facts).toEqual(told?.facts);
    await t.run(`select settle_mail(id, attempts, null, '450', 60) from mail where kind = 'webhook.failing'`);
    expect((await t.admit())[0]?.facts.items).toHaveLength(2);
  });
});

it('notifies of the end of a suspension those who were notified of the suspension, once', async () => {
  const t = await setUp();
  const { id } = await t.make.webhook({ orgId: t.orgId });
  const optedOut = await t.make.member({ orgId: t.orgId, signedIn: true });
  await t.suspend(id);
  await t.run('select record_notices(1000)');
  await t.settle();
  await t.run(`insert into mail_opt_out values ($1, $2, 'webhook.suspended')`, [t.orgId, optedOut.userId]);
  await t.make.member({ orgId: t.orgId, signedIn: true });
  await t.run(`update webhook set state = 'active', suspended_reason = null where id = $1`, [id]);
  await t.recordEntry('webhook.resume', { webhookId: id });
  await t.recordEntry('webhook.resume', { webhookId: id });
  expect(await t.list('webhook.resume')).toMatchObject([{ personId: t.userId, about: id }]);
});

describe('an invitation by mail', () => {
  it('is written three times a day to one person, and 50 times for the organization', async () => {
    const t = await setUp();
    for (let n = 0; n < 3; n += 1) await t.invite('one@example.org');
    await expect(t.invite('one@example.org')).rejects.toMatchObject({ reason: 'too_many_invitations' });
    for (let n = 0; n < 47; n += 1) await t.invite(`p${n}@example.org`);
    await expect(t.invite('more@example.org')).rejects.toMatchObject({ reason: 'too_many_invitations' });
    expect(await t.list('invitation')).toHaveLength(50);
    await t.run(`update mail set created_at = created_at - interval '25 hours'`);
    await t.invite('more@example.org');
  });

  it('is rejected for an address that mail servers read as a list or in quotes, and no one is invited', async () => {
    const t = await setUp();
    for (const email of ['o,neil@x.org', '"o.neil"@x.org', 'a<b@x.org'])
      await expect(
        createEnrolment(t.owner, { organizationId: t.orgId, email, by: 'orgctl', mailKeys: testSealingKeys }),
      ).rejects.toMatchObject({ reason: 'email_not_mailable' });
    expect(await t.list('invitation')).toEqual([]);
    expect(await t.run(`select from membership where email like '%@x.org'`)).toEqual([]);
  });

  it('is replaced by a newer one: the earlier link is not mailed any more', async () => {
    const t = await setUp();
    await t.invite('one@example.org');
    await t.invite('one@example.org');
    await t.admit();
    expect((await t.list('invitation')).map(({ state }) => state).sort()).toEqual(['dropped', 'waiting']);
  });
});

it('does not wait without a mail server, and is purged after 30 days', async () => {
  const t = await setUp();
  await t.invite('new@example.org');
  await t.recordEntry('password.change');
  await t.run('select drop_mails()');
  expect((await t.list()).map(({ state }) => state)).toEqual(['waiting', 'waiting']);
  await t.run(`update mail set created_at = created_at - interval '2 minutes'`);
  await t.run('select drop_mails()');
  expect(new Set((await t.list()).map(({ state }) => state))).toEqual(new Set(['dropped']));
  await t.run(
    `update mail set settled_at = now() - case kind when 'invitation' then 29 else 31 end * interval '1 day'`,
  );
  await t.run('select purge_mails()');
  expect(await t.list()).toMatchObject([{ kind: 'invitation' }]);
  // A notice that is gone too early would be found again.
  await t.run(
    `insert into notice (organization_id, kind, subject_id, step, at, data)
     select $1, 'webhook.failing', $2, days, now() - days * interval '1 day', '{}' from unnest(array[399, 401]) days`,
    [t.orgId, randomUUID()],
  );
  await t.run('select purge_mails()');
  expect(await t.run('select step from notice')).toEqual([{ step: '399' }]);
});
