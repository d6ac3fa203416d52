/** Rules that every form of the console obeys. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { cookieName } from '../../apps/console/middleware/cookies.ts';
import { goodPassword, shareConsole } from './setup.ts';

const shared = shareConsole();

const minuteMs = 60_000;
const newPassword = 'quiet-lantern-otter-ballad';

describe('a form', () => {
  it('from a page at another address, such as 127.0.0.1, leads to the address that works', async () => {
    const t = shared();
    const visitor = t.http(await t.enrol());
    const elsewhere = t.origin.replace('localhost', '127.0.0.1');
    const page = await fetch(`${elsewhere}/sign-in?to=%2Faccount`, { redirect: 'manual' });
    expect([page.status, page.headers.get('location')]).toEqual([302, `${t.origin}/sign-in?to=%2Faccount`]);
    const headers = { origin: elsewhere, 'sec-fetch-site': 'same-origin' };
    const rejected = await visitor.post('/account/recovery-codes', {}, { headers });
    expect(rejected.status).toBe(403);
    expect(rejected.text).toContain(`Open the console at <a href="${t.origin}">${t.origin}</a>`);
  });

  it('with more cookies than a server accepts gets a page that says what to do', async () => {
    const t = shared();
    const cookie = Array.from({ length: 5 }, (_, index) => `other-${index}=${'x'.repeat(4_000)}`).join('; ');
    const rejected = await fetch(`${t.origin}/account`, { headers: { cookie } });
    expect([rejected.status, rejected.headers.get('content-type')]).toEqual([431, 'text/html; charset=utf-8']);
    const text = await rejected.text();
    expect(text).toContain('Delete the cookies of this site, then reload the page.');
    // Requests for files would be rejected, too.
    const [, style = ''] = /<style>(.*)<\/style>/s.exec(text) ?? [];
    const source = `style-src 'sha256-${createHash('sha256').update(style).digest('base64')}'`;
    expect([
      rejected.headers.get('content-security-policy')?.includes(source),
      /src=|href="\/assets/.test(text),
    ]).toEqual([true, false]);
  });

  it('with a wrong code of an authenticator app says that the phone’s clock may be off', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http();
    await visitor.submit('/sign-in', '/sign-in', { email: ada.email, password: goodPassword });
    const rejected = await visitor.submit('/sign-in/second-factor', '/sign-in/second-factor', { factorCode: '000000' });
    expect(rejected.text).toContain('it may be off by more than half a minute');
  });

  it('with a code that is not six digits says so, and no sign-in has failed', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http();
    await visitor.submit('/sign-in', '/sign-in', { email: ada.email, password: goodPassword });
    const path = '/sign-in/second-factor';
    for (const factorCode of ['12', '1234567', 'abcdef', '12 34 5'])
      expect((await visitor.submit(path, path, { factorCode })).text).toContain('Enter the six digits of the code.');
    const setup = await t.http(ada).submit('/account', '/account/factors/totp/start');
    const added = await t.http(ada).submit(setup, '/account/factors/totp', { name: 'Phone', code: '12' });
    expect([added.status, added.text.includes('Enter the six digits of the code.')]).toEqual([422, true]);
    const { rows } = await t.owner.pool.query(
      `select count(*)::int as failed from audit_entry where organization_id = $1 and action = 'sign_in.failure'`,
      [ada.orgId],
    );
    expect(rows).toEqual([{ failed: 0 }]);
    const code = t.nextCode(ada).replace(/(?=...$)/, ' ');
    expect((await visitor.submit(path, path, { factorCode: code })).status).toBe(303);
  });
});

describe('a change that requires a fresh second factor', () => {
  it('asks for it after 5 minutes, keeps the input, is carried out after it, and renews the session’s token', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http(ada);
    const bo = await t.make.member({ orgId: ada.orgId, roleKey: 'member' });
    const member = `/o/${ada.orgId}/members/person/${bo.userId}`;
    t.pass(6 * minuteMs);

    const requested = await visitor.submit(`${member}/change`, `${member}/change`, {
      name: 'Bo Typed',
      title: 'Paralegal',
    });
    expect(requested.text).toContain('Confirm your identity');
    const before = visitor.jar.get(cookieName('session', t.origin));
    const wrong = await visitor.submit(requested, `${member}/change`, { factorCode: '000000' });
    expect(wrong.status).toBe(422);
    // The error is at the field, which is empty and has the focus.
    expect(wrong.text).toMatch(/<input id="field-factorCode"[^>]* value="" autofocus [^>]*aria-invalid="true"/);
    expect(wrong.text).toContain('id="field-factorCode-problem"');
    const done = await visitor.submit(wrong, `${member}/change`, { factorCode: t.nextCode(ada) });

    expect(done).toMatchObject({ status: 303, to: member });
    expect(visitor.jar.get(cookieName('session', t.origin))).not.toBe(before);
    const { rows } = await t.owner.pool.query('select name, title from membership where person_id = $1', [bo.userId]);
    expect(rows).toEqual([{ name: 'Bo Typed', title: 'Paralegal' }]);
  });

  it('can be cancelled, which renders the form again with its input and changes nothing', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http(ada);
    const bo = await t.make.member({ orgId: ada.orgId, name: 'Bo Lindqvist', roleKey: 'member' });
    const change = `/o/${ada.orgId}/members/person/${bo.userId}/change`;
    t.pass(6 * minuteMs);
    const requested = await visitor.submit(change, change, { name: 'Bo Typed', title: 'Paralegal' });
    expect(requested.text).toContain('Confirm your identity');
    const rendered = await visitor.submit(requested, change, { _cancel: 'yes' });
    expect([rendered.status, rendered.text.includes('Confirm your identity')]).toEqual([200, false]);
    expect(rendered.text).toContain('value="Bo Typed"');
    const { rows } = await t.owner.pool.query('select name from membership where person_id = $1', [bo.userId]);
    expect(rows).toEqual([{ name: 'Bo Lindqvist' }]);
  });

  it('can be checked before the form is submitted, which carries no form out', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http(ada);
    const bo = await t.make.member({ orgId: ada.orgId, name: 'Bo Lindqvist', roleKey: 'member' });
    const change = `/o/${ada.orgId}/members/person/${bo.userId}/change`;
    const check = { headers: { 'X-Step-Up-Check': 'yes' } };
    const fields = { name: 'Bo Typed', title: 'Paralegal' };
    const page = await visitor.get(change);
    expect(page.text).toMatch(/<form method="post" action="[^"]*\/change" data-step-up>/);

    expect((await visitor.submit(page, change, fields, check)).status).toBe(204);
    expect((await visitor.submit('/account', '/sign-out', {}, check)).status).toBe(204);
    t.pass(6 * minuteMs);
    const requested = await visitor.submit(page, change, fields, check);
    expect([requested.status, requested.text.includes('Bo Typed')]).toEqual([200, false]);
    const wrong = await visitor.submit(page, change, { ...fields, factorCode: '000000' }, check);
    expect(wrong.text).toContain('id="field-factorCode-problem"');
    const passed = await visitor.submit(page, change, { ...fields, factorCode: t.nextCode(ada) }, check);
    expect(passed.status).toBe(204);
    const { rows } = await t.owner.pool.query('select name from membership where person_id = $1', [bo.userId]);
    expect(rows).toEqual([{ name: 'Bo Lindqvist' }]);

    // The session has a new token, and so do the forms of the open page.
    const _token = passed.headers.get('X-Form-Token') ?? '';
    expect(await visitor.submit(page, change, { ...fields, _token })).toMatchObject({ status: 303 });
  });

  it('asks for it before a form with a password is rendered, and no page contains a password', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http(ada);
    const typed = { oldPassword: goodPassword, newPassword };
    const rendered = await visitor.get('/account/password');
    t.pass(6 * minuteMs);
    // The open form is sent too late. The page that asks for the second factor contains none of its
    // input, even if the input is invalid.
    for (const fields of [typed, { ...typed, newPassword: 'short' }, { ...typed, factorCode: '000000' }]) {
      const requested = await visitor.submit(rendered, '/account/password', fields);
      expect(requested.text).toContain('Confirm your identity');
      for (const secret of [...Object.values(fields), 'oldPassword', 'newPassword'])
        expect(requested.text).not.toContain(`"${secret}"`);
    }
    // After the second factor it leads to the form, without the input; the action is not executed.
    const requested = await visitor.get('/account/password');
    expect(requested.text).toContain('Confirm your identity');
    const confirmed = await visitor.submit(requested, '/account/password', { factorCode: t.nextCode(ada), ...typed });
    expect(confirmed).toMatchObject({ status: 303, to: '/account/password' });
    const form = await visitor.get('/account/password');
    const inputs = form.text.match(/<input [^>]*name="(old|new)Password"[^>]*>/g) ?? [];
    expect(inputs).toHaveLength(2);
    for (const input of inputs) expect(input).toMatch(/type="password"[^>]*autocomplete="(current|new)-password"/);
    expect(form.text).not.toContain(goodPassword);
    // A rejected field is rendered without them too.
    const rejected = await visitor.submit(form, '/account/password', { ...typed, newPassword: 'short' });
    expect(rejected.status).toBe(422);
    for (const secret of [goodPassword, '"short"']) expect(rejected.text).not.toContain(secret);

    expect(await visitor.submit(rejected, '/account/password', typed)).toMatchObject({ status: 303, to: '/account' });
    expect((await visitor.get('/account')).text).toContain('Password changed.');
    const again = t.http();
    expect(await again.submit('/sign-in', '/sign-in', { email: ada.email, password: newPassword })).toMatchObject({
      to: '/sign-in/second-factor',
    });
  });
});
