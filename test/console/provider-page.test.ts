/** The page on which owners say how members sign in, and what it does. */
import type { ServerResponse } from 'node:http';
import { expect, it, vi } from 'vitest';
import { stopRequiringProvider } from '#domain/identity/sso-provider.ts';
import { unescaped } from '#test/http-visitor.ts';
import { providerClient, startLyingProvider } from '#test/lying-provider.ts';
import { atSecondFactor } from './at-provider.ts';
import { type Enrolled, setupConsole, shareConsole } from './setup.ts';

const shared = shareConsole();

async function setup(t = shared()) {
  const owner = await t.enrol();
  const provider = await startLyingProvider(`${t.origin}/sign-in/callback/${owner.orgId}`);
  const at = (rest = '') => `/o/${owner.orgId}/sign-in${rest}`;
  const { rows } = await t.owner.pool.query<{ slug: string }>('select slug from organization where id = $1', [
    owner.orgId,
  ]);
  const typed = { issuer: provider.issuer, ...providerClient };
  const visitor = t.http(owner);
  const save = (fields: Record<string, string> = {}) =>
    visitor.submit(at('/provider'), at('/provider'), { ...typed, ...fields });
  const log = async () =>
    (
      await t.owner.pool.query<{ action: string; detail: Record<string, unknown> }>(
        `select action, detail from audit_entry where organization_id = $1 and action like 'sso.%' order by at, id`,
        [owner.orgId],
      )
    ).rows;

  /** Opens the address of a page that leads to the provider there. Returns the path that leads back. */
  async function browse(text: string): Promise<string> {
    const [, url = ''] = /content="0; url=([^"]*)"/.exec(text) ?? [];
    const back = await provider.browse(unescaped(url));
    return back.pathname + back.search;
  }
  const follow = async (browser: ReturnType<typeof t.http>, text: string) => browser.get(await browse(text));

  /** Links the owner's account, and signs in with it. */
  async function signInWithProvider(person: Enrolled = owner) {
    const first = t.http(person);
    await follow(first, (await first.submit('/account', `/account/providers/${owner.orgId}/link`)).text);
    const browser = t.http();
    const started = await browser.submit('/sign-in/organization', '/sign-in/organization', {
      organization: rows[0]?.slug ?? '',
    });
    expect((await follow(browser, started.text)).to).toBe(atSecondFactor);
    await browser.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(person) });
    return browser;
  }
  const slug = rows[0]?.slug ?? '';
  return { ...t, slug, owner: owner, pool: t.owner.pool, provider, at, visitor, save, log, browse, signInWithProvider };
}

it('an owner sets the provider; the log has the old and the new one, and nothing shows the secret', async () => {
  const t = await setup();
  expect((await t.save()).to).toBe(t.at());
  t.provider.rotateSecret('another-secret');
  expect((await t.save({ clientSecret: 'another-secret' })).to).toBe(t.at());
  const page = await t.visitor.get(t.at());
  expect(page.text).toContain(t.provider.issuer);
  expect(page.text).toContain(`${t.origin}/sign-in/callback/${t.owner.orgId}`);
  const to = { issuer: t.provider.issuer, clientId: providerClient.clientId, isRequired: false };
  expect(await t.log()).toEqual([
    { action: 'sso.set', detail: { from: null, to, secretChanged: true } },
    { action: 'sso.set', detail: { from: to, to, secretChanged: true } },
  ]);
  const { rows } = await t.pool.query(
    `select to_jsonb(p)::text as row, encode(secret_sealed, 'escape') as sealed from sso_provider p
     where organization_id = $1`,
    [t.owner.orgId],
  );
  const form = await t.visitor.get(t.at('/provider'));
  for (const secret of [providerClient.clientSecret, 'another-secret'])
    expect(JSON.stringify([page.text, form.text, rows, t.logLines, await t.log()])).not.toContain(secret);
});

it('the page has a link for members that fills in the short name', async () => {
  const t = await setup();
  await t.save();
  const [, link = ''] = /data-copy="([^"]*organization=[^"]*)"/.exec((await t.visitor.get(t.at())).text) ?? [];
  const { pathname, search, searchParams } = new URL(link);
  const opened = await t.http().get(pathname + search);
  expect(opened.text).toContain(`value="${searchParams.get('organization')}"`);
  const shown = await t.visitor.get(`/o/${t.owner.orgId}/audit-log?action=sso.set`);
  expect(unescaped(shown.text)).toContain(`${providerClient.clientId}), before: none`);
  // The same provider with another secret is described once.
  t.provider.rotateSecret('another-secret');
  await t.save({ clientSecret: 'another-secret' });
  const changed = await t.visitor.get(`/o/${t.owner.orgId}/audit-log?action=sso.set`);
  expect(unescaped(changed.text)).toContain(`${providerClient.clientId}), with a new client secret`);
});

