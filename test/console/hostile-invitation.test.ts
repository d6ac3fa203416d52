/** Owners and administrators who misuse invitations and their links. */
import { describe, expect, it } from 'vitest';
import { cookieName } from '../../apps/console/web/cookies.ts';
import { secondsLeft } from './http-visitor.ts';
import { goodPassword, shareConsole } from './setup.ts';

const shared = shareConsole();

const timeout = 60_000;
const atSecondFactor = '/sign-in/second-factor';

/** Returns a page without the parts that differ between two renderings or two people. */
const plain = (text: string, { personId, email }: { personId: string; email: string }) =>
  text
    .replace(/name="_(token|form)" value="[^"]*"/g, '')
    .replace(/\/enrol#[\w-]{43}/g, '/enrol#TOKEN')
    .replace(/<time[^>]*>[^<]*<\/time>/g, 'TIME')
    .replaceAll(email, 'ADDRESS')
    .replaceAll(encodeURIComponent(email), 'ADDRESS')
    .replaceAll(personId, 'PERSON');

describe('an owner who invites a member of another organization', () => {
  it('sees the same pages as for an unknown address', {
    timeout,
  }, async () => {
    const t = shared();
    const [mallory, victim] = [await t.enrol(), await t.enrol()];
    const owner = t.http(mallory);
    const at = (rest: string) => `/o/${mallory.orgId}${rest}`;
    const pages: string[][] = [];
    for (const email of [victim.email, 'unknown@example.org']) {
      const typed = { email, name: 'A Name', title: '', roles: ['member'] };
      const invited = await owner.submit(at('/members/invite'), at('/members/invite'), typed);
      const personId = /\/members\/person\/([\w-]+)/.exec(invited.text)?.[1] ?? '';
      const who = { personId, email };
      const member = await owner.get(at(`/members/person/${personId}`));
      const listed = await owner.get(at(`/members?q=${encodeURIComponent(email)}`));
      const renewed = await owner.submit(member, at(`/members/person/${personId}/link`));
      pages.push([invited, member, listed, renewed].map(({ text }) => plain(text, who)));
    }
    const [ofVictim, ofNobody] = pages;
    expect(ofVictim).toEqual(ofNobody);

    const theirs = t.http();
    await theirs.submit('/sign-in', '/sign-in', { email: victim.email, password: 'wrong wrong wrong' });
    await theirs.submit('/sign-in', '/sign-in', { email: victim.email, password: goodPassword });
    await theirs.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(victim) });
    const { rows } = await t.owner.pool.query<{ action: string }>(
      'select action from activity where organization_id = $1 and person_id = $2',
      [mallory.orgId, victim.personId],
    );
    expect(rows).toEqual([]);
    const elsewhere = await t.owner.pool.query(
      `select count(*)::int as lines from activity where organization_id = $1 and action like 'sign_in.%'
        and person_id = $2`,
      [victim.orgId, victim.personId],
    );
    expect(elsewhere.rows[0].lines).toBeGreaterThan(3); // in their own organization, each is a member
  });
});

describe('an administrator who keeps an enrolment link', () => {
  it('cannot use it after its member has become an owner', { timeout }, async () => {
    const t = shared();
    const ada = await t.enrol();
    const admin = await t.enrol({ orgId: ada.orgId, roleKey: 'admin' });
    const at = (rest: string) => `/o/${ada.orgId}${rest}`;
    const typed = { email: 'bob@example.org', name: 'Bob', title: '', roles: ['member'] };
    const invited = await t.http(admin).submit(at('/members/invite'), at('/members/invite'), typed);
    const link = /(\/enrol#[\w-]{43})/.exec(invited.text)?.[1] ?? '';
    const bob = /\/members\/person\/(usr_\w+)/.exec(invited.text)?.[1] ?? '';
    const thief = t.http();
    const opened = await thief.openLink(link);
    const chosen = await thief.submit(opened, '/enrol/password', { password: goodPassword });
    expect(chosen).toMatchObject({ status: 303, to: '/enrol/step' });
    const choice = await thief.get('/enrol/step');

    const { rows } = await t.owner.pool.query(`select id from role where organization_id is null and key = 'owner'`);
    const owner = t.http(ada);
    const path = at(`/members/person/${bob}`);
    const given = await owner.submit(path, `${path}/roles`, { roleId: rows[0].id });
    expect(given.status).toBe(303);
    expect((await thief.submit(choice, '/enrol/totp/start')).text).toContain('This link has expired');
    expect((await t.http().openLink(link)).status).toBe(410);
    // The owner sees that there is no valid link, and creates one.
    expect((await owner.get(path)).text).toContain('Create an invitation link and send it to them');
    const created = await owner.submit(path, `${path}/link`);
    const renewed = /(\/enrol#[\w-]{43})/.exec(created.text)?.[1] ?? '';
    expect((await t.http().openLink(renewed)).text).toContain('/enrol/password');
  });
});

describe('a browser that its person has signed in with', () => {
  it('has a 30-day cookie that is HttpOnly, Secure and of this host, and that opens nothing', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http();
    const name = cookieName('browser', t.origin);
    const first = await visitor.submit('/sign-in', '/sign-in', { email: ada.email, password: goodPassword });
    expect(first.cookies.join()).not.toContain(name);
    const second = await visitor.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(ada) });
    const cookie = second.cookies.find((line) => line.startsWith(name));
    expect(cookie).toMatch(
      /^__Host-org-api-browser-\d+=[\w-]{43}\.[\w-]{22}; path=\/; expires=[^;]*; samesite=lax; secure; httponly$/,
    );
    expect(Math.round(secondsLeft(cookie ?? '') / 86_400)).toBe(30);
    const token = visitor.jar.get(name) ?? '';
    for (const header of [`${name}=${token}`, `${cookieName('session', t.origin)}=${token}`])
      expect(await t.http().get('/account', { headers: { cookie: header } })).toMatchObject({ status: 303 });
    // A step-up does not confirm it, and signing out does not undo it.
    await visitor.submit('/account', '/sign-out');
    expect(visitor.jar.get(name)).toBe(token);
  });

  it('can sign in while others keep failing; an unknown browser must wait', {
    timeout,
  }, async () => {
    const t = shared();
    const ada = await t.enrol();
    const home = t.http();
    await home.submit('/sign-in', '/sign-in', { email: ada.email, password: goodPassword });
    await home.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(ada) });
    await home.submit('/account', '/sign-out');
    const attack = (step: string) =>
      t.owner.pool.query(
        `insert into sign_in_attempt (subject, network, at) select sha256(convert_to($1, 'UTF8') || '\\x00' ||
          convert_to($2, 'UTF8')), format('198.51.%s.1', n)::inet::cidr, $3
         from generate_series(1, 110) as n`,
        [step, step === 'password' ? ada.email : ada.personId, t.now()],
      );
    await attack('password');
    await attack('factor');
    const typed = { email: ada.email, password: goodPassword };
    expect((await t.http().submit('/sign-in', '/sign-in', typed)).status).toBe(429);
    expect(await home.submit('/sign-in', '/sign-in', typed)).toMatchObject({ to: atSecondFactor });
    expect(await home.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(ada) })).toMatchObject({
      to: '/',
    });
  });
});
