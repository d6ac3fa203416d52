/** Signing in over HTTP. See OWASP ASVS 5.0, V6 and V7. */
import { describe, expect, it } from 'vitest';
import { signIn } from '#domain/identity/sign-in.ts';
import { createAuthenticator } from '#test/authenticator.ts';
import { unescaped } from '#test/http-visitor.ts';
import { countBy } from '#test/people.ts';
import { cookieName } from '../../apps/console/middleware/cookies.ts';
import { goodPassword, setupConsole, shareConsole } from './setup.ts';

const shared = shareConsole();

const atSecondFactor = '/sign-in/second-factor';

describe('signing in', () => {
  it('leads over password and code to the organization, with a new token at each step, in a Secure, HttpOnly cookie of the host', async () => {
    const t = shared();
    const ada = await t.enrol({ name: 'Ada Rivers' });
    const visitor = t.http();
    expect(await visitor.get('/')).toMatchObject({ status: 303, to: '/sign-in?to=%2F' });

    const first = await visitor.submit('/sign-in', '/sign-in', { email: ada.email, password: goodPassword });

    expect(first).toMatchObject({ status: 303, to: atSecondFactor });
    const cookie = first.cookies.find((line) => line.startsWith(cookieName('session', t.origin)));
    expect(cookie).toMatch(/^__Host-org-api-session-\d+=[\w-]{43}; path=\/; samesite=lax; secure; httponly$/);
    const second = await visitor.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(ada) });
    expect(second).toMatchObject({ status: 303, to: '/' });
    const after = second.cookies.find((line) => line.startsWith(cookieName('session', t.origin)));
    expect(after).toMatch(/^__Host-org-api-session-\d+=[\w-]{43}; path=\/; samesite=lax; secure; httponly$/);
    expect(after).not.toBe(cookie);
    expect(await visitor.get('/')).toMatchObject({ status: 303, to: `/o/${ada.orgId}` });
    expect((await visitor.get(`/o/${ada.orgId}`)).text).toContain('Harbor Family Law');
  });

  it('with a response that is rejected sets no session cookie', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http();
    const session = cookieName('session', t.origin);
    const rejected = await visitor.submit('/sign-in', '/sign-in', { email: ada.email, password: 'wrong wrong wrong' });
    expect([rejected.status, rejected.cookies.join().includes(session)]).toEqual([422, false]);
    await visitor.submit('/sign-in', '/sign-in', { email: ada.email, password: goodPassword });
    const half = visitor.jar.get(session);
    const nonsense = [{ factorCode: '000000' }, { factorPasskey: '{}' }, { factorRecovery: 'ABCD' }, {}];
    for (const response of nonsense) {
      const { status, cookies } = await visitor.submit(atSecondFactor, atSecondFactor, response);
      expect([response, status, cookies.join().includes(session)]).toEqual([response, 422, false]);
    }
    expect(visitor.jar.get(session)).toBe(half);
    expect(await visitor.get('/account')).toMatchObject({ to: expect.stringContaining(atSecondFactor) });
  });

  it('with a recovery code works once per code, and shows how many are left', async () => {
    const t = shared();
    const ada = await t.enrol();
    const [code = ''] = ada.recoveryCodes;
    const visitor = t.http();
    await visitor.submit('/sign-in', '/sign-in', { email: ada.email, password: goodPassword });
    expect(await visitor.submit(atSecondFactor, atSecondFactor, { factorRecovery: code })).toMatchObject({ to: '/' });
    expect((await visitor.get(`/o/${ada.orgId}`)).text).toContain('9 are left');

    const again = t.http();
    await again.submit('/sign-in', '/sign-in', { email: ada.email, password: goodPassword });
    const rejected = await again.submit(atSecondFactor, atSecondFactor, { factorRecovery: code });
    expect(rejected.status).toBe(422);
    expect(rejected.text).toContain('id="field-factorRecovery-problem"');
  });

  it('answers a wrong password and an unknown address with the same page', async () => {
    const t = shared();
    const ada = await t.enrol();
    const pages = [];
    for (const [email, password] of [
      [ada.email, 'not-the-password-of-ada'],
      ['nobody@example.org', goodPassword],
    ] as const) {
      const { status, text } = await t.http().submit('/sign-in', '/sign-in', { email, password });
      expect(status).toBe(422);
      expect(text).not.toContain(password);
      pages.push(text.replace(/name="_(token|form)" value="[^"]*"/g, '').replaceAll(email, 'ADDRESS'));
    }
    expect(pages[0]).toBe(pages[1]);
  });

  it('gets 429 with a wait after ten failures, also with the right password', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http();
    for (let failure = 1; failure <= 10; failure += 1)
      await visitor.submit('/sign-in', '/sign-in', { email: ada.email, password: `wrong-password-${failure}` });
    const waits = await visitor.submit('/sign-in', '/sign-in', { email: ada.email, password: goodPassword });
    expect([waits.status, Number(waits.headers.get('retry-after')) > 800]).toEqual([429, true]);
    const laterMs = Date.now() + 900_000;
    countBy(() => new Date(laterMs));
    const later = await visitor.submit('/sign-in', '/sign-in', { email: ada.email, password: goodPassword });
    expect(later).toMatchObject({ status: 303, to: atSecondFactor });
  });

  it('continues to the requested page of the console, and never to another site', async () => {
    const t = shared();
    const ada = await t.enrol();
    for (const [to, expected] of [
      [`/o/${ada.orgId}?x=1`, `/o/${ada.orgId}?x=1`],
      ['https://evil.example/', '/'],
      ['//evil.example/', '/'],
      ['/\\evil.example', '/'],
      ['/%0d%0aSet-Cookie:x=1', '/%0d%0aSet-Cookie:x=1'],
      ['javascript:alert(1)', '/'],
    ] as const) {
      const visitor = t.http();
      const query = `?to=${encodeURIComponent(to)}`;
      const first = await visitor.submit(`/sign-in${query}`, '/sign-in', { email: ada.email, password: goodPassword });
      const second = await visitor.submit(first.to ?? '', atSecondFactor, { factorCode: t.nextCode(ada) });
      expect(second).toMatchObject({ status: 303, to: expected });
    }
  });

  it('in a browser with a session ends that session', async () => {
    const t = shared();
    const [ada, bo] = [await t.enrol(), await t.enrol()];
    const visitor = t.http(ada);
    await visitor.post('/sign-in', {}); // a form without a token changes nothing
    expect(await visitor.get(`/o/${ada.orgId}`)).toMatchObject({ status: 200 });
    // A signed-in person is redirected, so the form comes from another browser.
    const { text } = await t.http(ada).get('/account');
    const token = /name="_token" value="([^"]*)"/.exec(text)?.[1] ?? '';
    await visitor.post('/sign-in', { email: bo.email, password: goodPassword, _token: token });
    expect(await t.http(ada).get(`/o/${ada.orgId}`)).toMatchObject({ status: 303 });
  });

  it('in a browser whose session is the oldest of ten continues', async () => {
    const t = shared();
    const ada = await t.enrol();
    const typed = { email: ada.email, password: goodPassword };
    const visitor = t.http();
    await visitor.submit('/sign-in', '/sign-in', typed);
    for (let n = 0; n < 8; n += 1) {
      const elsewhere = { address: `198.51.100.${n}`, userAgent: 'another browser' };
      await signIn(t.db, { ...typed, visitor: elsewhere }, t.now);
    }
    expect(await visitor.submit('/sign-in', '/sign-in', typed)).toMatchObject({ status: 303, to: atSecondFactor });
    const second = await visitor.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(ada) });
    expect(second).toMatchObject({ status: 303, to: '/' });
  });
});

