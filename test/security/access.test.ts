/** Requests that every route of the console rejects, and what every response has. */
import { hash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type HttpVisitor, hiddenFields } from '#test/http-visitor.ts';
import { cookieName } from '../../apps/console/middleware/cookies.ts';
import { routes } from '../../apps/console/routes.ts';
import type { Route } from '../../apps/console/web/route.ts';
import { type ConsoleInstallation, goodPassword, setupConsole } from '../console/setup.ts';
import { filledForms } from './console/forms.ts';
import { expectGuarded, expectHarmless, expectNoChange, expectQuietLog } from './console/judgments.ts';
import { buildRequest, pathIn, readToken, send } from './console/requests.ts';
import { copyScenes, type Scene } from './console/scene.ts';

const copy = copyScenes('Harbor', 'Elsewhere');
const timeout = 180_000;
const atSecondFactor = '/sign-in/second-factor';

/** A visitor, the token of the forms that they send, and headers that replace a browser's. */
interface Sender {
  visitor: HttpVisitor;
  token?: string;
  headers?: Record<string, string>;
}

/** A kind of request that each of its routes rejects, otherwise as its owner sends it. */
interface Attack {
  senders: (t: ConsoleInstallation, mine: Scene, theirs: Scene) => Promise<Sender[]>;
  /** Whether it is tried on a route. */
  on: (route: Route) => boolean;
  /** Parts of its response. */
  response: (route: Route) => object;
}

const isForm = ({ method }: Route) => method === 'POST';
const isSignedIn = ({ access }: Route) => access === 'member' || access === 'person';
const redirect = (path: string) => ({ status: 303, to: expect.stringMatching(new RegExp(`^${path}`)) });

/** Origins with `Sec-Fetch-Site` that no page of the console sends. */
const listOrigins = (origin: string): [origin: string, site: string][] => {
  const { port } = new URL(origin);
  return [
    ['https://evil.example', 'cross-site'],
    ['https://evil.example', 'same-origin'],
    [`http://localhost:${Number(port) + 1}`, 'same-site'],
    [`https://localhost:${port}`, 'same-origin'],
    [`http://evil.localhost:${port}`, 'same-origin'],
    [`${origin}.evil.example`, 'same-origin'],
    ['null', 'same-origin'],
    ['', 'same-origin'],
    [origin, 'none'],
    [origin, 'same-site'],
    [origin, 'cross-site'],
  ];
};

async function enterPassword(t: ConsoleInstallation, { owner }: Scene): Promise<HttpVisitor> {
  const visitor = t.http();
  await visitor.submit('/sign-in', '/sign-in', { email: owner.email, password: goodPassword });
  return visitor;
}

const attacks: Readonly<Record<string, Attack>> = {
  'without a session': {
    senders: async (t) => [{ visitor: t.http() }],
    on: ({ access }) => access !== 'anyone',
    response: () => redirect('/sign-in'),
  },
  'after its person has signed out, also with the old cookie': {
    senders: async (t, mine) => {
      const visitor = t.http(mine.owner);
      const token = await readToken(visitor);
      await visitor.submit('/account', '/sign-out');
      return [visitor, t.http(mine.owner)].map((each) => ({ visitor: each, token }));
    },
    on: isSignedIn,
    response: () => redirect('/sign-in'),
  },
  'after the password alone, by its own cookie or a stolen one': {
    senders: async (t, mine) => {
      const visitor = await enterPassword(t, mine);
      const token = hiddenFields((await visitor.get(atSecondFactor)).text, '/sign-out')._token ?? '';
      const thief = t.http({ sessionToken: visitor.jar.get(cookieName('session', t.origin)) ?? '' });
      return [visitor, thief].map((each) => ({ visitor: each, token }));
    },
    on: isSignedIn,
    response: () => redirect(atSecondFactor),
  },
  'of a member without its permission': {
    senders: async (t, { orgId }) => {
      const visitor = t.http(await t.enrol({ orgId, permissions: ['org.read'], name: 'Harbor Reader' }));
      return [{ visitor, token: await readToken(visitor) }];
    },
    on: ({ permission }) => permission !== null && permission !== 'org.read',
    response: ({ permission }) => ({ status: 403, text: expect.stringContaining(permission ?? '') }),
  },
  'with the token of another session, of another person, of no session, or none': {
    senders: async (t, mine, theirs) => {
      const phone = await enterPassword(t, mine);
      await phone.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(mine.owner) });
      const ofNoSession = hiddenFields((await t.http().get('/sign-in')).text, '/sign-in')._token ?? '';
      const visitor = t.http(mine.owner);
      const others = [await readToken(phone), await readToken(t.http(theirs.owner)), ofNoSession];
      return [...others, mine.owner.sessionToken, 'x'.repeat(43), ''].map((token) => ({ visitor, token }));
    },
    on: (route) => isForm(route) && isSignedIn(route),
    response: () => ({ status: expect.toBeOneOf([410, 422]) }),
  },
  'from another site, or from a hidden one': {
    senders: async (t, mine) => {
      const visitor = t.http(mine.owner);
      const token = await readToken(visitor);
      return listOrigins(t.origin).map(([origin, site]) => ({
        visitor,
        token,
        headers: { origin, 'sec-fetch-site': site },
      }));
    },
    on: isForm,
    response: () => ({ status: 403 }),
  },
  'with a second factor that is older than 5 minutes': {
    senders: async (t, mine) => {
      t.pass(6 * 60_000);
      const visitor = t.http(mine.owner);
      return [{ visitor, token: await readToken(visitor) }];
    },
    on: ({ stepUp }) => stepUp,
    response: () => ({ status: 200, text: expect.stringContaining('<h1>Confirm your identity</h1>') }),
  },
};

