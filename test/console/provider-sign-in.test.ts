/**
 * Signing in with the OpenID provider of an organization: against `oidc-provider`, and against one whose answers are
 * changed and signed with its key.
 */
import type { ServerResponse } from 'node:http';
import { describe, expect, it, vi } from 'vitest';
import { type Claims, providerClient, startLyingProvider } from '#test/lying-provider.ts';
import { allowSockets } from '#test/socket-guard.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import {
  addProvider,
  atSecondFactor,
  begin,
  complete,
  findProviderUrl,
  getSlug,
  signInAtProvider,
} from './at-provider.ts';
import { type ConsoleInstallation, codeAt, setupConsole, shareConsole } from './setup.ts';

const shared = shareConsole();

const countSessions = async (t: ConsoleInstallation, personId: string) =>
  (await t.owner.pool.query('select from console_session where person_id = $1', [personId])).rowCount;

async function setup(t: ConsoleInstallation = shared()) {
  const member = await t.enrol();
  // The sign-ins that other tests have begun at providers, of which a network has 50.
  await t.owner.pool.query('delete from sign_in_failure');
  const provider = await startLyingProvider(`${t.origin}/sign-in/callback/${member.orgId}`);
  const providerId = await addProvider(t, provider, member);
  return { ...t, member, provider, providerId, slug: await getSlug(t, member.orgId) };
}

describe('a sign-in at the provider', () => {
  it('starts a session that needs the second factor, and then opens the provider’s organization only', async () => {
    const t = await setup();
    const other = await t.enrol();
    await t.make.member({ orgId: other.orgId, userId: t.member.personId });
    const visitor = t.http();

    const url = await begin(visitor, t.slug);
    expect(url.searchParams.get('scope')).toBe('openid');
    // Neither max_age nor acr_values: nothing that a provider says about when and how is read.
    expect([...url.searchParams.keys()].sort()).toEqual(
      'client_id code_challenge code_challenge_method nonce redirect_uri response_type scope state'.split(' '),
    );
    const done = await complete(visitor, await t.provider.browse(url));
    expect([done.status, done.to]).toEqual([303, atSecondFactor]);
    expect((await visitor.get(`/o/${t.member.orgId}`)).to).toContain(atSecondFactor);

    const full = await visitor.submit(atSecondFactor, atSecondFactor, { factorCode: t.nextCode(t.member) });
    expect(full.status).toBe(303);
    expect((await visitor.get(`/o/${t.member.orgId}`)).status).toBe(200);
    expect((await visitor.get(`/o/${other.orgId}`)).status).toBe(404);
  });

  it('finds the organization by its short name as a keyboard may write it, with a capital', async () => {
    const t = await setup();
    expect((await begin(t.http(), t.slug.toUpperCase())).origin).toBe(new URL(t.provider.issuer).origin);
  });

  it('is accepted whatever address the provider sends, and when its key has changed meanwhile', async () => {
    const t = await setup();
    const outcomes = [];
    for (const claims of [{ email: 'new@example.org' }, { email: t.member.email, email_verified: false }]) {
      const visitor = t.http();
      const back = await t.provider.browse(await begin(visitor, t.slug));
      t.provider.behavior.lie = (given) => ({ ...given, ...claims });
      outcomes.push((await complete(visitor, back)).to);
    }
    t.provider.behavior.lie = null;
    const visitor = t.http();
    const url = await begin(visitor, t.slug);
    const back = await t.provider.browse(url);
    t.provider.rotateKey();
    outcomes.push((await complete(visitor, back)).to);
    expect(outcomes).toEqual([atSecondFactor, atSecondFactor, atSecondFactor]);
  });

  it('stays in no log: neither a code, a state, a token nor the client’s secret', async () => {
    const t = await setup();
    const visitor = t.http();
    const back = await t.provider.browse(await begin(visitor, t.slug));
    await complete(visitor, back);
    await complete(visitor, back);
    const { rows } = await t.owner.pool.query(`select detail::text from audit_entry where organization_id = $1`, [
      t.member.orgId,
    ]);
    const written = JSON.stringify([t.logLines, rows]);
    expect(written).toContain('completeProviderSignIn');
    for (const secret of [
      back.searchParams.get('code') ?? 'none',
      back.searchParams.get('state') ?? 'none',
      providerClient.clientSecret,
      'account-1',
    ])
      expect(written).not.toContain(secret);
  });
});

