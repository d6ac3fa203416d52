/** Hostile text in each field of each page and form of the console, in paths, headers and bodies. */
import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { HttpVisitor, Visited } from '#test/http-visitor.ts';
import { routes } from '../../apps/console/routes.ts';
import type { Route } from '../../apps/console/web/route.ts';
import { type ConsoleInstallation, setupConsole } from '../console/setup.ts';
import { expectHarmless, expectNoChange, expectQuietLog, markup } from './console/judgments.ts';
import { buildRequest, pathIn, readToken } from './console/requests.ts';
import { arrange, confirmSessions, type Scene } from './console/scene.ts';
import { fingerprintTables } from './console/tables.ts';
import { reportTried, seed, tries } from './tried.ts';

const tried = reportTried('hostile text in the console');
const timeout = 600_000;
const formula = '=HYPERLINK("https://evil.example","+1")';
const texts = [
  markup,
  formula,
  '',
  ' \u00a0\u200b ',
  'x'.repeat(10_000),
  '😀'.repeat(3_000),
  'a\u0000b',
  '\uD800',
  '\u202Eחוק משפחה\u2066',
  'a\r\nSet-Cookie: planted=1\r\n\r\nb',
  '{{7*7}}%s$(id)',
  "'; drop table person; --",
  '../../etc/passwd',
  'javascript:alert(1)',
  'https://[::1]/',
  '9999-12-31',
  '-1',
  '1e400',
  '%00%ff',
  '__proto__',
  randomUUID(),
];
/** Ways to write a field that a browser does not have. */
const encodings: readonly ((name: string) => string)[] = [
  (name) => `${name}=%ff%fe`,
  (name) => `${name}=%`,
  (name) => `${name}=a&${name}=b`,
  (name) => `${name}[]=a`,
  (name) => `${name}[__proto__]=a`,
  () => '__proto__=a&constructor[prototype][a]=a',
];
/** Cursors and times that look valid and are not. */
const cursors = (orgId: string) => [
  `older_2026-02-31T00:00:00.000000Z_${orgId}`,
  `newer_9999-12-31T23:59:59.999999Z_${orgId}`,
  `older_0000-01-01T00:00:00.000000Z_${orgId}`,
  `2026-02-31_${orgId}`,
  `2026-02-31T00:00:00.000Z,${orgId}`,
  '2026-02-31T25:61',
  '0000-00-00T00:00',
  '-271821-04-20',
];
/** The latest and earliest valid times, in zones that move them beyond the limits. */
const limits = [
  '9999-12-31T23:59',
  '0001-01-01T00:00',
  '0000-01-01T00:00',
  '2026-02-31T00:00',
  '2026-12-31T24:00',
].flatMap((moment) =>
  ['America/New_York', 'Asia/Tokyo', 'Nowhere/Town'].map(
    (zone) => `${new URLSearchParams({ from: moment, until: moment, zone })}`,
  ),
);
const generated = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 60 }),
  fc.uuid(),
  fc.array(fc.constantFrom(...texts, 'org.read', 'owner'), { maxLength: 4 }),
);

/** A longer address is rejected before it is read: `forms.test.ts`. */
const longestQuery = 12_000;

const pages = routes.filter(({ method, access }) => method === 'GET' && (access === 'member' || access === 'person'));
/** Returns what is sent for a field of a route, as the text of a query or body. */
function hostileTo({ method }: Route, name: string, { orgId }: Scene, index: number): string[] {
  const encoded = (value: string | string[]) => `${new URLSearchParams([value].flat().map((each) => [name, each]))}`;
  const random = fc.sample(generated, { numRuns: tries(2), seed: seed + index });
  const written = encodings.map((write) => write(name));
  if (method === 'POST') return [...[...texts, ...random].map(encoded), ...written];
  const inQuery = [...texts, ...random, ...cursors(orgId)].map(encoded).filter(({ length }) => length < longestQuery);
  return [...inQuery, ...written, ...(name === 'zone' ? limits : [])];
}

