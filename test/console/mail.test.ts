/** Mail in the console: invitations without a link on a page, and what a member turns off. */
import { describe, expect, it } from 'vitest';
import { createStopLink } from '#domain/mail/stop-link.ts';
import { testSealingKeys } from '#test/secrets.ts';
import { shareConsole } from './setup.ts';

const shared = shareConsole({ MAIL_FROM: 'Organization console <no-reply@example.org>' });

const typed = { email: 'nina@example.org', name: 'Nina Ortiz', title: '', roles: ['member'] };

describe('an invitation, where mail is sent', () => {
  it('is mailed, and no page shows its link', async () => {
    const t = shared();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const owner = t.http(ada);
    const path = `/o/${ada.orgId}/members/invite`;
    const done = await owner.submit(path, path, typed);
    expect(done.status).toBe(200);
    expect(done.text).toContain('<h1>Invitation sent</h1>');
    expect(done.text).not.toMatch(/enrol#/);
    const { rows } = await t.owner.pool.query(
      `select kind, state, address, sealed is not null as "isSealed" from mail where organization_id = $1
        and kind = 'invitation'`,
      [ada.orgId],
    );
    expect(rows).toEqual([{ kind: 'invitation', state: 'waiting', address: 'nina@example.org', isSealed: true }]);
    const member = /\/members\/person\/(usr_\w+)/.exec(done.text)?.[0] ?? '';
    expect((await owner.get(`/o/${ada.orgId}${member}`)).text).toContain('The email waits to be sent.');
    await t.owner.pool.query(
      `update mail set state = 'rejected', reply = '550 5.1.1', settled_at = now(), due_at = null, address = null,
         sealed = null where kind = 'invitation' and organization_id = $1`,
      [ada.orgId],
    );
    expect((await owner.get(`/o/${ada.orgId}${member}`)).text).toContain('(550 5.1.1). Check the address.');
  });

  it('is rejected with a sentence beyond its bounds, and then nothing is written', async () => {
    const t = shared();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    await t.owner.pool.query(
      `insert into mail (organization_id, kind, person_id, state, settled_at, due_at)
       select $1, 'invitation', $2, 'sent', now(), null from generate_series(1, 50)`,
      [ada.orgId, ada.personId],
    );
    const path = `/o/${ada.orgId}/members/invite`;
    const sent = await t.http(ada).submit(path, path, { ...typed, email: 'other@example.org' });
    expect(sent.status).toBe(422);
    expect(sent.text).toContain('Try again tomorrow.');
    const { rows } = await t.owner.pool.query(`select from membership where email = 'other@example.org'`);
    expect(rows).toEqual([]);
  });
});

it('an address that cannot be mailed is named as what it is, at its field', async () => {
  const t = shared();
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const visitor = t.http(ada);
  const path = `/o/${ada.orgId}/members/invite`;
  const sent = await visitor.submit(path, path, { ...typed, email: 'o,neil@x.org' });
  expect(sent.status).toBe(422);
  expect(sent.text).toMatch(/id="field-email-problem">No invitation can be mailed to this address: it has one of/);
  const settings = `/o/${ada.orgId}/settings`;
  const contact = {
    displayName: '',
    timeZone: '',
    invitationDomains: '',
    sessionHours: '12',
    securityContact: 'o,neil@x.org',
  };
  const rejected = await visitor.submit(settings, settings, contact);
  expect(rejected.text).toMatch(/id="field-securityContact-problem">Enter another address\. This one has one of/);
});

describe('what a member turns off', () => {
  const listOptOuts = async (orgId: string) =>
    (await shared().owner.pool.query('select kind from mail_opt_out where organization_id = $1 order by kind', [orgId]))
      .rows;

  it('is what they do not choose on the page, which they can open from their account', async () => {
    const t = shared();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const owner = t.http(ada);
    const path = `/o/${ada.orgId}/notifications`;
    expect((await owner.get('/account')).text).toContain(path);
    const { text } = await owner.get(path);
    expect(text.match(/ checked/g)).toHaveLength(3);
    expect(text).not.toContain('sends no email');
    await owner.submit(path, path, { kinds: ['key.expiring'] });
    expect(await listOptOuts(ada.orgId)).toEqual([{ kind: 'webhook.failing' }, { kind: 'webhook.suspended' }]);
    await owner.submit(path, path, { kinds: ['key.expiring', 'webhook.failing', 'webhook.suspended'] });
    expect(await listOptOuts(ada.orgId)).toEqual([]);
  });

  it('is one kind by the link in a mail: a GET changes nothing, a POST of a mail program turns it off', async () => {
    const t = shared();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const stopped = { organizationId: ada.orgId, personId: ada.personId, kind: 'webhook.failing' } as const;
    const link = createStopLink(t.origin, stopped, testSealingKeys);
    const opened = await fetch(link);
    expect([opened.status, await opened.text()]).toEqual([200, expect.stringContaining('Turn off emails')]);
    expect(await listOptOuts(ada.orgId)).toEqual([]);
    for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
      const options = { method: 'POST', body: 'List-Unsubscribe=One-Click', headers: { 'content-type': type } };
      const sent = await fetch(link, options);
      expect([sent.status, sent.headers.get('set-cookie')]).toEqual([200, null]);
    }
    expect(await listOptOuts(ada.orgId)).toEqual([{ kind: 'webhook.failing' }]);
  });

  it('is nothing by a link that was changed, or is of a key that is gone', async () => {
    const t = shared();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const stopped = { organizationId: ada.orgId, personId: ada.personId, kind: 'webhook.failing' } as const;
    const link = createStopLink(t.origin, stopped, testSealingKeys);
    const other = createStopLink(t.origin, { ...stopped, kind: 'key.expiring' }, testSealingKeys);
    const [ids = ''] = other.split('.').slice(-2);
    const gone = createStopLink(t.origin, stopped, [{ version: 1, secret: Buffer.alloc(32, 7) }]);
    const changed = [`${ids}.${link.split('.').at(-1)}`, `${link}x`, link.slice(0, -1), gone, `${t.origin}/mail/stop/`];
    for (const url of changed) {
      const sent = await fetch(new URL(url, t.origin), { method: 'POST' });
      expect([url, sent.status]).toEqual([url, 404]);
    }
    expect(await listOptOuts(ada.orgId)).toEqual([]);
  });
});

