/**
 * A person who enrolled for one organization, and whom an import has made an active owner of
 * another.
 */
import { expect, it } from 'vitest';
import { unescaped } from '#test/http-visitor.ts';
import { codeAt, goodPassword, setupConsole } from './setup.ts';

async function setupUnconfirmed() {
  const t = await setupConsole();
  const person = await t.enrol({ name: 'Ada Rivers' });
  const boss = await t.enrol({ name: 'Bo Rivers' });
  await t.make.member({ orgId: boss.orgId, userId: person.personId, confirmed: false });
  await t.owner.pool.query(`update organization set name = 'Second Firm' where id = $1`, [boss.orgId]);
  return { ...t, person, boss, second: boss.orgId };
}

it('a member without a confirmed sign-in sees why and what to do, and not the organization’s name', async () => {
  const t = await setupUnconfirmed();
  const visitor = t.http(t.person);
  for (const rest of ['', '/keys', '/members', '/audit-log', `/leave`]) {
    const page = await visitor.get(`/o/${t.second}${rest}`);
    expect([rest, page.status]).toEqual([rest, 403]);
    expect(page.text).toContain('Your sign-in is not confirmed here');
    expect(page.text).toContain('Ask the person who manages its members for a link');
    expect(page.text).not.toContain('Second Firm');
  }
  for (const path of ['/', '/account']) {
    const page = await visitor.get(path);
    expect(page.status).toBe(200);
    expect(page.text).toContain('One organization is not listed, because your sign-in is not confirmed there.');
    expect(page.text).not.toContain('Second Firm');
    expect(page.text).not.toContain(t.second);
  }
  const nowhere = await visitor.get(`/o/${crypto.randomUUID()}`);
  expect(nowhere.status).toBe(404);
});

it('a link that an owner creates confirms the sign-in', async () => {
  const t = await setupUnconfirmed();
  const owner = t.http(t.boss);
  const path = `/o/${t.second}/members/person/${t.person.personId}`;
  const page = await owner.get(path);
  expect(page.text).toContain('This member can’t sign in yet');
  const made = await owner.submit(page, `${path}/link`);
  const link = unescaped(/http:\/\/localhost:\d+(\/enrol#[\w-]+)/.exec(made.text)?.[1] ?? '');

  const visitor = t.http();
  const opened = await visitor.openLink(link);
  const toSignIn = unescaped(/href="(\/sign-in[^"]*)"/.exec(opened.text)?.[1] ?? '');
  t.pass(30_000);
  const half = await visitor.submit(toSignIn, '/sign-in', {
    email: t.person.email,
    password: goodPassword,
  });
  const factorCode = codeAt(t.person.totpSecret, t.now());
  const full = await visitor.submit(half.to ?? '', '/sign-in/second-factor', { factorCode });
  const joined = await visitor.submit(full.to ?? '', '/enrol/join');
  expect(joined.to).toBe(`/o/${t.second}`);
  expect((await visitor.get(`/o/${t.second}`)).text).toContain('Second Firm');
  const log = await owner.get(`/o/${t.second}/audit-log`);
  expect(log.text).toContain('Confirmed their sign-in with a link');
  expect((await owner.get(path)).text).not.toContain('This member can’t sign in yet');
});