describe('a session', () => {
  it('of one region’s console on localhost stays when its person signs in to another region’s', async () => {
    const [us, ca] = [shared(), await setupConsole({ REGION: 'ca' })];
    const [ada, bo] = [await us.enrol(), await ca.enrol()];
    const browser = us.http(ada);
    const other = ca.http();
    await other.submit('/sign-in', '/sign-in', { email: bo.email, password: goodPassword });
    await other.submit(atSecondFactor, atSecondFactor, { factorCode: ca.nextCode(bo) });
    // A browser ignores ports: it has the cookies of both, and sends all of them to each.
    const cookie = [...browser.jar, ...other.jar].map(([name, value]) => `${name}=${value}`).join('; ');
    for (const [t, person] of [
      [us, ada],
      [ca, bo],
    ] as const)
      expect((await t.http().get('/account', { headers: { cookie } })).text).toContain(person.email);
  });

  it('of a console with an https URL is in a cookie of its host alone', () => {
    for (const kind of ['session', 'visit', 'enrolment', 'flash'] as const) {
      expect(cookieName(kind, 'https://console.example.org')).toBe(`__Host-org-api-${kind}`);
      expect(cookieName(kind, 'https://console.example.org:8443')).toBe(`__Host-org-api-${kind}`);
    }
  });

  it('is not extended by requests that a page makes by itself', async () => {
    const t = shared();
    const ada = await t.enrol();
    for (let minutes = 0; minutes < 32; minutes += 8) {
      await t.http(ada).get(`/o/${ada.orgId}`, { headers: { 'HX-Request': 'true' } });
      t.pass(8 * 60_000);
    }
    expect(await t.http(ada).get(`/o/${ada.orgId}`)).toMatchObject({
      status: 303,
      to: expect.stringContaining('/sign-in'),
    });
  });

  it('ends after 30 minutes without use, after 12 hours in any case, and at once by signing out', async () => {
    const t = shared();
    const minuteMs = 60_000;
    const [idle, busy, out] = [await t.enrol(), await t.enrol(), await t.enrol()];
    const isSignedIn = async (person: typeof idle) => (await t.http(person).get(`/o/${person.orgId}`)).status === 200;
    await t.http(out).submit('/account', '/sign-out');
    expect(await isSignedIn(out)).toBe(false);

    t.pass(29 * minuteMs);
    expect([await isSignedIn(idle), await isSignedIn(busy)]).toEqual([true, true]);
    t.pass(31 * minuteMs);
    expect(await isSignedIn(idle)).toBe(false);
    const used = await t.enrol();
    for (let minutes = 0; minutes < 12 * 60 - 25; minutes += 25) {
      t.pass(25 * minuteMs);
      expect(await isSignedIn(used)).toBe(true);
    }
    t.pass(25 * minuteMs);
    expect(await isSignedIn(used)).toBe(false);
  });

  it('can be ended from another session of its person, alone or with all others, and by no other person', async () => {
    const t = shared();
    const ada = await t.enrol();
    const stranger = await t.enrol();
    const signIn = async () => {
      const visitor = t.http();
      await visitor.submit('/sign-in', '/sign-in', { email: ada.email, password: goodPassword });
      await visitor.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(ada) });
      return visitor;
    };
    const [here, phone, tablet] = [await signIn(), await signIn(), await signIn()];
    const account = await here.get('/account');
    const ids = [...account.text.matchAll(/action="\/account\/sessions\/([0-9a-f-]{36})\/end"/g)].map(([, id]) => id);
    expect(ids.length).toBe(3); // with the session that enrolling started; this browser's session has ended instead

    const theirs = `/account/sessions/${ids[0]}/end`;
    const token = /name="_token" value="([^"]*)"/.exec((await t.http(stranger).get('/account')).text)?.[1] ?? '';
    expect((await t.http(stranger).post(theirs, { _token: token })).status).toBe(422);
    expect((await t.http(stranger).get('/account')).status).toBe(200);
    for (const visitor of [here, phone, tablet]) expect((await visitor.get('/account')).status).toBe(200);

    // Last used first: this browser's session, then the others in the order of their requests.
    await here.submit('/account', theirs);
    const left = [];
    for (const visitor of [here, phone, tablet]) left.push((await visitor.get('/account')).status);
    expect(left.filter((status) => status === 303).length).toBe(1);
    await here.submit('/account', '/account/sessions/end-others');
    expect((await here.get('/account')).text).toContain('other session');
    for (const visitor of [phone, tablet]) expect((await visitor.get('/account')).status).toBe(303);
  });
});

it('a passkey is added, unless its response is longer than 16,000 characters', async () => {
  const t = shared();
  const visitor = t.http(await t.enrol());
  const key = createAuthenticator();
  const add = async (length: number) => {
    const page = await visitor.submit('/account', '/account/factors/passkey/start');
    const { challenge } = JSON.parse(unescaped(/data-options="([^"]*)"/.exec(page.text)?.[1] ?? ''));
    const passkey = JSON.stringify(key.register(challenge, { origin: t.origin, rpId: 'localhost' }));
    return visitor.submit(page, '/account/factors/passkey', { name: 'Phone', passkey: passkey.padEnd(length) });
  };
  expect((await add(16_001)).status).toBe(422);
  expect(await add(16_000)).toMatchObject({ status: 303, to: '/account' });
});