describe('without a mail server', () => {
  const without = shareConsole();

  it('the console says that no mail is sent, and shows the link', async () => {
    const t = without();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const owner = t.http(ada);
    const manager = t.http(await t.enrol({ orgId: ada.orgId, permissions: ['org.members.manage'] }));
    const pages = [
      [owner, 'notifications'],
      [owner, 'settings'],
      [manager, 'settings'],
    ] as const;
    for (const [visitor, name] of pages)
      expect((await visitor.get(`/o/${ada.orgId}/${name}`)).text).toContain('This installation sends no email.');
    const path = `/o/${ada.orgId}/members/invite`;
    expect((await owner.get(path)).text).toContain('No email is sent.');
    expect((await owner.submit(path, path, typed)).text).toMatch(/enrol#/);
    const { rows } = await t.owner.pool.query(`select from mail where kind = 'invitation'`);
    expect(rows).toEqual([]);
  });
});

it('the settings say what became of the last email to the security contact, and nothing of the one before', async () => {
  const t = shared();
  const ada = await t.enrol();
  const owner = t.http(ada);
  const path = `/o/${ada.orgId}/settings`;
  const settings = { displayName: '', timeZone: '', invitationDomains: '', sessionHours: '12' };
  const save = (securityContact: string) => owner.submit(path, path, { ...settings, securityContact });
  const reject = () =>
    t.owner.pool.query(
      `update mail set state = 'rejected', reply = '550 5.1.1', settled_at = now(), due_at = null, address = null
       where organization_id = $1 and person_id is null and state = 'waiting'`,
      [ada.orgId],
    );
  const rejected = /The mail server rejected the last email .*\(550 5\.1\.1\)\. Check the address\./s;
  expect((await owner.get(path)).text).not.toContain('The last email');
  await save('mistyped@example.org');
  expect((await owner.get(path)).text).toContain('The last email waits to be sent.');
  await reject();
  expect((await owner.get(path)).text).toMatch(rejected);
  const admin = t.http(await t.enrol({ orgId: ada.orgId, roleKey: 'admin' }));
  expect((await admin.get(path)).text).toMatch(rejected);
  // The old address gets a mail about the change as well, which is rejected too.
  await save('it@example.org');
  expect((await owner.get(path)).text).toContain('The last email waits to be sent.');
  await t.owner.pool.query(
    `update mail set state = 'sent', settled_at = now(), due_at = null, address = null where address = 'it@example.org'`,
  );
  await reject();
  expect((await owner.get(path)).text).toContain('The last email was sent');
  // A member with this address gets its mails as a member.
  await save(ada.email);
  await reject();
  expect((await owner.get(path)).text).not.toContain('last email');
});

it('keys and webhooks are shown with the numbers by which emails name them', async () => {
  const t = shared();
  const ada = await t.enrol();
  const owner = t.http(ada);
  const webhook = await t.make.webhook({ orgId: ada.orgId });
  const key = await t.make.apiKey({ creator: { orgId: ada.orgId, userId: ada.personId, roleId: null } });
  await t.owner.pool.query('update webhook set number = 7 where id = $1', [webhook.id]);
  await t.owner.pool.query('update api_key set number = 9 where id = $1', [key.id]);
  for (const [path, name] of [
    ['/webhooks', 'Webhook 7'],
    [`/webhooks/${webhook.id}?tab=settings`, 'Webhook 7'],
    ['/keys', 'Key 9'],
    [`/keys/${key.id}`, 'Key 9'],
  ] as const)
    expect([path, (await owner.get(`/o/${ada.orgId}${path}`)).text.includes(name)]).toEqual([path, true]);
});
