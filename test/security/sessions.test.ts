/** Cookies of sessions and browsers that are planted, altered or stolen, and invitations that are misused. */
import { describe, expect, it } from 'vitest';
import { factorSubject, passwordSubject } from '#domain/identity/sign-in-failures.ts';
import { hiddenFields, secondsLeft, type Visited } from '#test/http-visitor.ts';
import { blockSubject } from '#test/people.ts';
import { cookieName } from '../../apps/console/middleware/cookies.ts';
import { codeAt, type Enrolled, goodPassword, shareConsole } from '../console/setup.ts';

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

/** Returns what a link's holder sees up to the last step, signed in or not, and its response. */
async function openAll(t: ReturnType<typeof shared>, page: string, signedIn: Pick<Enrolled, 'sessionToken'>) {
  const link = /\/enrol#[\w-]{43}/.exec(page)?.[0] ?? '';
  const first = await t.http(signedIn).openLink(link);
  const visitor = t.http();
  const opened = await visitor.openLink(link);
  const chosen = await visitor.submit(opened, '/enrol/password', { password: goodPassword });
  const choice = await visitor.get(chosen.to ?? '');
  const app = await visitor.submit(choice, '/enrol/totp/start');
  const { secret = '' } = hiddenFields(app.text, '/enrol/totp');
  const spaced = secret.match(/.{1,4}/g)?.join(' ') ?? '';
  const finish = () => visitor.submit(app, '/enrol/totp', { code: codeAt(secret, t.now()) });
  const pages = [first, opened, chosen, choice, app].map(({ status, to, text }) =>
    `${status} ${to} ${text}`
      .replaceAll(secret, 'SECRET')
      .replaceAll(spaced, 'SECRET')
      .replace(/<svg class="qr[\s\S]*?<\/svg>/g, 'QR'),
  );
  return { pages, finish };
}

describe('an owner who invites a member of another organization', () => {
  it('sees the same pages as for an unknown address, and so does the link’s holder, up to its last step', {
    timeout,
  }, async () => {
    const t = shared();
    const [mallory, victim] = [await t.enrol(), await t.enrol()];
    const notEnrolled = `${(await t.make.member()).userId}@example.org`;
    const owner = t.http(mallory);
    const at = (rest: string) => `/o/${mallory.orgId}${rest}`;
    const pages: string[][] = [];
    const lines: unknown[] = [];
    const last: (() => Promise<Visited>)[] = [];
    for (const email of [victim.email, notEnrolled, 'unknown@example.org']) {
      const typed = { email, name: 'A Name', title: '', roles: ['member'] };
      const invited = await owner.submit(at('/members/invite'), at('/members/invite'), typed);
      const personId = /\/members\/person\/([\w-]+)/.exec(invited.text)?.[1] ?? '';
      const who = { personId, email };
      const member = await owner.get(at(`/members/person/${personId}`));
      const listed = await owner.get(at(`/members?q=${encodeURIComponent(email)}`));
      const renewed = await owner.submit(member, at(`/members/person/${personId}/link`));
      const opened = await openAll(t, renewed.text, mallory);
      const seen = [invited, member, listed, renewed].map(({ status, text }) => `${status} ${text}`);
      pages.push([...seen, ...opened.pages].map((text) => plain(text, who)));
      last.push(opened.finish);
      const ofMember = `select action, person_id, replace(detail::text, $2, 'PERSON') as detail from audit_entry
        where organization_id = $1 and detail ->> 'memberId' = $2 order by at, id`;
      lines.push((await t.owner.pool.query(ofMember, [mallory.orgId, personId])).rows);
    }
    const [ofVictim, ofMember, ofNobody] = pages;
    expect(ofVictim).toEqual(ofNobody);
    expect(ofMember).toEqual(ofNobody);
    expect(lines[0]).toEqual(lines[2]);
    expect(lines[1]).toEqual(lines[2]);
    expect(ofNobody).toHaveLength(9);

    const theirs = t.http();
    await theirs.submit('/sign-in', '/sign-in', { email: victim.email, password: 'wrong wrong wrong' });
    await theirs.submit('/sign-in', '/sign-in', { email: victim.email, password: goodPassword });
    await theirs.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(victim) });
    const { rows } = await t.owner.pool.query<{ action: string }>(
      'select action from audit_entry where organization_id = $1 and person_id = $2',
      [mallory.orgId, victim.personId],
    );
    expect(rows).toEqual([]);
    const elsewhere = await t.owner.pool.query(
      `select count(*)::int as entries from audit_entry where organization_id = $1 and action like 'sign_in.%'
        and person_id = $2`,
      [victim.orgId, victim.personId],
    );
    expect(elsewhere.rows[0].entries).toBeGreaterThan(3); // in their own organization, each is a member

    // The last step signs a new person in, and changes nothing for one who signs in already.
    const [taken, ...free] = await Promise.all(last.map((finish) => finish()));
    expect(taken?.status).toBe(422);
    expect(taken?.text).toContain('If you can already sign in, sign in and open the link again.');
    for (const { text } of free) expect(text).toContain('You’re all set');
  });
});