describe('a response is rejected, and no session starts', () => {
  const changed = (change: (answer: URL) => void) => (answer: URL) => {
    change(answer);
    return answer;
  };
  const responses: [name: string, change: (answer: URL) => URL][] = [
    ['with another state', changed(({ searchParams }) => searchParams.set('state', 'another'))],
    ['with another iss', changed(({ searchParams }) => searchParams.set('iss', 'https://evil.example'))],
    ['without iss', changed(({ searchParams }) => searchParams.delete('iss'))],
    ['with another code', changed(({ searchParams }) => searchParams.set('code', 'another'))],
    [
      'that says that access was denied',
      changed(({ searchParams }) => {
        searchParams.delete('code');
        searchParams.set('error', 'access_denied');
      }),
    ],
  ];
  const lies: [name: string, lie: (claims: Claims) => Claims][] = [
    ['of another issuer', (claims) => ({ ...claims, iss: 'https://evil.example' })],
    ['for another audience', (claims) => ({ ...claims, aud: 'another' })],
    ['for two audiences', (claims) => ({ ...claims, aud: ['console', 'another'] })],
    ['for two audiences, to the console', (claims) => ({ ...claims, aud: ['console', 'another'], azp: 'console' })],
    ['with another nonce', (claims) => ({ ...claims, nonce: 'another' })],
    ['that has expired', (claims) => ({ ...claims, exp: 1 })],
    ['without a subject', ({ sub: _, ...claims }) => claims],
    ['with an unknown subject', (claims) => ({ ...claims, sub: 'account-9' })],
    ['with a subject in other letters', (claims) => ({ ...claims, sub: 'ACCOUNT-1' })],
  ];

  async function judge(t: Awaited<ReturnType<typeof setup>>, change: (answer: URL) => URL = (answer) => answer) {
    const visitor = t.http();
    const before = await countSessions(t, t.member.personId);
    const back = await t.provider.browse(await begin(visitor, t.slug));
    const done = await complete(visitor, change(back));
    expect(await countSessions(t, t.member.personId)).toBe(before);
    expect([...visitor.jar.keys()].filter((name) => /api-session/.test(name))).toEqual([]);
    return done;
  }

  it.each(responses)('%s', async (name, change) => {
    const { status, text } = await judge(await setup(), change);
    expect([status, text.includes('The provider denied the sign-in.')]).toEqual([403, name.includes('denied')]);
  });

  it.each(lies)('an ID token %s', async (_name, lie) => {
    const t = await setup();
    t.provider.behavior.lie = lie;
    expect((await judge(t)).status).toBe(403);
  });

  it('an ID token with an unknown subject and the verified address of a member', async () => {
    const t = await setup();
    t.provider.behavior.lie = (claims) => ({
      ...claims,
      sub: 'account-9',
      email: t.member.email,
      email_verified: true,
    });
    expect((await judge(t)).status).toBe(403);
  });

  it('an ID token with a forged signature', async () => {
    const t = await setup();
    t.provider.behavior.lie = (claims) => ({ ...claims, extra: 1 });
    t.provider.behavior.isForged = true;
    expect((await judge(t)).status).toBe(403);
  });

  it('for a suspended member', async () => {
    const t = await setup();
    await t.owner.pool.query(`update membership set status = 'suspended' where person_id = $1`, [t.member.personId]);
    expect((await judge(t)).status).toBe(403);
  });

  it('that was used before, in the same browser and for another sign-in', async () => {
    const t = await setup();
    const visitor = t.http();
    const back = await t.provider.browse(await begin(visitor, t.slug));
    expect((await complete(visitor, back)).to).toBe(atSecondFactor);
    const after = await countSessions(t, t.member.personId);
    expect((await complete(visitor, back)).status).toBe(403);
    const second = t.http();
    const url = await begin(second, t.slug);
    const replayed = new URL(back);
    replayed.searchParams.set('state', url.searchParams.get('state') ?? '');
    expect((await complete(second, replayed)).status).toBe(403);
    expect(await countSessions(t, t.member.personId)).toBe(after);
  });

  it('in a browser that did not begin it, and later than ten minutes', async () => {
    const t = await setup();
    const before = await countSessions(t, t.member.personId);
    const visitor = t.http();
    const back = await t.provider.browse(await begin(visitor, t.slug));
    expect((await complete(t.http(), back)).status).toBe(403);
    t.pass(11 * 60_000);
    expect((await complete(visitor, back)).status).toBe(403);
    expect(await countSessions(t, t.member.personId)).toBe(before);
  });

  it('with the code of another verifier', async () => {
    const t = await setup();
    const done = await judge({
      ...t,
      provider: {
        ...t.provider,
        async browse(url) {
          const back = await t.provider.browse(url);
          await t.owner.pool.query(`update sso_waiting set verifier = repeat('x', 43)`);
          return back;
        },
      },
    });
    expect(done.status).toBe(403);
  });

  it('of the provider of another organization: the same account there, and its answer for a sign-in here', async () => {
    const t = await setup();
    const before = await countSessions(t, t.member.personId);
    const other = await t.enrol();
    const evil = await startLyingProvider(`${t.origin}/sign-in/callback/${other.orgId}`);
    await addProvider(t, evil, other, 'account-2');
    evil.behavior.lie = (claims) => ({ ...claims, email: t.member.email, email_verified: true });
    const visitor = t.http();
    const there = await complete(visitor, await evil.browse(await begin(visitor, await getSlug(t, other.orgId))));
    expect(there.status).toBe(403);
    const mixed = t.http();
    const url = await begin(mixed, t.slug);
    const back = await evil.browse(
      url.href.replaceAll(t.provider.issuer, evil.issuer).replace(t.member.orgId, other.orgId),
    );
    back.pathname = back.pathname.replace(other.orgId, t.member.orgId);
    expect((await complete(mixed, back)).status).toBe(403);
    expect(await countSessions(t, t.member.personId)).toBe(before);
  });

  it('at the address of another organization: no provider gets a code that was not asked of it', async () => {
    const t = await setup();
    const other = await t.enrol();
    const visitor = t.http();
    const back = await t.provider.browse(await begin(visitor, t.slug));
    back.pathname = back.pathname.replace(t.member.orgId, other.orgId);
    const before = t.provider.requests.length;
    expect((await complete(visitor, back)).status).toBe(403);
    expect(t.provider.requests.slice(before)).toEqual([]);
  });
});