it('an owner who links an account reads that the client is wrong, and stays signed in', async () => {
  const t = await setup();
  await t.save();
  t.provider.rotateSecret('second');
  const linking = await t.visitor.submit('/account', `/account/providers/${t.owner.orgId}/link`);
  const rejected = await t.visitor.get(await t.browse(linking.text));
  expect(rejected.status).toBe(403);
  const text = unescaped(rejected.text);
  expect(text).toContain('<h1>Account not linked</h1>');
  expect(text).toContain('The provider rejected the console’s client ID or client secret.');
  expect(text).toContain('href="/account"');
  expect((await t.visitor.get('/account')).status).toBe(200);

  // A member who signs in reads the same, with the ways on of a person without a session.
  await t.save({ clientSecret: 'second' });
  await t.signInWithProvider();
  t.provider.rotateSecret('third');
  const browser = t.http();
  const started = await browser.submit('/sign-in/organization', '/sign-in/organization', { organization: t.slug });
  const failed = unescaped((await browser.get(await t.browse(started.text))).text);
  expect(failed).toContain('<h1>Sign-in failed</h1>');
  expect(failed).toContain('client ID or client secret');
  expect(failed).toContain('href="/sign-in/organization"');
});

it('a mistyped client is rejected when it is saved; another answer to an unknown code is not', async () => {
  const t = await setup();
  for (const wrong of [{ clientSecret: 'mistyped' }, { clientId: 'unknown' }]) {
    const { status, text } = await t.save(wrong);
    expect([status, unescaped(text)]).toEqual([
      422,
      expect.stringContaining('rejects this client ID or client secret'),
    ]);
    expect(text).not.toContain('mistyped');
  }
  expect(await t.log()).toEqual([]);
  const responses: [status: number, body: string][] = [
    [500, 'broken'],
    [200, '{}'],
    [400, '{"error":"invalid_request"}'],
  ];
  for (const [status, body] of responses) {
    t.provider.behavior.answer = (path, response) => {
      if (path !== '/token') return false;
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
      return true;
    };
    expect([status, (await t.save()).status]).toEqual([status, 303]);
  }
  expect(t.provider.requests.filter((each) => each === 'POST /token')).toHaveLength(5);
});

it('only an owner changes the provider, with a fresh second factor', async () => {
  const t = await setup();
  const admin = await t.enrol({ orgId: t.owner.orgId, roleKey: 'admin' });
  const visitor = t.http(admin);
  expect((await visitor.get(t.at())).text).toContain('Only an owner can change how members sign in.');
  const typed = { issuer: t.provider.issuer, ...providerClient };
  const rejected = await visitor.submit(t.at('/provider'), t.at('/provider'), typed);
  expect([rejected.status, rejected.text.includes('Only an owner can change')]).toEqual([422, true]);
  t.pass(6 * 60_000);
  expect((await t.visitor.get(t.at('/provider'))).text).toContain('Confirm your identity');
  expect(await t.log()).toEqual([]);
});

it('a provider at an address that is not public, that is no issuer, or that is none, is not saved', async () => {
  const t = await setup();
  for (const issuer of [
    'https://10.0.0.1',
    'http://93.184.215.14',
    'https://[::ffff:10.0.0.1]',
    'file:///etc/passwd',
    `${t.provider.issuer}/.well-known/openid-configuration`,
  ]) {
    const rejected = await t.save({ issuer });
    expect([issuer, rejected.status, rejected.text.includes('Its address must be public')]).toEqual([
      issuer,
      422,
      true,
    ]);
  }
  const none = await t.save({ issuer: t.origin });
  expect([none.status, none.text.includes('No OpenID provider answers at this issuer URL')]).toEqual([422, true]);
  expect(await t.log()).toEqual([]);
});

