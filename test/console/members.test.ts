/** Members and roles in the console. */
import { describe, expect, it } from 'vitest';
import { hiddenFields, unescaped } from '#test/http-visitor.ts';
import { startTestApi } from '#test/setup.ts';
import { type ConsoleInstallation, shareConsole } from './setup.ts';

const shared = shareConsole();

/** The page as text: no markup, single spaces. */
const readText = (page: string): string =>
  unescaped(page.slice(page.indexOf('<main')).replace(/<(?!\/?(?:main|h1))[^>]*>/g, ' ')).replace(/\s+/g, ' ');

/** An organization with two owners and a person whose role and key others depend on. */
async function setupMembers() {
  const t = shared();
  const ada = await t.enrol({ name: 'Ada Rivers' });
  const { orgId } = ada;
  const creator = await t.make.member({ orgId, name: 'Frida Okafor', permissions: ['org.read', 'org.clients.read'] });
  const key = await t.make.apiKey({ creator, scopes: ['org.read', 'org.clients.read'], label: 'Monthly report' });
  const at = (rest: string) => `/o/${orgId}${rest}`;
  return { ...t, ada, orgId, creator, key, at, person: at(`/members/person/${creator.userId}`) };
}

const lines = async ({ owner }: ConsoleInstallation, orgId: string, action: string) =>
  (
    await owner.pool.query<{ person: string; detail: Record<string, unknown> }>(
      'select person_id as person, detail from audit_entry where organization_id = $1 and action = $2 order by at, id',
      [orgId, action],
    )
  ).rows;

const readStatus = async ({ owner }: ConsoleInstallation, orgId: string, personId: string) =>
  (
    await owner.pool.query('select status from membership where organization_id = $1 and person_id = $2', [
      orgId,
      personId,
    ])
  ).rows[0]?.status;