describe('the provider', () => {
  it('is asked what it publishes again after a minute', async () => {
    const t = await setup(await setupConsole());
    const countAfter = async (ms: number) => {
      t.pass(ms);
      await begin(t.http(), t.slug);
      return t.provider.requests.length;
    };
    expect([await countAfter(0), await countAfter(59_000), await countAfter(2_000)]).toEqual([1, 1, 2]);
  });

  it('that hangs, redirects or sends without end ends the sign-in with a sentence; passwords still work', async () => {
    const t = await setup();
    const responses: ((path: string, response: ServerResponse) => boolean)[] = [
      () => true,
      (_path, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        const write = (error?: Error | null) => void (error ?? response.write(' '.repeat(65_536), write));
        write();
        return true;
      },
      (_path, response) => {
        response.writeHead(302, { location: 'https://example.com/' }).end();
        return true;
      },
    ];
    for (const respond of responses) {
      t.provider.behavior.answer = respond;
      const visitor = t.http();
      const page = await visitor.submit('/sign-in/organization', '/sign-in/organization', { organization: t.slug });
      expect([page.status, page.text.includes('can’t be reached')]).toEqual([422, true]);
    }
    expect(t.provider.requests.filter((line) => line !== 'GET /.well-known/openid-configuration')).toEqual([]);
    expect((await t.http().get('/sign-in')).status).toBe(200);
  });

  it('is asked once a minute, and not at all by a network with 50 sign-ins that were not completed', async () => {
    const t = await setup(await setupConsole());
    const visitor = t.http();
    const statuses = [];
    for (let nth = 0; nth < 51; nth += 1)
      statuses.push(
        (await visitor.submit('/sign-in/organization', '/sign-in/organization', { organization: t.slug })).status,
      );
    expect(statuses.filter((status) => status === 200).length).toBeLessThanOrEqual(50);
    expect(statuses.at(-1)).toBe(429);
    expect(t.provider.requests).toEqual(['GET /.well-known/openid-configuration']);
  });
});