it('the provider is required only from a session of it, and then closes the organization to passwords', async () => {
  const t = await setup();
  await t.save();
  expect((await t.visitor.get(t.at())).text).not.toContain('Require the provider…');
  const forced = await t.visitor.post(t.at('/require'), {
    _token: /name="_token" value="([^"]*)"/.exec((await t.visitor.get(t.at())).text)?.[1] ?? '',
  });
  expect([forced.status, forced.text.includes('Sign in with the provider first.')]).toEqual([422, true]);

  const browser = await t.signInWithProvider();
  expect((await browser.submit(t.at(), t.at('/require'))).to).toBe(t.at());
  expect((await browser.get(t.at())).status).toBe(200);
  const closed = await t.visitor.get(t.at());
  expect([closed.status, closed.text.includes('Sign in with your organization')]).toEqual([403, true]);
  expect((await t.visitor.get('/account')).status).toBe(200);

  expect(await stopRequiringProvider(t.db, t.owner.orgId).catch(() => 'the console’s login')).toBe(
    'the console’s login',
  );
  const operator = await shared().owner;
  expect(await stopRequiringProvider(operator, t.owner.orgId)).toEqual({ changed: true });
  expect((await t.visitor.get(t.at())).status).toBe(200);
  expect((await t.log()).slice(1)).toEqual([
    { action: 'sso.require', detail: { from: false, to: true } },
    { action: 'sso.require', detail: { from: true, to: false } },
  ]);
});

it('sessions and linked accounts of a provider end when it is removed, or replaced by another client', async () => {
  const t = await setup();
  await t.save();
  const browser = await t.signInWithProvider();
  const count = async () =>
    (
      await t.pool.query(
        `select (select count(*)::int from sso_subject where person_id = $1) as subjects,
           (select count(*)::int from console_session where person_id = $1 and provider_id is not null) as sessions`,
        [t.owner.personId],
      )
    ).rows[0];
  expect(await count()).toEqual({ subjects: 1, sessions: 1 });
  t.provider.rotateSecret('another-secret');
  expect((await t.save({ clientSecret: 'another-secret' })).status).toBe(303);
  expect(await count()).toEqual({ subjects: 1, sessions: 1 });
  const another = { clientId: 'another', clientSecret: 'another-secret' };
  const warned = await t.save(another);
  expect([warned.status, warned.text.includes('unlinks 1 account and ends 1 session. Select this box')]).toEqual([
    422,
    true,
  ]);
  expect(await count()).toEqual({ subjects: 1, sessions: 1 });
  expect((await t.save({ ...another, replace: 'on' })).status).toBe(303);
  expect(await count()).toEqual({ subjects: 0, sessions: 0 });
  const client = { issuer: t.provider.issuer, isRequired: false };
  expect((await t.log()).at(-1)).toEqual({
    action: 'sso.set',
    detail: {
      from: { ...client, clientId: 'console' },
      to: { ...client, clientId: 'another' },
      secretChanged: true,
      ended: { accounts: 1, sessions: 1 },
    },
  });
  expect((await browser.get(t.at())).to).toContain('/sign-in');

  // Nothing is linked, so nothing is asked.
  t.provider.rotateSecret(providerClient.clientSecret);
  await t.save();
  const second = await t.signInWithProvider();
  const removed = await second.submit(t.at(), t.at('/remove'));
  expect(removed.to).toBe('/sign-in');
  expect(await count()).toEqual({ subjects: 0, sessions: 0 });
  expect((await t.log()).at(-1)).toMatchObject({
    action: 'sso.remove',
    detail: { from: { clientId: 'console', isRequired: false }, ended: { accounts: 1, sessions: 1 } },
  });
});

it('the same issuer in other letters, or with a slash, is the same provider: accounts, sessions and `required` stay', async () => {
  const t = await setup();
  await t.save();
  const browser = await t.signInWithProvider();
  await browser.submit(t.at(), t.at('/require'));
  const read = async () =>
    (
      await t.pool.query(
        `select p.id, p.issuer, p.is_required,
           (select count(*)::int from sso_subject s where s.provider_id = p.id) as linked
         from sso_provider p where p.organization_id = $1`,
        [t.owner.orgId],
      )
    ).rows;
  const before = await read();
  expect(before).toMatchObject([{ issuer: t.provider.issuer, is_required: true, linked: 1 }]);
  const typed = { issuer: t.provider.issuer, ...providerClient };
  for (const issuer of [`${t.provider.issuer}/`, t.provider.issuer.replace('http', 'HTTP')]) {
    const saved = await browser.submit(t.at('/provider'), t.at('/provider'), { ...typed, issuer });
    expect([issuer, saved.status]).toEqual([issuer, 303]);
    expect(await read()).toEqual(before);
  }
  const same = { issuer: t.provider.issuer, clientId: 'console', isRequired: true };
  expect((await t.log()).at(-1)?.detail).toEqual({ from: same, to: same, secretChanged: true });

  // Another provider is not required, and the page and the log say so.
  const replaced = { ...typed, clientId: 'another' };
  const warned = await browser.submit(t.at('/provider'), t.at('/provider'), replaced);
  expect(warned.text).toContain('ends 1 session, and passwords are accepted again.');
  await browser.submit(t.at('/provider'), t.at('/provider'), { ...replaced, replace: 'on' });
  expect((await t.log()).at(-1)?.detail).toMatchObject({
    from: { isRequired: true },
    to: { isRequired: false },
    ended: { accounts: 1, sessions: 1 },
  });
  const log = await t.visitor.get(`/o/${t.owner.orgId}/audit-log?action=sso.set`);
  expect(unescaped(log.text)).toContain('which unlinked 1 account and ended 1 session; passwords are accepted again');
});