describe('a request changes nothing and is rejected by every route', () => {
  it.each(Object.entries(attacks))('%s', { timeout }, async (_kind, { senders, on, response }) => {
    const { t, scenes } = await copy();
    const [mine] = scenes;
    const tried = await senders(t, ...scenes);
    const expectSame = await expectNoChange(t);
    const attacked = routes.filter(on);
    expect(attacked.length).toBeGreaterThan(20);
    for (const route of attacked) {
      for (const { visitor, token = '', headers = {} } of tried) {
        const what = `${route.name} ${JSON.stringify(headers)}`;
        const sent = await send(visitor, route, buildRequest(route, mine), { _token: token }, { headers });
        expectHarmless(what, sent, 'Elsewhere');
        expect(sent, what).toMatchObject(response(route));
      }
    }
    await expectSame('all routes');
    expectQuietLog(t, scenes);
  });

  it('with an API key, also beside a session, as JSON; and those with a genuine key are recorded', async () => {
    const { t, scenes } = await copy();
    const [mine] = scenes;
    const { key, id } = mine.key;
    for (const route of [...routes, null]) {
      for (const bearer of [key, 'aln_us_nonsense', 'aln_ca_0000000000000000000000000000000000000000']) {
        const options = { headers: { authorization: `Bearer ${bearer}` } };
        const visitor = t.http(mine.owner);
        const sent = await (route === null
          ? visitor.get('/nowhere', options)
          : send(visitor, route, buildRequest(route, mine), {}, options));
        expectHarmless(route?.name ?? 'nowhere', sent);
        expect([route?.name, sent.status, JSON.parse(sent.text).error]).toEqual([
          route?.name,
          403,
          'api_key_not_accepted',
        ]);
      }
    }
    await t.console.stop(); // writes the counts
    const { rows } = await t.owner.pool.query(
      `select sum(count)::int as uses, min(host(address)) as address from audit_entry
        where key_id = $1 and code = 'api_key_not_accepted' and action = 'api.console'`,
      [id],
    );
    expect(rows).toEqual([{ uses: routes.length + 1, address: '127.0.0.1' }]);
    expectQuietLog(t, scenes);
  });

  it('with a method that its path lacks, with 405 and Allow', async () => {
    const { t, scenes } = await copy();
    const [mine] = scenes;
    const visitor = t.http(mine.owner);
    const expectSame = await expectNoChange(t);
    for (const route of routes) {
      for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
        const what = `${method} ${route.name}`;
        const sent = await visitor.get(pathIn(route, mine), { method, headers: { origin: t.origin } });
        expectHarmless(what, sent);
        expect([what, sent.status, sent.headers.get('allow')]).toEqual([
          what,
          405,
          expect.stringContaining(route.method),
        ]);
      }
    }
    await expectSame('all routes');
  });
});

/** Forms of signed-in people without a fresh second factor: none of them is sensitive. */
const withoutStepUp: Readonly<Record<string, string>> = {
  joinOrganization: 'accepts an invitation by its link, in a session of both factors',
  findCompromisedKey: 'changes nothing; revoking what it finds wants one',
  changeNotifications: 'mails about webhooks and expiring keys; those about security cannot be turned off',
  assignSeat: 'daily work, taken back by the next',
  endSeat: 'daily work, taken back by the one before',
  testWebhook: 'sends a made-up event to the receiver that is subscribed already',
  verifyWebhook: 'the same, twice',
  sendDeliveryAgain: 'sends the receiver once more what it was to have anyway',
  redeliver: 'the same, of many',
  redeliverSelected: 'the same, of those that are selected',
  cancelRedelivery: 'stops that',
};

