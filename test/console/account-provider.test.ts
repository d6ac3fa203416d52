/** The page of one's account in a session that began at a provider, and the link to it. */
import { expect, it } from 'vitest';
import { type HttpVisitor, hiddenFields, unescaped } from '#test/http-visitor.ts';
import { addProvider, atSecondFactor, signInAtProvider, startProvider } from './at-provider.ts';
import { type ConsoleInstallation, type Enrolled, goodPassword, shareConsole } from './setup.ts';

const shared = shareConsole();

async function setup(isElsewhere: boolean) {
  const t = shared();
  const member = await t.enrol();
  const provider = await startProvider(t, member.orgId);
  await addProvider(t, provider, member);
  const other = await t.enrol();
  await t.owner.pool.query(`update organization set name = 'Quartz Mediation' where id = $1`, [other.orgId]);
  if (isElsewhere) {
    await t.make.member({ orgId: other.orgId, userId: member.personId });
    await addProvider(t, { issuer: 'https://login.quartz.example.com' }, { ...other, personId: member.personId });
  }
  return { ...t, member, other, visitor: await signInAtProvider(t, provider, member) };
}

const token = async (visitor: HttpVisitor) =>
  hiddenFields((await visitor.get('/account')).text, '/sign-out')._token ?? '';

async function countFactors(t: ConsoleInstallation, { personId }: Enrolled) {
  const { rows } = await t.owner.pool.query(
    `select (select count(*)::int from second_factor where person_id = $1) as factors,
       (select password_hash from sign_in where person_id = $1) as password`,
    [personId],
  );
  return rows[0];
}

it('a confined session shows nothing of the other organization and no form that it may not send', async () => {
  const t = await setup(true);
  const { text } = await t.visitor.get('/account');
  expect(unescaped(text)).toContain('This session began at an organization’s provider, and you sign in to other');
  for (const hidden of ['Quartz', 'Change password', 'Add a passkey', 'Create recovery codes', 'login.quartz'])
    expect(text).not.toContain(hidden);
  expect(text).toContain(`/account/providers/${t.member.orgId}/unlink`);
  expect((await t.visitor.get('/account/password')).text).not.toContain('name="newPassword"');

  const before = await countFactors(t, t.member);
  const _token = await token(t.visitor);
  const newPassword = 'copper-lantern-bridge-sparrow';
  const forms: [path: string, fields: Record<string, string>][] = [
    ['/account/password', { oldPassword: goodPassword, newPassword }],
    ['/account/factors/totp/start', {}],
    ['/account/factors/passkey/start', {}],
    ['/account/recovery-codes', {}],
  ];
  for (const [path, fields] of forms) {
    const rejected = await t.visitor.post(path, { _token, _form: crypto.randomUUID(), ...fields });
    expect([path, rejected.status, rejected.text.includes('sign in with your password.')]).toEqual([path, 422, true]);
  }
  const statuses = [];
  for (const act of ['link', 'unlink'])
    statuses.push((await t.visitor.post(`/account/providers/${t.other.orgId}/${act}`, { _token })).status);
  expect(statuses).toEqual([404, 422]);
  expect(await countFactors(t, t.member)).toEqual(before);
});

it('a session that is not confined has all forms, and sets a first password', async () => {
  const t = await setup(false);
  await t.owner.pool.query('update sign_in set password_hash = null where person_id = $1', [t.member.personId]);
  expect((await t.visitor.get('/account')).text).toContain('Set a password');
  const set = await t.visitor.submit('/account/password', '/account/password', {
    newPassword: 'copper-lantern-bridge-sparrow',
  });
  expect(set.to).toBe('/account');
});

it('a session of a provider joins no other organization, and says how its person does', async () => {
  const t = await setup(false);
  const { orgId } = await t.make.member({ orgId: t.other.orgId, userId: t.member.personId, status: 'invited' });
  const link = await t.link({ orgId, userId: t.member.personId });
  const page = await t.visitor.openLink(link);
  expect(unescaped(page.text)).toContain('This session began at another organization’s provider. To join, sign out');
  const joined = await t.visitor.post('/enrol/join', { _token: await token(t.visitor) });
  expect([joined.status, joined.text.includes('sign in with your password.')]).toEqual([422, true]);
  const own = t.http();
  await own.submit('/sign-in', '/sign-in', { email: t.member.email, password: goodPassword });
  await own.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(t.member) });
  await own.openLink(link);
  expect((await own.submit('/enrol/step', '/enrol/join')).to).toBe(`/o/${orgId}`);
});

it('a person sees when an account was linked and unlinks it with a fresh second factor, which ends its sessions', async () => {
  const t = await setup(false);
  const own = t.http();
  await own.submit('/sign-in', '/sign-in', { email: t.member.email, password: goodPassword });
  await own.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(t.member) });
  const path = `/account/providers/${t.member.orgId}/unlink`;
  expect((await own.get('/account')).text).toMatch(/Linked<\/span>\s*<time/);
  t.pass(6 * 60_000);
  expect((await own.submit('/account', path)).text).toContain('Confirm your identity');
  const confirmed = await own.submit('/account', path, { factorCode: t.nextCode(t.member) });
  expect(confirmed.to).toBe('/account');
  expect((await own.get('/account')).text).toContain('Not linked');
  expect((await t.visitor.get('/account')).to).toContain('/sign-in');
  const log = await own.get(`/o/${t.member.orgId}/audit-log?action=sign_in.unlink_provider`);
  expect(log.text).toContain('Unlinked their account at an organization’s provider');
});

it('who unlinks the account of this session is signed out, and cannot unlink the only way to sign in', async () => {
  const t = await setup(false);
  const path = `/account/providers/${t.member.orgId}/unlink`;
  await t.owner.pool.query('update sign_in set password_hash = null where person_id = $1', [t.member.personId]);
  const only = await t.visitor.submit('/account', path);
  expect([only.status, unescaped(only.text).includes('your only way to sign in')]).toEqual([422, true]);
  await t.visitor.submit('/account/password', '/account/password', { newPassword: goodPassword });
  const unlinked = await t.visitor.submit('/account', path);
  expect(unlinked.to).toBe('/sign-in');
  expect((await t.visitor.get('/account')).to).toContain('/sign-in');
});