describe('an invitation', () => {
  it('shows its link once with the chosen roles, records it, and is replaced by a newer link', async () => {
    const t = await setupMembers();
    const owner = t.http(t.ada);
    const typed = { email: 'nina@example.org', name: 'Nina Ortiz', title: 'Paralegal', roles: ['member', 'billing'] };
    const done = await owner.submit(t.at('/members/invite'), t.at('/members/invite'), typed);
    expect(done.status).toBe(200);
    const link = /http:\/\/localhost:\d+(\/enrol#[\w-]+)/.exec(done.text)?.[1] ?? '';
    const nina = /\/members\/person\/(usr_\w+)/.exec(done.text)?.[1] ?? '';
    expect((await t.http().openLink(link)).text).toContain('/enrol/password');
    expect(await lines(t, t.orgId, 'member.invite')).toContainEqual({
      person: t.ada.personId,
      detail: { memberId: nina, roleKeys: ['billing', 'member'] },
    });
    const page = await owner.get(t.at(`/members/person/${nina}`));
    expect(readText(page.text)).toMatch(/Invited .*Billing.*Member.*Invite pending/);
    expect(page.text).not.toContain('/enrol#');

    const renewed = await owner.submit(page, t.at(`/members/person/${nina}/link`));
    expect(renewed.text).toContain('/enrol#');
    expect((await t.http().openLink(link)).status).toBe(410);
  });

  it('that is submitted twice creates one link', async () => {
    const t = await setupMembers();
    const owner = t.http(t.ada);
    const form = hiddenFields((await owner.get(t.at('/members/invite'))).text, t.at('/members/invite'));
    const fields = { ...form, email: 'nina@example.org', name: 'Nina', title: '', roles: 'member' };
    const sent = await Promise.all([1, 2, 3].map(() => owner.post(t.at('/members/invite'), fields)));
    expect(sent.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    expect(await lines(t, t.orgId, 'member.invite')).toHaveLength(1);
  });

  it('of a member’s address is rejected with a link to the member, and changes nothing of them', async () => {
    const t = await setupMembers();
    const owner = t.http(t.ada);
    const email = `${t.creator.userId}@EXAMPLE.org`;
    const typed = { email, name: 'Someone Else', title: 'Clerk', roles: ['admin'] };
    const before = (await owner.get(t.person)).text;
    const rejected = await owner.submit(t.at('/members/invite'), t.at('/members/invite'), typed);
    expect(rejected.status).toBe(422);
    expect(readText(rejected.text)).toContain('is already a member. Nothing was changed.');
    expect(rejected.text).toContain(`<a href="${t.person}">`);
    expect(rejected.text).toContain('value="Someone Else"');
    expect(rejected.text).not.toContain('/enrol#');
    const main = (text: string) => text.slice(text.indexOf('<main')).replace(/name="_(token|form)" value="[^"]*"/g, '');
    expect(main((await owner.get(t.person)).text)).toBe(main(before));
    // Where they cannot sign in yet, the link there is made on its own.
    const made = await owner.submit(t.person, `${t.person}/link`);
    expect(readText(made.text)).toContain('Name and roles did not change');
    expect(await lines(t, t.orgId, 'member.invite')).toEqual([]);
    // One who had left is named as such, because their former name is replaced everywhere.
    const left = await t.make.member({ orgId: t.orgId, status: 'left', name: 'Øystein Fournier' });
    const again = { email: `${left.userId}@example.org`, name: 'Ada Fournier', title: '', roles: ['member'] };
    const invited = await owner.submit(t.at('/members/invite'), t.at('/members/invite'), again);
    expect(readText(invited.text)).toContain('This person was a member before.');
    expect(await lines(t, t.orgId, 'member.link')).toContainEqual({
      person: t.ada.personId,
      detail: { memberId: t.creator.userId },
    });
  });

  it('offers only roles whose every permission the inviter holds, and explains the others', async () => {
    const t = await setupMembers();
    const bo = t.http(
      await t.enrol({ orgId: t.orgId, permissions: ['org.read', 'org.members.read', 'org.members.manage'] }),
    );
    let form = await bo.get(t.at('/members/invite'));
    expect(readText(form.text)).toMatch(/Only an owner can assign this role\..*don’t have .*org\.seats\.manage/);
    for (const [roles, why] of [
      ['owner', 'Only an owner can change or appoint an owner.'],
      ['billing', 'You can’t assign permissions that you don’t have'],
      ['nonsense', 'The organization has no role nonsense.'],
    ] as const) {
      const rejected = await bo.submit(form, t.at('/members/invite'), {
        email: 'x@example.org',
        name: 'Xu Ping',
        title: '',
        roles,
      });
      expect([roles, rejected.status]).toEqual([roles, 422]);
      expect(readText(rejected.text)).toContain(why);
      expect(rejected.text).toContain('value="Xu Ping"');
      form = rejected;
    }
    const { rows } = await t.owner.pool.query(`select 1 from membership where email = 'x@example.org'`);
    expect(rows).toEqual([]);
  });
});

describe('the preview of a change', () => {
  it('lists the keys and reads that stop before a role is removed, and the API rejects exactly those afterwards', async () => {
    const t = await setupMembers();
    const api = await startTestApi(t.database, { REDIS_URL: '' });
    const read = async (path: string) => (await api.get(`/v1/orgs/${t.orgId}${path}`, { key: t.key.key })).status;
    expect([await read(''), await read('/clients')]).toEqual([200, 200]);
    const owner = t.http(t.ada);
    expect(await owner.submit(t.person, `${t.person}/roles`, { roleId: await roleId(t, 'billing') })).toMatchObject({
      status: 303,
    });

    const take = `${t.person}/roles/${t.creator.roleId}/remove`;
    const page = await owner.get(take);
    expect(readText(page.text)).toMatch(
      /“ Monthly report ” .*can no longer read : the roster of clients getFirmRoster/,
    );
    expect(readText(page.text)).not.toContain('getOrg ');
    expect(await owner.submit(page, take)).toMatchObject({ status: 303, to: t.person });

    expect([await read(''), await read('/clients')]).toEqual([200, 403]);
    expect(await lines(t, t.orgId, 'member.role_unassign')).toMatchObject([
      { person: t.ada.personId, detail: { memberId: t.creator.userId, roleId: t.creator.roleId } },
    ]);
  });

  it('lists what suspending and removing stop; a suspended member’s keys are rejected, and work again after reinstatement', async () => {
    const t = await setupMembers();
    await t.make.grant({ professional: t.creator });
    const api = await startTestApi(t.database, { REDIS_URL: '' });
    const read = async () => (await api.get(`/v1/orgs/${t.orgId}`, { key: t.key.key })).status;
    const owner = t.http(t.ada);
    for (const path of ['suspend', 'remove']) {
      const text = readText((await owner.get(`${t.person}/${path}`)).text);
      expect(text).toMatch(
        /1 API key stops working.*“ Monthly report ” .*stops working .*getOrg .*getFirmRoster .*getOrgSeatFamilies/,
      );
      expect(text).toContain('1 client stays with them');
    }
    expect(await owner.submit(`${t.person}/suspend`, `${t.person}/suspend`)).toMatchObject({ status: 303 });
    expect([await read(), await readStatus(t, t.orgId, t.creator.userId)]).toEqual([403, 'suspended']);
    expect(readText((await owner.get(t.person)).text)).toContain('Inactive');
    expect(await owner.submit(t.person, `${t.person}/reinstate`)).toMatchObject({ status: 303 });
    expect(await read()).toBe(200);
    expect(await owner.submit(`${t.person}/remove`, `${t.person}/remove`)).toMatchObject({ status: 303 });
    expect([await read(), await readStatus(t, t.orgId, t.creator.userId)]).toEqual([403, 'left']);
    for (const action of ['member.suspend', 'member.reinstate', 'member.remove'])
      expect(await lines(t, t.orgId, action)).toMatchObject([
        { person: t.ada.personId, detail: { memberId: t.creator.userId } },
      ]);
  });

  it('is shown again when more would stop than it listed, and nothing changes', async () => {
    const t = await setupMembers();
    const owner = t.http(t.ada);
    for (const path of [`${t.person}/suspend`, `${t.person}/remove`, `${t.person}/roles/${t.creator.roleId}/remove`]) {
      const opened = await owner.get(path);
      await t.make.apiKey({ creator: t.creator, scopes: ['org.read'], label: `Newer than ${path.slice(-6)}` });
      const requested = await owner.submit(opened, path);
      expect(requested.status).toBe(422);
      expect(readText(requested.text)).toMatch(/Nothing was changed.*Newer than/);
    }
    expect(await readStatus(t, t.orgId, t.creator.userId)).toBe('active');
  });

  it('is shown before a changed role stops keys, and the change follows its confirmation', async () => {
    const t = await setupMembers();
    const owner = t.http(t.ada);
    const change = t.at(`/members/roles/${t.creator.roleId}/change`);
    const requested = await owner.submit(change, change, { name: 'Clerk', description: '', permissions: ['org.read'] });
    expect(readText(requested.text)).toMatch(
      /Review affected API keys.*Not saved yet.*“ Monthly report ”.*getFirmRoster/,
    );
    const permissions = async () =>
      (await t.owner.pool.query('select name, permissions from role where id = $1', [t.creator.roleId])).rows[0];
    expect((await permissions()).permissions).toEqual(['org.read', 'org.clients.read']);
    expect(await owner.submit(requested, change)).toMatchObject({ status: 303 });
    expect(await permissions()).toEqual({ name: 'Clerk', permissions: ['org.read'] });
  });
});

describe('the last owner', () => {
  it('cannot leave, be removed or suspended, or lose the role, and the page explains why', async () => {
    const t = await setupMembers();
    const owner = t.http(t.ada);
    const self = t.at(`/members/person/${t.ada.personId}`);
    const paths = [
      t.at('/leave'),
      `${self}/remove`,
      `${self}/suspend`,
      `${self}/roles/${await roleId(t, 'owner')}/remove`,
    ];
    const second = await t.enrol({ orgId: t.orgId });
    const opened = await Promise.all(paths.map((path) => owner.get(path)));
    const left = await t.http(second).submit(t.at('/leave'), t.at('/leave'));
    expect(left).toMatchObject({ status: 303, to: '/' });
    expect(await readStatus(t, t.orgId, second.personId)).toBe('left');
    for (const [index, path] of paths.entries()) {
      const rejected = await owner.submit(opened[index] ?? '', path);
      expect([path, rejected.status]).toEqual([path, 422]);
      const page = await owner.get(path);
      for (const { text } of [rejected, page])
        expect(readText(text)).toContain('The last active owner can’t leave or lose');
      expect(page.text).not.toContain(`action="${path}"`);
    }
  });

  it('remains when two owners leave at once', async () => {
    const t = await setupMembers();
    const second = await t.enrol({ orgId: t.orgId });
    const people = [t.ada, second].map((person) => t.http(person));
    const opened = await Promise.all(people.map((person) => person.get(t.at('/leave'))));
    const sent = await Promise.all(people.map((person, index) => person.submit(opened[index] ?? '', t.at('/leave'))));
    expect(sent.map(({ status }) => status).sort()).toEqual([303, 422]);
  });
});

it('a member whose roles show neither members nor roles can still leave', async () => {
  const t = await setupMembers();
  const bo = await t.enrol({ orgId: t.orgId, permissions: ['org.read'] });
  const visitor = t.http(bo);
  expect((await visitor.get('/account')).text).toContain(t.at('/leave'));
  expect(await visitor.submit(t.at('/leave'), t.at('/leave'))).toMatchObject({ status: 303, to: '/' });
  expect(await readStatus(t, t.orgId, bo.personId)).toBe('left');
});

it('an administrator can change members, but no owner', async () => {
  const t = await setupMembers();
  const admin = t.http(await t.enrol({ orgId: t.orgId, roleKey: 'admin' }));
  await t.enrol({ orgId: t.orgId }); // a second owner: the last one's pages have no form
  expect(await admin.submit(`${t.person}/change`, `${t.person}/change`, { name: 'Frida O.', title: '' })).toMatchObject(
    { status: 303 },
  );
  const owner = t.at(`/members/person/${t.ada.personId}`);
  expect(readText((await admin.get(owner)).text)).toContain('Only owners can edit owners.');
  for (const path of ['/change', '/suspend', '/remove', `/roles/${await roleId(t, 'owner')}/remove`]) {
    const rejected = await admin.submit(owner + path, owner + path, { name: 'Mallory', title: '' });
    expect([path, rejected.status]).toEqual([path, 422]);
    expect(readText(rejected.text)).toContain('Only an owner');
  }
  const promoted = await admin.submit(t.person, `${t.person}/roles`, { roleId: await roleId(t, 'owner') });
  expect(promoted.status).toBe(422);
});

describe('a custom role', () => {
  it('is created, changed and deleted with an audit entry each, never exceeds its creator, and cannot be deleted while it has members', async () => {
    const t = await setupMembers();
    const bo = await t.enrol({
      orgId: t.orgId,
      permissions: ['org.read', 'org.roles.read', 'org.roles.manage', 'org.clients.read'],
    });
    const visitor = t.http(bo);
    const path = t.at('/members/roles/new');
    const typed = {
      name: 'Intake',
      description: 'Front desk',
      key: '',
      permissions: ['org.clients.read', 'org.seats.manage'],
    };
    const form = await visitor.get(path);
    expect(readText(form.text)).toMatch(/org\.seats\.manage .{0,100}You don’t have this permission/);
    expect(form.text).toMatch(/value="org\.seats\.manage"[^>]* disabled/);
    const rejected = await visitor.submit(form, path, typed);
    expect([rejected.status, readText(rejected.text)]).toEqual([
      422,
      expect.stringContaining('You can’t assign permissions that you don’t have: org.seats.manage'),
    ]);
    const made = await visitor.submit(path, path, { ...typed, permissions: ['org.clients.read'] });
    expect(made.status).toBe(303);
    const role = made.to ?? '';
    expect(
      await visitor.submit(`${role}/change`, `${role}/change`, {
        name: 'Front desk',
        description: '',
        permissions: ['org.read', 'org.clients.read'],
      }),
    ).toMatchObject({ status: 303 });
    expect(readText((await visitor.get(role)).text)).toMatch(
      /Front desk.*intake.*Members 0.*org\.read.*org\.clients\.read/,
    );

    await t.http(t.ada).submit(t.person, `${t.person}/roles`, { roleId: role.split('/').at(-1) ?? '' });
    const held = await visitor.post(`${role}/delete`, hiddenFields((await visitor.get(path)).text, path));
    expect([held.status, readText(held.text)]).toEqual([422, expect.stringContaining('One member has this role')]);
    const take = `${t.person}/roles/${role.split('/').at(-1)}/remove`;
    await t.http(t.ada).submit(take, take);
    expect(await visitor.submit(role, `${role}/delete`)).toMatchObject({ status: 303, to: t.at('/members/roles') });
    expect((await visitor.get(role)).status).toBe(404);
    for (const action of ['role.create', 'role.change', 'role.delete'])
      expect(await lines(t, t.orgId, action)).toMatchObject([{ person: bo.personId }]);
  });

  it('keeps permissions that the member who renames it does not hold', async () => {
    const t = await setupMembers();
    const bo = await t.enrol({ orgId: t.orgId, permissions: ['org.read', 'org.roles.read', 'org.roles.manage'] });
    const change = t.at(`/members/roles/${t.creator.roleId}/change`);
    const form = await t.http(bo).get(change);
    const boxes = form.text.match(/<input type="checkbox"[^>]*>/g) ?? [];
    const checkbox = boxes.filter((box) => /\bchecked\b/.test(box));
    expect(checkbox.map((box) => /value="([^"]+)"/.exec(box)?.[1])).toEqual(['org.read', 'org.clients.read']);
    // A browser does not send a disabled box, and the role would lose a ticked permission.
    expect(checkbox.filter((box) => box.includes('disabled'))).toEqual([]);
    expect(readText(form.text)).toContain('you can’t add it again');
  });
});

describe('a hostile browser', () => {
  it('sees names of HTML, of 10,000 characters and of any direction as text, and cannot enter such a long one', async () => {
    const t = await setupMembers();
    const evil = '<script>alert(1)</script>"onload="x';
    for (const name of [evil, 'א'.repeat(10_000), '\u202Egnp.exe', '=cmd|x'])
      await t.make.member({ orgId: t.orgId, name, roleKey: 'member' });
    await t.owner.pool.query(`update role set name = $2, description = $2 where id = $1`, [
      t.creator.roleId,
      evil.repeat(200),
    ]);
    const owner = t.http(t.ada);
    for (const path of ['/members', '/members/roles', `/members/roles/${t.creator.roleId}`, '/members/invite']) {
      const page = await owner.get(t.at(path));
      expect(page.status).toBe(200);
      expect(page.text).not.toContain('<script>alert');
      expect(page.text.length).toBeLessThan(100_000);
    }
    const found = /href="([^"]*)"><bdi>א/.exec((await owner.get(t.at('/members'))).text)?.[1] ?? '';
    expect((await owner.get(found)).text).toContain('א'.repeat(10_000));
    const long = await owner.submit(`${found}/change`, `${found}/change`, { name: 'n'.repeat(10_000), title: '' });
    expect([long.status, readText(long.text)]).toEqual([422, expect.stringContaining('Enter at most 200 characters.')]);
  });

  it('opens members whose imported ids contain any character', async () => {
    const t = await setupMembers();
    const owner = t.http(t.ada);
    for (const id of ['a/b?c=d#e', '..', 'roles', '~tilde', 'ünï "quoted" <b>', 'x'.repeat(255), '日'.repeat(255)]) {
      await t.owner.pool.query('insert into person (id) values ($1)', [id]);
      await t.owner.pool.query(
        `insert into membership (organization_id, person_id, name, email, status)
          values ($1, $2, 'Imported', 'i@example.org', 'active')`,
        [t.orgId, id],
      );
      const list = await owner.get(t.at('/members?q=Imported'));
      const path = unescaped(/href="([^"]*\/members\/person\/[^"]*)"/.exec(list.text)?.[1] ?? '');
      expect([id, (await owner.get(path)).status]).toEqual([id, 200]);
      expect(await owner.submit(`${path}/remove`, `${path}/remove`)).toMatchObject({ status: 303 });
      expect(await readStatus(t, t.orgId, id)).toBe('left');
    }
    for (const odd of ['~', '~AAAA', '~%00', '%00', '~/w'])
      expect((await owner.get(t.at(`/members/person/${odd}`))).status).toBe(404);
  });
});

