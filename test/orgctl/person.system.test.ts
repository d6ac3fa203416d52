/** `orgctl person …`: operators' commands for a person's sign-in. Source: OWASP ASVS 5.0, 7.4.5. */
import { expect, it } from 'vitest';
import { completeEnrolment, setEnrolmentPassword, startEnrolmentTotp } from '#domain/identity/accept-link.ts';
import { createEnrolment } from '#domain/identity/create-link.ts';
import { findSession } from '#domain/identity/sessions.ts';
import { signIn } from '#domain/identity/sign-in.ts';
import { callOrgctl, setupOrgctl } from '#test/orgctl.ts';
import { codeAt, goodPassword, settings, visitor } from '#test/people.ts';

const timeout = 60_000;

async function setupPerson() {
  const t = await setupOrgctl();
  const db = t.owner;
  const enrol = async (organizationId: string, email: string) => {
    const { token } = await createEnrolment(db, { organizationId, email, by: 'orgctl' });
    await setEnrolmentPassword(db, { token, password: goodPassword });
    const { secret } = await startEnrolmentTotp(db, token, settings);
    const factor = { kind: 'totp', code: codeAt(secret, new Date()) } as const;
    return completeEnrolment(db, { token, factor, visitor }, settings);
  };
  const orgId = await t.make.organization({ name: 'Squatters' });
  const person = await enrol(orgId, 'Victim@firm.example');
  const enter = (email: string) => signIn(db, { email, password: goodPassword, visitor });
  const session = (token: string) => findSession(db, token, new Date());
  const entries = async () =>
    (await t.owner.pool.query('select action, person_id as person, detail from audit_entry order by at, id')).rows;
  return { ...t, db, enrol, orgId, person, enter, session, entries };
}

it('end-sessions ends all sessions and keeps the sign-in; a person who never signed in gets another message', {
  timeout,
}, async () => {
  const t = await setupPerson();
  await t.enter('victim@firm.example');
  const shown = await t.orgctl('person', 'show', '--email', 'victim@FIRM.example', '--json');
  expect(shown).toMatchObject({ code: 0, stderr: '' });
  expect(shown.json()).toMatchObject({
    personId: t.person.personId,
    email: 'victim@firm.example',
    sessions: 2,
    memberships: [{ organizationId: t.orgId, organizationName: 'Squatters', status: 'active', accepted: true }],
  });
  const done = await t.orgctl('person', 'end-sessions', '--email', ' victim@firm.example', '--json');
  expect(done).toMatchObject({ code: 0, stderr: '' });
  expect(done.json()).toEqual({ personId: t.person.personId, ended: 2 });
  expect(await t.session(t.person.token)).toBeNull();
  const { rows } = await t.owner.pool.query(
    'select (select count(*)::int from console_session) as sessions, (select count(*)::int from ' +
      'known_browser) as browsers',
  );
  expect(rows).toEqual([{ sessions: 0, browsers: 0 }]);
  expect((await t.entries()).at(-1)).toEqual({
    action: 'session.end_all',
    person: null,
    detail: { memberId: t.person.personId, ended: 2 },
  });
  await t.enter('victim@firm.example');
  const text = await t.orgctl('person', 'end-sessions', '--email', 'victim@firm.example');
  expect(text.stdout).toContain('One session ended.');
  for (const verb of ['show', 'end-sessions', 'free-address'])
    expect(await t.orgctl('person', verb, '--email', 'nobody@firm.example')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: 'No person signs in with this address in this region.\n',
    });
  expect(await t.orgctl('person', 'end-sessions')).toMatchObject({ code: 2 });
});