/** Responds with JSON. */
const sendJson = (response: ServerResponse, body: unknown): true => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  return true;
};
const discovery = '/.well-known/openid-configuration';

describe('an answer that does not get to the provider', () => {
  /** A browser with an answer of the provider, which it has not brought back. */
  async function setupAnswer() {
    const t = await setup();
    const visitor = t.http();
    const back = await t.provider.browse(await begin(visitor, t.slug));
    const published = (await (await fetch(t.provider.issuer + discovery)).json()) as Record<string, unknown>;
    const countTokens = () => t.provider.requests.filter((line) => line === 'POST /token').length;
    return { ...t, visitor, back, published, countTokens };
  }

  it('because the provider hangs, fails or cannot be connected to, can be tried again', async () => {
    const t = await setupAnswer();
    const closed = `http://127.0.0.1:${await getFreePort()}`;
    allowSockets('OpenID provider', closed);
    const outages: ((path: string, response: ServerResponse) => boolean)[] = [
      () => true,
      (_path, response) => {
        response.writeHead(500).end();
        return true;
      },
      (path, response) =>
        path === discovery && sendJson(response, { ...t.published, token_endpoint: `${closed}/token` }),
    ];
    for (const outage of outages) {
      t.provider.behavior.answer = outage;
      const away = await complete(t.visitor, t.back);
      expect([away.status, away.text.includes('Reload this page')]).toEqual([503, true]);
    }
    expect(t.countTokens()).toBe(0);
    t.provider.behavior.answer = null;
    expect((await complete(t.visitor, t.back)).to).toBe(atSecondFactor);
    expect(t.countTokens()).toBe(1);
  });

  it('is tried ten times: then the provider is not asked again', async () => {
    const t = await setupAnswer();
    t.provider.behavior.answer = (_path, response) => {
      response.writeHead(500).end();
      return true;
    };
    const before = t.provider.requests.length;
    const statuses = [];
    for (let nth = 0; nth < 12; nth += 1) statuses.push((await complete(t.visitor, t.back)).status);
    expect(statuses).toEqual([...Array<number>(10).fill(503), 403, 403]);
    expect(t.provider.requests.length - before).toBe(10);
  });

  it('because four sign-ins wait for the provider can be tried again', async () => {
    const t = await setupAnswer();
    const others = [];
    for (let nth = 0; nth < 4; nth += 1) {
      const visitor = t.http();
      others.push({ visitor, back: await t.provider.browse(await begin(visitor, t.slug)) });
    }
    const held: ServerResponse[] = [];
    t.provider.behavior.answer = (_path, response) => held.push(response) > 0;
    const waiting = others.map(({ visitor, back }) => complete(visitor, back));
    await vi.waitFor(() => expect(held.length).toBe(4), { timeout: 4_000, interval: 5 });
    const busy = await complete(t.visitor, t.back);
    expect([busy.status, busy.text.includes('Too many people are signing in')]).toEqual([503, true]);
    for (const response of held) response.writeHead(503).end();
    for (const done of await Promise.all(waiting)) expect(done.status).toBe(503);
    t.provider.behavior.answer = null;
    for (const { visitor, back } of [...others, t]) expect((await complete(visitor, back)).to).toBe(atSecondFactor);
  });

  it('because it is another one leaves the sign-in that this browser has begun', async () => {
    const t = await setupAnswer();
    const forged = new URL(t.back);
    forged.searchParams.set('state', 'another');
    expect((await complete(t.visitor, forged)).status).toBe(403);
    for (const [name, value] of [
      ['iss', 'https://evil.example'],
      ['error', 'access_denied'],
    ] as const) {
      const rejected = new URL(t.back);
      rejected.searchParams.set(name, value);
      expect((await complete(t.visitor, rejected)).status).toBe(403);
    }
    // A second window begins another sign-in; the answer of the first one is no one's.
    const second = await t.provider.browse(await begin(t.visitor, t.slug));
    expect((await complete(t.visitor, t.back)).status).toBe(403);
    expect(t.countTokens()).toBe(0);
    expect((await complete(t.visitor, second)).to).toBe(atSecondFactor);
  });
});