it('the list of members is complete and in order on all pages, also with equal names', async () => {
  const t = await setupMembers();
  await t.owner.pool.query(
    `with made as (insert into person (id) select 'usr_many_' || n from generate_series(1, 130) n returning id)
     insert into membership (organization_id, person_id, name, email, status)
       select $1, id, (array['bo', 'Bo', 'Chloé'])[1 + length(id) % 3], 'x@example.org', 'active' from made`,
    [t.orgId],
  );
  const owner = t.http(t.ada);
  const seen: string[] = [];
  let path: string | undefined = t.at('/members');
  while (path !== undefined) {
    const { text }: { text: string } = await owner.get(path);
    seen.push(...[...text.matchAll(/\/members\/person\/([\w.-]+)"/g)].map(([, id = '']) => id));
    path = unescaped(/rel="next" href="([^"]*)"/.exec(text)?.[1] ?? '') || undefined;
  }
  const { rows } = await t.owner.pool.query<{ id: string }>(
    `select person_id as id from membership where organization_id = $1 order by name collate "und-x-icu", person_id`,
    [t.orgId],
  );
  expect(seen).toEqual(rows.map(({ id }) => id));
});

async function roleId({ owner }: ConsoleInstallation, key: string): Promise<string> {
  const { rows } = await owner.pool.query('select id from role where organization_id is null and key = $1', [key]);
  return rows[0]?.id ?? '';
}
