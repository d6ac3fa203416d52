/** Forms submitted again, from another origin, or with a foreign cookie. */
import { describe, expect, it } from 'vitest';
import { hiddenFields } from '#test/http-visitor.ts';
import { cookieName } from '../../apps/console/middleware/cookies.ts';
import { routes } from '../../apps/console/routes.ts';
import { filledForms } from './hostile/forms.ts';
import { copyScenes } from './hostile/scene.ts';
import { fingerprintTables } from './hostile/tables.ts';
import { openForm, pathWith, requestOf, tokenOf } from './hostile/walk.ts';
import { goodPassword, setupConsole } from './setup.ts';

const copy = copyScenes('Harbor', 'Elsewhere');
const timeout = 180_000;
const forms = routes.filter(({ method, name }) => method === 'POST' && filledForms[name]);
const sentAlone = forms.filter(({ name }) => !filledForms[name]?.notAlone);
const signedInOnly = forms.filter(({ access }) => access === 'person' || access === 'member');
const atSecondFactor = '/sign-in/second-factor';

/** A signed-in owner, with the form token of their session. */
async function openOwner() {
  const { t, scenes } = await copy();
  const [mine] = scenes;
  const visitor = t.http(mine.owner);
  return { t, mine, visitor, _token: await tokenOf(visitor) };
}

/** A form as a signed-in owner of another installation fills it in. */
async function fillForm(route: (typeof forms)[number]) {
  const { t, scenes } = await copy();
  const [mine] = scenes;
  const visitor = t.http(mine.owner);
  const { params, fields } = requestOf(route, mine);
  return { t, visitor, path: pathWith(route, params), body: { ...(await openForm(visitor, route, mine)), ...fields } };
}