it('free-address frees an address that another person enrolled with', {
  timeout,
}, async () => {
  const t = await setupPerson();
  const firm = await t.make.organization({ name: 'Firm' });
  const own = await t.make.member({ orgId: firm });
  await t.owner.pool.query(`update membership set email = 'victim@firm.example' where person_id = $1`, [own.userId]);
  const invite = () => t.orgctl('person', 'invite', '--org', firm, '--email', 'victim@firm.example', '--json');
  expect((await invite()).stderr).toContain('orgctl person free-address');

  // An app's login has no right to do this.
  const asConsole = { ...t.env, DATABASE_URL: t.database.urls.console };
  const rejected = await callOrgctl(asConsole, ['person', 'free-address', '--email', 'victim@firm.example']);
  expect(rejected).toMatchObject({ code: 1, stdout: '' });
  expect(rejected.stderr).toContain('lacks a permission');
  expect(await t.session(t.person.token)).not.toBeNull();

  const freed = await t.orgctl('person', 'free-address', '--email', 'victim@firm.example', '--json');
  expect(freed).toMatchObject({ code: 0, stderr: '' });
  expect(freed.json()).toEqual({ personId: t.person.personId, ended: 1 });
  expect(await t.session(t.person.token)).toBeNull();
  await expect(t.enter('victim@firm.example')).rejects.toMatchObject({ reason: 'wrong_credentials' });
  expect((await t.entries()).at(-1)).toEqual({
    action: 'sign_in.free_address',
    person: null,
    detail: { memberId: t.person.personId },
  });
  const { rows } = await t.owner.pool.query('select status from membership where person_id = $1', [t.person.personId]);
  expect(rows).toEqual([{ status: 'active' }]);

  const { personId } = await t.enrol(firm, 'victim@firm.example');
  expect(personId).toBe(own.userId);
  await t.enter('victim@firm.example');
});

it('change-address gives a person another address, and never one that is in use', { timeout }, async () => {
  const t = await setupPerson();
  const other = await t.enrol(t.orgId, 'other@firm.example');
  const change = (to: string) =>
    t.orgctl('person', 'change-address', '--email', 'victim@firm.example', '--to', to, '--json');
  expect(await change('OTHER@firm.example')).toMatchObject({
    code: 1,
    stderr: 'Another person signs in with the new address.\n',
  });
  expect((await change('nobody')).stderr).toContain('Enter a complete email address');
  expect((await change(' new@firm.example ')).json()).toEqual({
    personId: t.person.personId,
    email: 'new@firm.example',
  });
  expect(await t.session(t.person.token)).toMatchObject({ email: 'new@firm.example' });
  await t.enter('new@firm.example');
  expect((await t.enter('other@firm.example')).personId).toBe(other.personId);
  expect((await t.entries()).filter(({ action }) => action === 'sign_in.change_address')).toEqual([
    { action: 'sign_in.change_address', person: null, detail: { memberId: t.person.personId } },
  ]);
});

it('confirm opens an organization to the sign-in of an active member, once, and show lists where it is open', {
  timeout,
}, async () => {
  const t = await setupPerson();
  const firm = await t.make.organization({ name: 'Firm' });
  await t.make.member({ orgId: firm, userId: t.person.personId, confirmed: false });
  const open = async () => (await t.session(t.person.token))?.memberships.map((one) => one.organizationName);
  const email = ['--email', 'victim@firm.example'];
  const shown = async () =>
    (await t.orgctl('person', 'show', ...email, '--json'))
      .json<{ memberships: { organizationName: string; confirmed: boolean }[] }>()
      .memberships.map(({ organizationName, confirmed }) => [organizationName, confirmed]);
  expect([await open(), await shown()]).toEqual([
    ['Squatters'],
    [
      ['Firm', false],
      ['Squatters', true],
    ],
  ]);
  const confirm = (...more: string[]) => t.orgctl('person', 'confirm', '--org', firm, ...email, ...more);
  const done = await confirm('--json');
  expect(done).toMatchObject({ code: 0, stderr: '' });
  expect(done.json()).toEqual({ personId: t.person.personId, confirmed: true });
  expect(await open()).toEqual(['Firm', 'Squatters']);
  expect((await confirm()).stdout).toContain('could already enter the organization');
  expect((await t.entries()).filter(({ action, person }) => action === 'sign_in.confirm' && person === null)).toEqual([
    { action: 'sign_in.confirm', person: null, detail: { memberId: t.person.personId, by: 'orgctl' } },
  ]);
  const stranger = await t.make.organization({ name: 'Stranger' });
  const rejected = await t.orgctl('person', 'confirm', '--org', stranger, ...email);
  expect(rejected).toMatchObject({ code: 1, stdout: '' });
  expect(rejected.stderr).toContain('is not an active member of the organization');
});