it('a provider that publishes another issuer, or lacks what a sign-in needs, is named at the field', async () => {
  const t = await setup();
  const published = (await (await fetch(`${t.provider.issuer}/.well-known/openid-configuration`)).json()) as object;
  for (const other of [{ issuer: 'https://evil.example' }, { token_endpoint: undefined }, { jwks_uri: undefined }]) {
    t.provider.behavior.answer = (_path, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ ...published, ...other }));
      return true;
    };
    const rejected = await t.save();
    expect(rejected.status).toBe(422);
    expect(rejected.text).toMatch(
      /id="field-issuer-problem">The provider at this address does not publish this issuer/,
    );
  }
  expect(await t.log()).toEqual([]);
});

it('who manages members sees who has linked an account, on the page, in the list and at each member', async () => {
  const t = await setup();
  await t.save();
  await t.signInWithProvider();
  const other = await t.enrol({ orgId: t.owner.orgId, name: 'Bo Nguyen', permissions: ['org.members.read'] });
  const page = await t.visitor.get(t.at());
  const links = [...page.text.matchAll(/href="([^"]*\?account=[a-z]+)">([^<]*)</g)].map(([, href = '', text]) => [
    href,
    text,
  ]);
  expect(links.map(([, text]) => text)).toEqual(['1 member', '1 with a password only']);
  const names = async (visitor: typeof t.visitor, href: string) =>
    [...(await visitor.get(href)).text.matchAll(/members\/person\/(usr_[\w-]+)"/g)].map(([, id]) => id);
  expect(await names(t.visitor, links[0]?.[0] ?? '')).toEqual([t.owner.personId]);
  expect(await names(t.visitor, links[1]?.[0] ?? '')).toEqual([other.personId]);
  const at = (id: string) => `/o/${t.owner.orgId}/members/person/${id}`;
  expect((await t.visitor.get(at(t.owner.personId))).text).toMatch(/Account at the provider<\/dt><dd>Linked/);
  expect((await t.visitor.get(at(other.personId))).text).toMatch(/Account at the provider<\/dt><dd>Not linked/);
  // Who only reads members is not told.
  const reader = t.http(other);
  expect((await names(reader, links[0]?.[0] ?? '')).sort()).toEqual([t.owner.personId, other.personId].sort());
  expect((await reader.get(at(t.owner.personId))).text).not.toContain('Account at the provider');
});

it('a provider that hangs while it is set, linked or asked for its answer takes no page of others', async () => {
  const t = await setup(await setupConsole({ DATABASE_POOL_MAX: '5' })); // one page or form at a time
  const other = await t.enrol();
  const held: ServerResponse[] = [];
  /** Runs what waits for the provider, and reads another organization's page meanwhile. */
  const readBeside = async (work: () => Promise<unknown>) => {
    t.provider.behavior.answer = (_path, response) => held.push(response) > 0;
    let hasEnded = false;
    const running = work().finally(() => {
      hasEnded = true;
    });
    await vi.waitFor(() => expect(held).toHaveLength(1), { timeout: 30_000, interval: 5 });
    const { status } = await t.http(other).get(`/o/${other.orgId}/members`);
    const isBeside = !hasEnded;
    t.provider.behavior.answer = null;
    for (const response of held.splice(0)) response.destroy();
    await running;
    return [status, isBeside];
  };
  const beside = [200, true];
  expect(await readBeside(t.save)).toEqual(beside);
  await t.save();
  const link = () => t.visitor.submit('/account', `/account/providers/${t.owner.orgId}/link`);
  expect(await readBeside(link)).toEqual(beside);
  const back = await t.browse((await link()).text);
  expect(await readBeside(() => t.visitor.get(back))).toEqual(beside);
});