describe('a session', () => {
  it.each(['an invented token', 'another person’s token'])(
    'is never a planted one: %s is replaced at each step',
    async (planted) => {
      const t = shared();
      const [ada, eve] = [await t.enrol(), await t.enrol()];
      const token = planted === 'another person’s token' ? eve.sessionToken : 'x'.repeat(43);
      const name = cookieName('session', t.origin);
      const victim = t.http({ sessionToken: token });
      const given = [token];
      // The sign-in page redirects a person who is signed in, so the token comes from another page.
      const page = await victim.get(planted === 'another person’s token' ? '/account' : '/sign-in');
      const _token = /name="_token" value="([^"]*)"/.exec(page.text)?.[1] ?? '';
      const first = await victim.post('/sign-in', { email: ada.email, password: goodPassword, to: '', _token });
      expect(first.to).toBe(atSecondFactor);
      given.push(victim.jar.get(name) ?? '');
      await victim.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(ada) });
      given.push(victim.jar.get(name) ?? '');
      expect(new Set(given).size).toBe(3);
      for (const old of given.slice(0, 2))
        expect((await t.http({ sessionToken: old }).get('/account')).to).toMatch(/^\/sign-in/);
      expect((await victim.get('/account')).text).toContain(ada.email);
    },
  );

  it('is rejected with two cookies of its name, a part of its token, or an altered token', async () => {
    const t = shared();
    const [ada, bo] = [await t.enrol(), await t.enrol()];
    const name = cookieName('session', t.origin);
    const get = (cookie: string) => t.http().get('/account', { headers: { cookie } });
    expect((await get(`${name}=${ada.sessionToken}`)).status).toBe(200);
    for (const cookie of [
      `${name}=${ada.sessionToken}; ${name}=${bo.sessionToken}`,
      `${name}=${ada.sessionToken}; ${name}=${ada.sessionToken}`,
      `${name}=${ada.sessionToken.slice(0, 42)}`,
      `${name}=${ada.sessionToken}x`,
      `${name}=${ada.sessionToken.toLowerCase()}`,
      `${name}="${ada.sessionToken}"`,
      `${name.toLowerCase()}=${ada.sessionToken}`,
      `${name.replace('__Host-', '')}=${ada.sessionToken}`,
      `x${name}=${ada.sessionToken}`,
    ])
      expect([cookie, (await get(cookie)).status]).toEqual([cookie, 303]);
  });

  it('is kept, and a sign-in succeeds, whatever a neighboring host adds to the cookies', async () => {
    const t = shared();
    const ada = await t.enrol();
    const [session, visit] = [cookieName('session', t.origin), cookieName('visit', t.origin)];
    // A browser sends the cookies of a parent domain with the console's own.
    for (const planted of [
      `x${session}=1; x${visit}=1`,
      `__Secure-x=${session}=1; __Secure-y=${visit}=1`,
      `${session}x=1; ${session}`,
      `\u00a0${session}=1; \u0085${visit}=1`,
      `${session.replace('__Host-', '__host-')}=1`,
      `x="; ${session}`,
    ]) {
      const visitor = t.http();
      const as = (own: string) => ({ headers: { cookie: `${planted}; ${own}; ${planted}` } });
      expect((await visitor.get('/account', as(`${session}=${ada.sessionToken}`))).status, planted).toBe(200);
      const page = await visitor.get('/sign-in');
      const mark = `${visit}=${visitor.jar.get(visit)}`;
      const sent = await visitor.submit(page, '/sign-in', { email: ada.email, password: goodPassword }, as(mark));
      expect(sent.to, planted).toBe(atSecondFactor);
    }
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
      /^__Host-org-api-browser-\d+=[\w-]{90,450}; path=\/; expires=[^;]*; samesite=lax; secure; httponly$/,
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
    await blockSubject(t.db, passwordSubject(ada.email), t.now());
    await blockSubject(t.db, factorSubject(ada.personId), t.now());
    const typed = { email: ada.email, password: goodPassword };
    expect((await t.http().submit('/sign-in', '/sign-in', typed)).status).toBe(429);
    expect(await home.submit('/sign-in', '/sign-in', typed)).toMatchObject({ to: atSecondFactor });
    expect(await home.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(ada) })).toMatchObject({
      to: '/',
    });
  });
});
