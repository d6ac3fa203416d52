/** Rules that every route of the console obeys. */
import { hash, randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { routes } from '../../apps/console/routes.ts';
import { arrange } from './hostile/scene.ts';
import { paramsOf, pathWith } from './hostile/walk.ts';
import { pathOf } from './paths.ts';
import { goodPassword, setupConsole, shareConsole } from './setup.ts';

const shared = shareConsole();

describe('every route', () => {
  it('rejects API keys with 403 and JSON, also beside a session, and records requests with a genuine key', async () => {
    const t = await setupConsole();
    const ada = await t.enrol();
    const key = await t.make.apiKey({ creator: { orgId: ada.orgId, userId: ada.personId, roleId: null } });
    const bearers = [key.key, 'aln_us_nonsense', 'aln_ca_0000000000000000000000000000000000000000'];
    for (const route of [...routes, null]) {
      const path = route === null ? '/nowhere' : pathOf(route, ada);
      for (const bearer of bearers) {
        const headers = { authorization: `Bearer ${bearer}` };
        const visitor = t.http(ada);
        const response =
          route?.method === 'POST' ? await visitor.post(path, {}, { headers }) : await visitor.get(path, { headers });
        expect([route?.name, response.status, response.headers.get('content-type')]).toEqual([
          route?.name,
          403,
          'application/json',
        ]);
        expect(JSON.parse(response.text)).toMatchObject({ error: 'api_key_not_accepted' });
      }
    }
    await t.console.stop(); // writes the counts
    const { rows } = await t.owner.pool.query(
      `select sum(count)::int as uses, min(host(address)) as address from audit_entry
        where key_id = $1 and code = 'api_key_not_accepted' and action = 'api.console'`,
      [key.id],
    );
    expect(rows).toEqual([{ uses: routes.length + 1, address: '127.0.0.1' }]);
    expect(t.logLines.join('')).not.toContain(key.key);
  });

  it('of an organization answers a person who is not an active member with the same 404 as for an unknown organization', async () => {
    const t = shared();
    const ada = await t.enrol();
    const elsewhere = await t.make.organization({ name: 'Another Firm' });
    const visitor = t.http(ada);
    const _token = /name="_token" value="([^"]*)"/.exec((await visitor.get('/account')).text)?.[1] ?? '';
    const within = routes.filter(({ access }) => access === 'member');
    expect(within.length).toBeGreaterThan(0);
    for (const route of within) {
      const texts = [];
      for (const orgId of [elsewhere, randomUUID()]) {
        const path = pathOf(route, { orgId });
        const response = route.method === 'POST' ? await visitor.post(path, { _token }) : await visitor.get(path);
        expect([route.name, response.status]).toEqual([route.name, 404]);
        texts.push(response.text.replace(/name="_(token|form)" value="[^"]*"/g, ''));
      }
      expect(texts[0]).toBe(texts[1]);
      expect(texts[0]).not.toContain('Another Firm');
    }
  });

  it('that requires a session redirects to the sign-in page without one, whether or not the organization exists', async () => {
    const t = shared();
    const ada = await t.enrol();
    for (const route of routes.filter(({ access }) => access !== 'anyone')) {
      for (const orgId of [ada.orgId, randomUUID()]) {
        const path = pathOf(route, { orgId });
        const response = route.method === 'POST' ? await t.http().post(path, {}) : await t.http().get(path);
        expect([route.name, response.status, response.to?.startsWith('/sign-in')]).toEqual([route.name, 303, true]);
      }
    }
  });

  it('that requires a permission answers 403 to a member without it', async () => {
    const t = shared();
    const bo = await t.enrol({ permissions: ['org.read'] });
    const visitor = t.http(bo);
    const _token = /name="_token" value="([^"]*)"/.exec((await visitor.get('/account')).text)?.[1] ?? '';
    for (const route of routes.filter(({ permission }) => permission !== null && permission !== 'org.read')) {
      const path = pathOf(route, bo);
      const response = route.method === 'POST' ? await visitor.post(path, { _token }) : await visitor.get(path);
      expect([route.name, response.status]).toEqual([route.name, 403]);
      expect(response.text).toContain(route.permission);
    }
  });

  it('sends the security headers, is not cached, and logs only ids', {
    timeout: 120_000,
  }, async () => {
    const t = await setupConsole();
    const ada = await arrange(t, 'Unmistakable');
    for (const route of routes) {
      const path = pathWith(route, { token: 'x', ...paramsOf(route, ada) });
      const own = t.http(ada.owner);
      const responses = [
        await own.get(`${path}?q=Unmistakable%20text`),
        await own.post(path, {}),
        await own.post(path, {}, { headers: { origin: 'https://evil.example' } }),
        await own.get(path, { method: 'DELETE' }),
        await own.get(path, { headers: { authorization: 'Bearer aln_us_nonsense' } }),
        await t.http().get(path),
      ];
      for (const response of responses) expectGuarded(route.name, response);
    }
    // Each cookie, also of signing in, of an invitation and of what a redirect leaves to say.
    const { email } = ada.owner;
    const signedIn = t.http();
    const started = await signedIn.get('/sign-in');
    const password = await signedIn.submit(started, '/sign-in', { email, password: goodPassword });
    const code = { factorCode: t.nextCode(ada.owner) };
    const answered = await signedIn.submit('/sign-in/second-factor', '/sign-in/second-factor', code);
    const ended = await signedIn.submit('/account', '/account/sessions/end-others');
    const invited = await t.http().submit('/enrol', '/enrol', { link: await t.link(await t.make.member()) });
    const withCookies = [started, password, answered, ended, invited];
    for (const response of withCookies) expectGuarded('cookies', response);
    const kinds = withCookies.flatMap(({ cookies }) => cookies.map(kindOf));
    expect(new Set(kinds)).toEqual(new Set(['visit', 'session', 'browser', 'flash', 'enrolment']));
    const beside = [await t.http(ada.owner).get('/nowhere'), await t.http().get('/%'), await t.http().get('/readyz')];
    await t.owner.pool.query('alter table console_session rename to console_session_gone');
    for (const response of [...beside, await t.http(ada.owner).get('/account')]) expectGuarded('beside', response);
    const log = t.logLines.join('');
    expect(log).toContain(ada.owner.personId);
    for (const secret of ['Unmistakable', ada.owner.email, ada.owner.sessionToken, ada.key.key])
      expect(log).not.toContain(secret);
  });

  it('loads only the console’s own files, whose URLs change with their content', async () => {
    const t = shared();
    const ada = await t.enrol();
    const { text } = await t.http(ada).get('/account');
    const linked = [...text.matchAll(/<(?:link|script|img)[^>]* (?:href|src)="([^"]*)"/g)].map(([, path = '']) => path);
    expect(linked.length).toBeGreaterThan(4);
    for (const path of linked) {
      expect(path).toMatch(/^\/assets\/[\w-]{12}\/[\w.-]+$/);
      const file = await fetch(t.console.url + path, { headers: { 'accept-encoding': 'br' } });
      expect([path, file.status, file.headers.get('cache-control'), file.headers.get('content-encoding')]).toEqual([
        path,
        200,
        'public, max-age=31536000, immutable',
        'br',
      ]);
      expectGuarded(path, { headers: file.headers }, 'public, max-age=31536000, immutable');
      expect(file.headers.get('vary')).toBe('Accept-Encoding');
      expect(file.headers.get('set-cookie')).toBeNull();
      const plain = await fetch(t.console.url + path, { headers: { 'accept-encoding': 'identity' } });
      const content = Buffer.from(await plain.arrayBuffer());
      expect(path).toContain(hash('sha256', content, 'base64url').slice(0, 12));
      expect(await file.text()).toBe(content.toString());
      expect((await fetch(t.console.url + path.replace(/^\/assets\/.{12}/, '/assets/000000000000'))).status).toBe(404);
    }
  });

  it('sends Strict-Transport-Security over https only', async () => {
    const t = await setupConsole({ CONSOLE_URL: 'https://console.example.org' });
    const response = await fetch(`${t.console.url}/sign-in`);
    expect(response.headers.get('strict-transport-security')).toBe('max-age=63072000; includeSubDomains');
    const asset = /href="(\/assets[^"]*)"/.exec(await response.text())?.[1] ?? '';
    for (const path of ['/nowhere', asset]) {
      const other = await fetch(t.console.url + path);
      expect(other.headers.get('strict-transport-security')).toBe('max-age=63072000; includeSubDomains');
    }
    const plain = shared();
    expect((await fetch(`${plain.console.url}/sign-in`)).headers.get('strict-transport-security')).toBeNull();
  });
});