it.each(['GET', 'POST'] as const)(
  'no hostile text in a field of a %s breaks its page, is shown unescaped, or is written by a page or a rejected form',
  { timeout },
  async (method) => {
    const t = await setupConsole();
    const mine = await arrange(t, 'Harbor');
    const fields = routes
      .filter((route) => route.method === method)
      .flatMap((route) => Object.keys(route.schema.shape).map((name) => ({ route, name })));
    expect(fields.length).toBeGreaterThan(50);
    const visitor = t.http(mine.owner);
    for (const [index, { route, name }] of fields.entries()) {
      await confirmSessions(t);
      const isMember = route.access === 'member' || route.access === 'person';
      const sent = hostileTo(route, name, mine, index);
      await expectFieldHarmless(t, isMember ? visitor : t.http(), mine, { route, name, sent });
    }
    // What forms have written, on every page and in the download.
    for (const route of pages) expectHarmless(route.name, await visitor.get(pathIn(route, mine)));
    tried('pages after them', pages.length);
    expectQuietLog(t, [mine]);
  },
);

async function expectFieldHarmless(
  t: ConsoleInstallation,
  visitor: HttpVisitor,
  mine: Scene,
  { route, name, sent }: { route: Route; name: string; sent: readonly string[] },
): Promise<void> {
  const hasSession = route.access === 'member' || route.access === 'person';
  const token = hasSession && route.method === 'POST' ? await readToken(visitor) : '';
  let before = await listState(t);
  for (const text of sent) {
    const response = await sendField(t, visitor, route, mine, { name, text, token });
    const what = `${route.name} ${name} ${text.slice(0, 99)}`;
    expectHarmless(what, response);
    if (route.method === 'GET') continue;
    const after = await listState(t);
    if (response.status >= 400) expect(after, what).toEqual(before);
    before = after;
  }
  expect(await listState(t), `${route.name} ${name}`).toEqual(before);
  tried(route.method === 'GET' ? 'queries' : 'forms', sent.length);
}

/** What is stored, without the log, which rejected forms write too, and mails about its entries. */
async function listState(t: ConsoleInstallation): Promise<Record<string, string>> {
  const { audit_entry: _, mail: __, ...rest } = await fingerprintTables(t.owner.pool);
  return rest;
}

/** Sends a route's request with the text of one field in place of its own. */
function sendField(
  t: ConsoleInstallation,
  visitor: HttpVisitor,
  route: Route,
  scene: Scene,
  { name, text, token }: { name: string; text: string; token: string },
): Promise<Visited> {
  const path = pathIn(route, scene);
  if (route.method === 'GET') return visitor.get(`${path}?${text}`);
  const { fields } = buildRequest(route, scene);
  const rest = Object.entries({ ...fields, _token: token, _form: randomUUID() }).filter(([other]) => other !== name);
  const body = new URLSearchParams(rest.flatMap(([other, value]) => [value].flat().map((each) => [other, each])));
  return visitor.send(path, { headers: formHeaders(t), body: `${body}&${text}` });
}

const formType = 'application/x-www-form-urlencoded';
const formHeaders = ({ origin }: ConsoleInstallation) => ({
  origin,
  'sec-fetch-site': 'same-origin',
  'content-type': formType,
});