describe('an answer that got to the provider', () => {
  it('works no second time, also when the provider has not responded, and reaches it once', async () => {
    const t = await setup();
    const visitor = t.http();
    const back = await t.provider.browse(await begin(visitor, t.slug));
    t.provider.behavior.answer = (path) => path === '/token';
    const hung = await complete(visitor, back);
    expect([hung.status, hung.text.includes('Start again')]).toEqual([503, true]);
    t.provider.behavior.answer = null;
    expect((await complete(visitor, back)).status).toBe(403);
    expect(t.provider.requests.filter((line) => line === 'POST /token')).toHaveLength(1);
  });

  it('works once of two at the same time', async () => {
    const t = await setup();
    const visitor = t.http();
    const back = await t.provider.browse(await begin(visitor, t.slug));
    const done = await Promise.all([complete(visitor, back), complete(visitor, back)]);
    expect(done.map(({ status }) => status).sort()).toEqual([303, 403]);
    expect(t.provider.requests.filter((line) => line === 'POST /token')).toHaveLength(1);
  });
});

describe('whose error it is', () => {
  const key = { kty: 'RSA', use: 'sig', alg: 'RS256', e: 'AQAB' };
  const responses: [name: string, path: string, body: unknown][] = [
    ['publishes no keys', '/jwks', {}],
    ['publishes keys that are none', '/jwks', { keys: [{ ...key, n: '!' }] }],
    ['publishes no key that fits', '/jwks', { keys: [{ ...key, kid: 'another', n: 'x' }] }],
    ['publishes a list of nothing', '/jwks', { keys: [null, 5, 'x'] }],
    ['publishes an empty address for tokens', discovery, { token_endpoint: '' }],
    ['publishes no address for tokens', discovery, { token_endpoint: undefined }],
    ['publishes an address that is none', discovery, { token_endpoint: 'no address' }],
    ['publishes no keys’ address', discovery, { jwks_uri: undefined }],
    ['publishes another issuer', discovery, { issuer: 'https://evil.example' }],
    ['publishes no issuer', discovery, { issuer: undefined }],
    ['publishes an issuer that is no text', discovery, { issuer: 5 }],
    ['sends no token', '/token', { access_token: 'x', token_type: 'bearer' }],
    ['sends a token that is none', '/token', { access_token: 'x', token_type: 'bearer', id_token: 'a.b.c' }],
    ['sends a token in parts', '/token', { access_token: 'x', token_type: 'bearer', id_token: 'a.b.c.d.e' }],
    ['sends no kind of token', '/token', { access_token: 'x' }],
    ['sends a list', '/token', []],
  ];

  it.each(responses)('a provider that %s causes no internal error', async (_name, at, body) => {
    const t = await setup();
    const visitor = t.http();
    const back = await t.provider.browse(await begin(visitor, t.slug));
    const published = (await (await fetch(t.provider.issuer + discovery)).json()) as object;
    t.provider.behavior.answer = (path, response) =>
      path === at && sendJson(response, at === discovery ? { ...published, ...(body as object) } : body);
    expect((await complete(visitor, back)).status).toBeOneOf([403, 503]);
    expect(t.logLines.filter((line) => line.includes('internal error'))).toEqual([]);
  });

  it.each(['!!', 'a', ''])('nor does one whose signature is %j', async (signature) => {
    const t = await setup();
    const visitor = t.http();
    const back = await t.provider.browse(await begin(visitor, t.slug));
    t.provider.behavior.signature = signature;
    expect((await complete(visitor, back)).status).toBe(403);
    expect(t.logLines.filter((line) => line.includes('internal error'))).toEqual([]);
  });

  it('a statement that fails while an answer is judged is an internal error, and in the log', async () => {
    const t = await setup(await setupConsole());
    const visitor = t.http();
    const back = await t.provider.browse(await begin(visitor, t.slug));
    await t.owner.pool.query('revoke delete on sso_waiting from org_api_console');
    const failed = await complete(visitor, back);
    expect([failed.status, failed.text.includes('Something went wrong')]).toEqual([500, true]);
    expect(t.logLines.some((line) => line.includes('internal error'))).toBe(true);
    expect(t.provider.requests.filter((line) => line === 'POST /token')).toEqual([]);
    await t.owner.pool.query('grant delete on sso_waiting to org_api_console');
    expect((await complete(visitor, back)).to).toBe(atSecondFactor);
  });
});