describe('an otherwise valid form', () => {
  it('changes nothing with the token of another session, of another person, or of no session', {
    timeout,
  }, async () => {
    const { t, scenes } = await copy();
    const [mine, theirs] = scenes;
    const phone = t.http();
    await phone.submit('/sign-in', '/sign-in', { email: mine.owner.email, password: goodPassword });
    await phone.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(mine.owner) });
    const tokens = [
      await tokenOf(phone),
      await tokenOf(t.http(theirs.owner)),
      hiddenFields((await t.http().get('/sign-in')).text, '/sign-in')._token ?? '',
      mine.owner.sessionToken,
      '',
    ];
    const visitor = t.http(mine.owner);
    const before = await fingerprintTables(t.owner.pool);
    for (const route of signedInOnly) {
      const { params, fields } = requestOf(route, mine);
      for (const _token of tokens) {
        const response = await visitor.post(pathWith(route, params), { ...fields, _token });
        expect([route.name, [410, 422].includes(response.status)]).toEqual([route.name, true]);
      }
    }
    expect(await fingerprintTables(t.owner.pool)).toEqual(before);
  });

  it('changes nothing when its origin is another site or hidden', { timeout }, async () => {
    const { t, mine, visitor, _token } = await openOwner();
    const before = await fingerprintTables(t.owner.pool);
    const { port } = new URL(t.origin);
    for (const route of sentAlone) {
      const { params, fields } = requestOf(route, mine);
      for (const [origin, site] of [
        ['https://evil.example', 'cross-site'],
        [`http://localhost:${Number(port) + 1}`, 'same-site'],
        [`https://localhost:${port}`, 'same-origin'],
        [`http://evil.localhost:${port}`, 'same-origin'],
        [`${t.origin}.evil.example`, 'same-origin'],
        ['null', 'same-origin'],
        ['', 'same-origin'],
        [t.origin, 'none'],
        [t.origin, 'same-site'],
        [t.origin, 'cross-site'],
      ] as const) {
        const headers = { origin, 'sec-fetch-site': site };
        const response = await visitor.post(pathWith(route, params), { ...fields, _token }, { headers });
        expect([route.name, origin, site, response.status]).toEqual([route.name, origin, site, 403]);
      }
    }
    expect(await fingerprintTables(t.owner.pool)).toEqual(before);
  });

  it('changes nothing after its person has signed out, also with the old cookie', { timeout }, async () => {
    const { t, mine, visitor, _token } = await openOwner();
    await visitor.submit('/account', '/sign-out');
    const before = await fingerprintTables(t.owner.pool);
    for (const route of signedInOnly) {
      const { params, fields } = requestOf(route, mine);
      for (const each of [visitor, t.http(mine.owner)]) {
        const response = await each.post(pathWith(route, params), { ...fields, _token });
        expect([route.name, response.status, response.to]).toEqual([route.name, 303, '/sign-in']);
      }
    }
    expect(await fingerprintTables(t.owner.pool)).toEqual(before);
  });

  it('changes nothing for a person who has entered only the password', { timeout }, async () => {
    const { t, scenes } = await copy();
    const [mine] = scenes;
    const halfway = t.http();
    await halfway.submit('/sign-in', '/sign-in', { email: mine.owner.email, password: goodPassword });
    const { _token = '' } = hiddenFields((await halfway.get(atSecondFactor)).text, '/sign-out');
    const before = await fingerprintTables(t.owner.pool);
    for (const route of signedInOnly) {
      const { params, fields } = requestOf(route, mine);
      const response = await halfway.post(pathWith(route, params), { ...fields, _token });
      expect([route.name, response.status, response.to]).toEqual([route.name, 303, atSecondFactor]);
    }
    expect(await fingerprintTables(t.owner.pool)).toEqual(before);
  });

  it.each(sentAlone.filter(({ once }) => once).map((route) => ({ name: route.name, route })))(
    'that creates something is carried out once when submitted four times: $name',
    { timeout },
    async ({ route }) => {
      const { t, visitor, path, body } = await fillForm(route);
      const sent = await Promise.all([1, 2, 3].map(() => visitor.post(path, body)));
      expect(sent.filter(({ status }) => status === 409)).toHaveLength(2);
      const after = await fingerprintTables(t.owner.pool);
      const again = await visitor.post(path, body);
      expect(again.status).toBe(409);
      expect(again.text).toContain('Already submitted');
      if (route.again !== null) expect(again.text).toContain('can’t be shown again');
      const { _form: _, ...rest } = body as Record<string, string | string[]>;
      expect((await visitor.post(path, rest)).status).toBe(409);
      expect(await fingerprintTables(t.owner.pool)).toEqual(after);
    },
  );

  it.each(sentAlone.filter(({ once }) => !once).map((route) => ({ name: route.name, route })))(
    'submitted twice in parallel changes nothing the third time: $name',
    { timeout },
    async ({ route }) => {
      const { t, visitor, path, body } = await fillForm(route);
      const sent = await Promise.all([1, 2].map(() => visitor.post(path, body)));
      const state = async () => ({ ...(await fingerprintTables(t.owner.pool)), audit_entry: '' });
      const after = await state();
      for (const { status } of [...sent, await visitor.post(path, body)]) expect(status).toBeLessThan(500);
      expect(await state()).toEqual(after);
    },
  );
});

describe('a session', () => {
  it.each(['an invented token', 'another person’s token'])(
    'is never a planted one: %s is replaced at each step',
    async (planted) => {
      const t = await setupConsole();
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
    const t = await setupConsole();
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
    const t = await setupConsole();
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

  it('ends when its member is removed', {
    timeout,
  }, async () => {
    const { t, scenes } = await copy();
    const [mine] = scenes;
    const leaver = await t.enrol({ orgId: mine.orgId, roleKey: 'admin', name: 'Leaver' });
    const visitor = t.http(leaver);
    expect((await visitor.get(`/o/${mine.orgId}/keys`)).status).toBe(200);
    const remove = `/o/${mine.orgId}/members/person/${leaver.personId}/remove`;
    expect((await t.http(mine.owner).submit(remove, remove)).status).toBe(303);
    const after = await visitor.get(`/o/${mine.orgId}/keys`);
    expect(after).toMatchObject({ status: 303, to: expect.stringMatching(/^\/sign-in/) });
  });
});