it('a body that is no form, or is too large, is rejected by every form', async () => {
  const t = await setupConsole();
  const mine = await arrange(t, 'Harbor');
  const visitor = t.http(mine.owner);
  const _token = await readToken(visitor);
  const expectSame = await expectNoChange(t);
  const post = (route: Route, type: string, body: string) =>
    visitor.send(pathIn(route, mine), { headers: { ...formHeaders(t), 'content-type': type }, body });
  for (const route of routes.filter(({ method }) => method === 'POST')) {
    for (const [type, body, status] of [
      ['multipart/form-data; boundary=x', '--x--', 415],
      ['text/plain', `_token=${_token}&name=a`, 415],
      ['application/json', JSON.stringify({ _token, name: 'a' }), 415],
      ['', `_token=${_token}&name=a`, 415],
      [formType, `name=${'x'.repeat(70_000)}`, 413],
    ] as const) {
      const response = await post(route, type, body);
      expectHarmless(route.name, response);
      expect([route.name, type, response.status]).toEqual([route.name, type, status]);
    }
  }
  const form = routes.find(({ name }) => name === 'createRole') as Route;
  for (const body of [
    `_token=${_token}&_form=${randomUUID()}&name=%00`,
    `_token=${_token}&name=${'%ff'.repeat(300)}`,
    '&&&===&=&%',
    'a=1&'.repeat(15_000),
    `_token=${_token}&__proto__=a&__proto__[a]=a&constructor[prototype][a]=a&name=`,
  ])
    expect([body.slice(0, 40), (await post(form, formType, body)).status]).toEqual([body.slice(0, 40), 422]);
  await expectSame('all forms');
  expectQuietLog(t, [mine]);
});

it('an address that is written differently answers 404: letter case, slashes, escapes', async () => {
  const t = await setupConsole();
  const mine = await arrange(t, 'Harbor');
  const visitor = t.http(mine.owner);
  const keys = `/o/${mine.orgId}/keys`;
  expect((await visitor.get(keys)).status).toBe(200);
  for (const path of [
    `${keys}/`,
    `/${keys}`,
    `/o/${mine.orgId.toUpperCase()}/keys`,
    `/o/${mine.orgId};x/keys`,
    `${keys}%00`,
    `/O/${mine.orgId}/keys`,
    `/o/${mine.orgId}//keys`,
    `${keys}%2f`,
    `/o/${mine.orgId}/keys.json`,
    `/%6f/${mine.orgId}/keys`,
    `/o/${mine.orgId}/%2e%2e/${mine.orgId}/keys`,
    '/assets/../../package.json',
    '/assets/x/console.css',
    '/.git/config',
  ])
    expect([path, (await raw(t, path, { cookie: formatCookie(visitor) })).status]).toEqual([path, 404]);
});

it('a request uses the configured origin whatever its headers say, and echoes no header', async () => {
  const t = await setupConsole();
  const mine = await arrange(t, 'Harbor');
  const visitor = t.http(mine.owner);
  const evil = 'evil.example';
  const headers = {
    host: evil,
    'x-forwarded-host': evil,
    'x-forwarded-proto': 'http',
    'x-original-url': '/account',
    forwarded: `host=${evil}`,
    'x-rewrite-url': '/account',
    'x-http-method-override': 'POST',
    'user-agent': markup,
    referer: `https://${evil}/`,
    cookie: formatCookie(visitor),
  };
  for (const path of [
    '/nowhere',
    ...routes.filter(({ method }) => method === 'GET').map((route) => pathIn(route, mine)),
  ]) {
    const response = await raw(t, path, headers);
    expect(response.status).toBeLessThan(500);
    expect(response.text + JSON.stringify(response.headers)).not.toContain(evil);
  }
  const ways = { ...headers, origin: `http://${evil}`, 'sec-fetch-site': 'same-origin' };
  expect((await raw(t, '/account/recovery-codes', ways, 'POST')).status).toBe(403);
  expectQuietLog(t, [mine]);
});

const formatCookie = ({ jar }: HttpVisitor) => [...jar].map(([name, value]) => `${name}=${value}`).join('; ');

/** Sends a request exactly as written, where fetch would normalize it. */
function raw(
  t: ConsoleInstallation,
  path: string,
  headers: Record<string, string>,
  method = 'GET',
): Promise<{ status: number; headers: object; text: string }> {
  const { hostname, port } = new URL(t.console.url);
  return new Promise((resolve, reject) => {
    const given = { host: new URL(t.origin).host, ...headers }; // at its address, the console redirects to its name
    const sent = request({ host: hostname, port, path, method, headers: given, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }));
    });
    sent.on('error', reject);
    sent.end();
  });
}