it('every change of keys, webhooks, members, roles, factors, passwords and sessions requires a fresh second factor', () => {
  const without = routes.filter((route) => isForm(route) && isSignedIn(route) && !route.stepUp);
  expect(without.map(({ name }) => name).sort()).toEqual(Object.keys(withoutStepUp).sort());
});

it('every form has valid input in these tests', () => {
  expect(Object.keys(filledForms).sort()).toEqual(
    routes
      .filter(isForm)
      .map(({ name }) => name)
      .sort(),
  );
});

/** Routes that lead to another page: of evidence, where no month is chosen. */
const toOther = new Set(['showHome', 'downloadEvidence']);

it('every page is shown to its owner, leaves no row, and its log line has ids only', { timeout }, async () => {
  const { t, scenes } = await copy();
  const [mine] = scenes;
  const visitor = t.http(mine.owner);
  for (const route of routes.filter((each) => !isForm(each) && isSignedIn(each))) {
    const expectSame = await expectNoChange(t);
    const page = await visitor.get(`${pathIn(route, mine)}?q=Harbor`);
    expectHarmless(route.name, page, 'Elsewhere');
    expect([route.name, page.status]).toEqual([route.name, toOther.has(route.name) ? 303 : 200]);
    if (route.name !== 'downloadAuditLog') await expectSame(route.name);
  }
  expectQuietLog(t, scenes);
  expect(t.logLines.join('')).toContain(mine.owner.personId);
});

it('each cookie, and each response beside the routes, is as guarded', async () => {
  const { t, scenes } = await copy();
  const [{ owner }] = scenes;
  const { email } = owner;
  const signedIn = t.http();
  const started = await signedIn.get('/sign-in');
  const password = await signedIn.submit(started, '/sign-in', { email, password: goodPassword });
  const answered = await signedIn.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(owner) });
  const ended = await signedIn.submit('/account', '/account/sessions/end-others');
  const invited = await t.http().submit('/enrol', '/enrol', { link: await t.link(await t.make.member()) });
  const withCookies = [started, password, answered, ended, invited];
  for (const { headers } of withCookies) expectGuarded('cookies', headers);
  const kinds = withCookies.flatMap(({ cookies }) =>
    cookies.map((cookie) => /^__Host-org-api-([a-z]+)/.exec(cookie)?.[1]),
  );
  expect(new Set(kinds)).toEqual(new Set(['visit', 'session', 'browser', 'flash', 'enrolment']));
  const beside = [await t.http(owner).get('/nowhere'), await t.http().get('/%'), await t.http().get('/readyz')];
  await t.owner.pool.query('alter table console_session rename to console_session_gone');
  for (const { headers } of [...beside, await t.http(owner).get('/account')]) expectGuarded('beside', headers);
});

it('a page loads only the console’s own files, whose URLs change with their content', async () => {
  const { t, scenes } = await copy();
  const { text } = await t.http(scenes[0].owner).get('/account');
  const linked = [...text.matchAll(/<(?:link|script|img)[^>]* (?:href|src)="([^"]*)"/g)].map(([, path = '']) => path);
  expect(linked.length).toBeGreaterThan(4);
  for (const path of linked) {
    expect(path).toMatch(/^\/assets\/[\w-]{12}\/[\w.-]+$/);
    const file = await fetch(t.console.url + path, { headers: { 'accept-encoding': 'br' } });
    expectGuarded(path, file.headers, 'public, max-age=31536000, immutable');
    expect([path, file.status, file.headers.get('content-encoding')]).toEqual([path, 200, 'br']);
    expect([file.headers.get('vary'), file.headers.get('set-cookie')]).toEqual(['Accept-Encoding', null]);
    const plain = await fetch(t.console.url + path, { headers: { 'accept-encoding': 'identity' } });
    const content = Buffer.from(await plain.arrayBuffer());
    expect(path).toContain(hash('sha256', content, 'base64url').slice(0, 12));
    expect(await file.text()).toBe(content.toString());
    expect((await fetch(t.console.url + path.replace(/^\/assets\/.{12}/, '/assets/000000000000'))).status).toBe(404);
  }
});

it('Strict-Transport-Security is sent over https only', async () => {
  const { t: plain } = await copy();
  expect((await fetch(`${plain.console.url}/sign-in`)).headers.get('strict-transport-security')).toBeNull();
  const t = await setupConsole({ CONSOLE_URL: 'https://console.example.org' });
  const response = await fetch(`${t.console.url}/sign-in`);
  const asset = /href="(\/assets[^"]*)"/.exec(await response.text())?.[1] ?? '';
  for (const { headers } of [
    response,
    ...(await Promise.all(['/nowhere', asset].map((path) => fetch(t.console.url + path)))),
  ])
    expect(headers.get('strict-transport-security')).toBe('max-age=63072000; includeSubDomains');
});