/** Returns what a cookie is for: the part of its name after `__Host-org-api-`. */
const kindOf = (cookie: string) => /^__Host-org-api-([a-z]+)/.exec(cookie)?.[1];

/** The headers of every response of the console, and each of its cookies. */
function expectGuarded(what: string, { headers }: { headers: Headers }, cache = 'no-store'): void {
  for (const cookie of headers.getSetCookie())
    expect([what, cookie]).toEqual([
      what,
      expect.stringMatching(/^__Host-.*; path=\/;.* samesite=lax; secure; httponly$/),
    ]);
  expect([what, Object.fromEntries(guards.map((name) => [name, headers.get(name)]))]).toEqual([
    what,
    {
      'cache-control': cache,
      'content-security-policy':
        "default-src 'none';script-src 'self';style-src 'self';img-src 'self';connect-src " +
        "'self';form-action 'self';frame-ancestors 'none';base-uri 'none'",
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'same-origin',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'access-control-allow-origin': null,
      server: null,
      'x-powered-by': null,
    },
  ]);
  expect([what, headers.get('content-type')]).toEqual([
    what,
    expect.stringMatching(/^(text\/(html|csv|css|javascript|plain); charset=utf-8|image\/svg\+xml|application\/json)/),
  ]);
}

const guards = [
  'cache-control',
  'content-security-policy',
  'x-content-type-options',
  'x-frame-options',
  'referrer-policy',
  'cross-origin-opener-policy',
  'cross-origin-resource-policy',
  'access-control-allow-origin',
  'server',
  'x-powered-by',
];
