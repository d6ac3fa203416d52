/** Forms, pages and refreshing parts after the end of a session. */
import { expect, it } from 'vitest';
import { cookieName } from '../../apps/console/middleware/cookies.ts';
import { goodPassword, shareConsole } from './setup.ts';

const shared = shareConsole();

const minuteMs = 60_000;

it('a form after the end of its session leads through sign-in back to its page, with a message that nothing was changed', async () => {
  const t = shared();
  const ada = await t.enrol();
  const visitor = t.http(ada);
  const page = `/o/${ada.orgId}/webhooks/new`;
  const rendered = await visitor.get(page);
  t.pass(31 * minuteMs);
  const late = await visitor.submit(rendered, page, {}, { headers: { referer: `${t.origin}${page}?a=b` } });
  expect(late).toMatchObject({ status: 303, to: `/sign-in?to=${encodeURIComponent(`${page}?a=b`)}` });
  const signIn = await visitor.get(late.to ?? '');
  expect(signIn.text).toContain(
    '<div class="notice notice-warning" role="note">Nothing was changed. Your session has ended. Sessions end when',
  );
  const half = await visitor.submit(signIn, '/sign-in', { email: ada.email, password: goodPassword });
  const done = await visitor.submit(half.to ?? '', '/sign-in/second-factor', { factorCode: t.nextCode(ada) });
  expect(done.to).toBe(`${page}?a=b`);
});

it('a form leads back only to an existing page of the console', async () => {
  const t = shared();
  const ada = await t.enrol();
  const from = (referer: string) => t.http().post('/account/recovery-codes', {}, { headers: { referer } });
  for (const referer of ['', 'nonsense', 'https://evil.example/account', `${t.origin}.evil.example/account`])
    expect((await from(referer)).to).toBe('/sign-in');
  for (const path of ['/account/recovery-codes', '/nowhere', '//evil.example/', '/'])
    expect((await from(t.origin + path)).to).toBe('/sign-in');
  expect((await from(`${t.origin}/account`)).to).toBe('/sign-in?to=%2Faccount');
  // Another site's form comes without cookies, also while the person is signed in: their next page
  // has no flash message.
  const foreign = await t
    .http()
    .post(
      '/account/recovery-codes',
      {},
      { headers: { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' } },
    );
  expect(foreign.cookies.join()).not.toContain('flash');
  expect((await t.http(ada).get('/account')).status).toBe(200);
});

it('a request for a part of a page gets 401 without a session, and consumes no flash message', async () => {
  const t = shared();
  const ada = await t.enrol();
  const headers = { 'HX-Request': 'true' };
  expect(await t.http().get(`/o/${ada.orgId}`, { headers })).toMatchObject({
    status: 401,
    to: null,
    cookies: [],
    text: '',
  });
  const visitor = t.http(ada);
  visitor.jar.set(cookieName('flash', t.origin), 'good=Something+was+done.');
  const part = await visitor.get('/account', { headers });
  expect([part.text.includes('Something was done.'), part.cookies]).toEqual([false, []]);
  expect((await visitor.get('/account')).text).toContain('role="status">Something was done.');
  for (const foreign of ['Something%20was%20done.', 'bad=Something+was+done.', '%E0%A4%A']) {
    visitor.jar.set(cookieName('flash', t.origin), foreign);
    expect((await visitor.get('/account')).text).not.toContain('Something was done.');
  }
});