it('a browser that has signed in at the provider has no guesses of the password of its own', async () => {
  const t = await setup(await setupConsole());
  const guess = (visitor: ReturnType<typeof t.http>) =>
    visitor.submit('/sign-in', '/sign-in', { email: t.member.email, password: 'wrong wrong wrong' });
  const statuses = [];
  for (let nth = 0; nth < 11; nth += 1) {
    const visitor = await signInAtProvider(t, t.provider, t.member);
    await visitor.submit('/account', '/sign-out');
    statuses.push((await guess(visitor)).status);
  }
  expect(statuses).toEqual([...Array<number>(10).fill(422), 429]);
  // The same browser, again and again.
  const visitor = await signInAtProvider(t, t.provider, t.member);
  await visitor.submit('/account', '/sign-out');
  expect((await guess(visitor)).status).toBe(429);
});

describe('an account is linked', () => {
  it('from a full session with a fresh second factor, and replaces the person’s other one', async () => {
    const t = await setup();
    const visitor = t.http(t.member);
    t.provider.behavior.account = 'account-2';
    const path = `/account/providers/${t.member.orgId}/link`;
    const url = findProviderUrl(await visitor.submit('/account', path));
    const done = await complete(visitor, await t.provider.browse(url));
    expect(done.to).toBe('/account');
    const { rows } = await t.owner.pool.query('select subject from sso_subject where provider_id = $1', [t.providerId]);
    expect(rows).toEqual([{ subject: 'account-2' }]);
    t.pass(6 * 60_000);
    expect((await visitor.submit('/account', path)).text).toContain('Confirm your identity');
  });

  it('after a choice at the provider, which remembers one; the linked one changes nothing', async () => {
    const t = await setup();
    const jar = new Map<string, string>();
    const path = `/account/providers/${t.member.orgId}/link`;
    await t.provider.browse(await begin(t.http(), t.slug), jar);
    t.provider.behavior.account = 'account-2';
    const signsIn = t.http();
    const remembered = await complete(signsIn, await t.provider.browse(await begin(signsIn, t.slug), jar));
    expect(remembered.to).toBe(atSecondFactor);
    const first = t.http(await t.enrol({ orgId: t.member.orgId }));
    expect(findProviderUrl(await first.submit('/account', path)).searchParams.get('prompt')).toBe(null);

    const visitor = t.http(t.member);
    const link = async () =>
      complete(visitor, await t.provider.browse(findProviderUrl(await visitor.submit('/account', path)), jar));
    const find = async () => {
      const { rows } = await t.owner.pool.query(
        `select subject, created_at, (select count(*) from audit_entry a where a.action = 'sign_in.link_provider'
           and a.person_id = s.person_id) as entries from sso_subject s where provider_id = $1`,
        [t.providerId],
      );
      return rows;
    };
    expect((await link()).to).toBe('/account');
    const linked = await find();
    expect(linked).toMatchObject([{ subject: 'account-2', entries: '1' }]);
    expect((await visitor.get('/account')).text).toContain('Account linked.');
    expect((await link()).to).toBe('/account');
    expect(await find()).toEqual(linked);
    expect((await visitor.get('/account')).text).toContain('This account is linked already. To link another account,');
  });

  it('after a sign-in at a provider that does not let its people choose an account', async () => {
    const t = await setup();
    const published = (await (await fetch(t.provider.issuer + discovery)).json()) as object;
    t.provider.behavior.answer = (route, response) =>
      route === discovery && sendJson(response, { ...published, prompt_values_supported: ['none', 'login'] });
    const visitor = t.http(t.member);
    const url = findProviderUrl(await visitor.submit('/account', `/account/providers/${t.member.orgId}/link`));
    expect(url.searchParams.get('prompt')).toBe('login');
    t.provider.behavior.account = 'account-2';
    expect((await complete(visitor, await t.provider.browse(url))).to).toBe('/account');
  });

  it('never for another session than the one that began it, nor one that another member has', async () => {
    const t = await setup();
    const colleague = await t.enrol({ orgId: t.member.orgId });
    const path = `/account/providers/${t.member.orgId}/link`;
    const visitor = t.http(colleague);
    const taken = await complete(
      visitor,
      await t.provider.browse(findProviderUrl(await visitor.submit('/account', path))),
    );
    expect(taken.status).toBe(403);
    t.provider.behavior.account = 'account-2';
    const back = await t.provider.browse(findProviderUrl(await visitor.submit('/account', path)));
    const another = t.http(t.member);
    for (const [name, value] of visitor.jar) if (/provider-sign-in/.test(name)) another.jar.set(name, value);
    expect((await complete(another, back)).status).toBe(403);
    const { rows } = await t.owner.pool.query('select subject, person_id from sso_subject where provider_id = $1', [
      t.providerId,
    ]);
    expect(rows).toEqual([{ subject: 'account-1', person_id: t.member.personId }]);
  });

  it('by the organization’s own link, in the transaction that uses it, for a person without a password', async () => {
    const t = await setup();
    const invited = await t.make.member({ orgId: t.member.orgId, status: 'invited' });
    const visitor = t.http();
    await visitor.openLink(await t.link(invited));
    t.provider.behavior.account = 'account-2';
    const url = findProviderUrl(await visitor.submit('/enrol/step', '/enrol/provider'));
    const chosen = await complete(visitor, await t.provider.browse(url));
    expect(chosen.to).toBe('/enrol/factor');
    const subjects = async () =>
      (await t.owner.pool.query('select subject from sso_subject where person_id = $1', [invited.userId])).rows;
    expect(await subjects()).toEqual([]);
    const setupPage = await visitor.submit('/enrol/factor', '/enrol/totp/start');
    const [, secret = ''] = /name="secret" value="([^"]*)"/.exec(setupPage.text) ?? [];
    const done = await visitor.submit(setupPage, '/enrol/totp', { code: codeAt(secret, t.now()) });
    expect(done.status).toBe(200);
    expect(await subjects()).toEqual([{ subject: 'account-2' }]);
    expect((await visitor.get(`/o/${t.member.orgId}`)).status).toBe(200);
    const { rows } = await t.owner.pool.query('select password_hash from sign_in where person_id = $1', [
      invited.userId,
    ]);
    expect(rows).toEqual([{ password_hash: null }]);
  });

  it('not by a link of another organization, nor with the account of a member; the link is not used up', async () => {
    const t = await setup();
    const invited = await t.make.member({ orgId: t.member.orgId, status: 'invited' });
    const other = await t.enrol();
    const evil = await startLyingProvider(`${t.origin}/sign-in/callback/${t.member.orgId}`);
    const evilId = await addProvider(t, evil, other, 'account-3');
    const visitor = t.http();
    await visitor.openLink(await t.link(invited));
    const url = findProviderUrl(await visitor.submit('/enrol/step', '/enrol/provider'));
    expect((await complete(visitor, await t.provider.browse(url))).status).toBe(403);
    const again = findProviderUrl(await visitor.submit('/enrol/step', '/enrol/provider'));
    await t.owner.pool.query('update sso_waiting set provider_id = $1', [evilId]);
    expect(
      (await complete(visitor, await evil.browse(again.href.replaceAll(t.provider.issuer, evil.issuer)))).status,
    ).toBe(403);
    const { rows } = await t.owner.pool.query('select subject, password_hash from enrolment where person_id = $1', [
      invited.userId,
    ]);
    expect(rows).toEqual([{ subject: null, password_hash: null }]);
  });
});
