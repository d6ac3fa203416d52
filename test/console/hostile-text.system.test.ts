/** Hostile input in fields, paths, queries and headers. */
import { randomUUID } from 'node:crypto';
import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import type { HttpVisitor } from '#test/http-visitor.ts';
import { routes } from '../../apps/console/routes.ts';
import type { Route } from '../../apps/console/web/route.ts';
import { filledForms } from './hostile/forms.ts';
import { arrange, type Scene } from './hostile/scene.ts';
import { fingerprintTables } from './hostile/tables.ts';
import { paramsOf, pathWith, requestOf, tokenOf } from './hostile/walk.ts';
import { type ConsoleInstallation, shareConsole } from './setup.ts';

const shared = shareConsole();

const timeout = 300_000;
const markup = `"'><img src=x onerror=alert(1)><script>alert(1)</script>&lt;`;
const formula = '=HYPERLINK("https://evil.example","+1")';
const texts = {
  markup,
  formula,
  long: 'x'.repeat(10_000),
  nul: 'a\u0000b',
  lines: 'a\r\nSet-Cookie: planted=1\r\n\r\nb',
  rightToLeft: '\u202Eחוק משפחה\u2066',
  blanks: ' \u00a0\u200b ',
  astral: '😀'.repeat(150),
  template: '{{7*7}}%s$(id)',
  empty: '',
  sql: "'; drop table person; --",
  number: '1e309',
  path: '../../etc/passwd',
  uuid: randomUUID(),
};
const pages = routes.filter(({ method, access }) => method === 'GET' && (access === 'member' || access === 'person'));
const forms = routes.filter(({ method, name }) => method === 'POST' && filledForms[name]?.fields);

describe('a text of markup, a formula, 10,000 characters, right-to-left text or controls', () => {
  it('breaks no field of any form, and appears unescaped on no page', { timeout }, async () => {
    const t = shared();
    const mine = await arrange(t, 'Harbor');
    const visitor = t.http(mine.owner);
    let sent = 0;
    for (const route of forms.filter(({ name }) => name !== 'changePassword')) {
      const { params, fields } = requestOf(route, mine);
      const _token = await tokenOf(visitor);
      for (const name of Object.keys(fields)) {
        for (const [kind, text] of Object.entries(texts)) {
          const body = { ...fields, [name]: text, _token, _form: randomUUID() };
          const response = await visitor.post(pathWith(route, params), body);
          expect([route.name, name, kind, response.status < 500]).toEqual([route.name, name, kind, true]);
          expectHarmless(response);
          sent += 1;
        }
      }
    }
    expect(sent).toBeGreaterThan(300);
    await expectPagesHarmless(t, visitor, mine);
    expectOneLineEach(t);
  });

  it.each(Object.entries({ markup, formula, long: 'x'.repeat(10_000), rightToLeft: texts.rightToLeft }))(
    'breaks no page as the name of every object: %s',
    { timeout },
    async (_kind, mark) => {
      const t = shared();
      const mine = await arrange(t, mark);
      await expectPagesHarmless(t, t.http(mine.owner), mine);
      const csv = await t.http(mine.owner).get(`/o/${mine.orgId}/audit-log/csv`);
      expect(csv.status).toBe(200);
      const fields = [...csv.text.matchAll(/"((?:[^"]|"")*)"/g)].map(([, field = '']) => field);
      expect(fields.length).toBeGreaterThan(20);
      for (const field of fields) expect(field).not.toMatch(/^[\s\p{Cf}]*[=+@\-\t\r]/u);
    },
  );
});

describe('an address', () => {
  it('with a hostile query shows a page or a 4xx, and changes nothing', { timeout }, async () => {
    const t = shared();
    const mine = await arrange(t, 'Harbor');
    const visitor = t.http(mine.owner);
    const before = await fingerprintTables(t.owner.pool);
    let requested = 0;
    for (const route of pages.filter((each) => !isFile(each))) {
      const path = pathWith(route, paramsOf(route, mine));
      for (const query of queriesOf(route, mine)) {
        const response = await visitor.get(`${path}?${query}`);
        expect([route.name, query.slice(0, 99), response.status < 500]).toEqual([route.name, query.slice(0, 99), true]);
        expectHarmless(response);
        requested += 1;
      }
    }
    expect(requested).toBeGreaterThan(300);
    expect(await fingerprintTables(t.owner.pool)).toEqual(before);
    expectNothingInherited();
  });

  it('answers 404 when it is written differently: letter case, slashes, escapes', async () => {
    const t = shared();
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
    ]) {
      const response = await raw(t, path, { cookie: cookieOf(visitor) });
      expect([path, response.status]).toEqual([path, 404]);
    }
  });
});

describe('a request', () => {
  it('uses the configured origin whatever its headers say, and echoes no header', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http(ada);
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
      cookie: cookieOf(visitor),
    };
    for (const path of ['/', '/sign-in', '/account', `/o/${ada.orgId}`, '/nowhere']) {
      const response = await raw(t, path, headers);
      expect(response.status).toBeLessThan(500);
      expect(response.text + JSON.stringify(response.headers)).not.toContain(evil);
    }
    const ways = { ...headers, origin: `http://${evil}`, 'sec-fetch-site': 'same-origin' };
    expect((await raw(t, '/account/recovery-codes', ways, 'POST')).status).toBe(403);
    expectOneLineEach(t);
  });

  it('with a method that the path lacks answers 405 with Allow, and changes nothing', async () => {
    const t = shared();
    const mine = await arrange(t, 'Harbor');
    const visitor = t.http(mine.owner);
    const before = await fingerprintTables(t.owner.pool);
    for (const route of routes.filter(({ access }) => access === 'member')) {
      const path = pathWith(route, paramsOf(route, mine));
      for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']) {
        const response = await visitor.get(path, { method, headers: { origin: t.origin } });
        expect([route.name, method, response.status]).toEqual([route.name, method, 405]);
        expect(response.headers.get('allow')).toContain(route.method);
        expect(response.headers.get('access-control-allow-origin')).toBeNull();
      }
    }
    expect(await fingerprintTables(t.owner.pool)).toEqual(before);
  });

  it('whose body is not a well-formed form is rejected', async () => {
    const t = shared();
    const mine = await arrange(t, 'Harbor');
    const visitor = t.http(mine.owner);
    const _token = await tokenOf(visitor);
    const path = `/o/${mine.orgId}/members/roles/new`;
    const headers = { cookie: cookieOf(visitor), origin: t.origin, 'sec-fetch-site': 'same-origin' };
    const form = 'application/x-www-form-urlencoded';
    for (const [type, body, status] of [
      ['multipart/form-data; boundary=x', '--x--', 415],
      ['text/plain', `_token=${_token}&name=a`, 415],
      ['application/json', JSON.stringify({ _token, name: 'a' }), 415],
      ['', `_token=${_token}&name=a`, 415],
      [form, `_token=${_token}&_form=${randomUUID()}&name=%00`, 422],
      [form, `_token=${_token}&name=${'%ff'.repeat(300)}`, 422],
      [form, '&&&===&=&%', 422],
      [form, `${'a=1&'.repeat(15_000)}`, 422],
      [form, `name=${'x'.repeat(70_000)}`, 413],
      [form, `_token=${_token}&__proto__=a&__proto__[a]=a&constructor[prototype][a]=a&name=`, 422],
    ] as const) {
      const response = await raw(t, path, { ...headers, 'content-type': type }, 'POST', body);
      expect([type, body.slice(0, 40), response.status]).toEqual([type, body.slice(0, 40), status]);
    }
    expectNothingInherited();
  });
});

/** Cursors and times that look valid and are not. */
const cursors = ({ orgId }: Scene): string[] => [
  `older_2026-02-31T00:00:00.000000Z_${orgId}`,
  `newer_9999-12-31T23:59:59.999999Z_${orgId}`,
  `older_0000-01-01T00:00:00.000000Z_${orgId}`,
  `2026-02-31_${orgId}`,
  `2026-02-31T00:00:00.000Z,${orgId}`,
  '2026-02-31T25:61',
  '9999-12-31T23:59',
  '0000-00-00T00:00',
  '-271821-04-20',
];

/**
 * Unusual queries of a page: each of its fields with each text, badly encoded, twice; and times at
 * the limits.
 */
function queriesOf({ schema }: Route, scene: Scene): string[] {
  const fields = Object.keys(schema.shape).flatMap((name) => [
    ...[...Object.values(texts), ...cursors(scene)].map((value) => `${new URLSearchParams([[name, value]])}`),
    `${name}=%ff%fe`,
    `${name}=%`,
    `${name}=a&${name}=b`,
    `${name}[]=a`,
    `${name}[__proto__]=a`,
    '__proto__=a',
  ]);
  const moments = Object.hasOwn(schema.shape, 'zone') ? edges.map((edge) => `${new URLSearchParams(edge)}`) : [];
  return [...fields, ...moments];
}

/** The latest and earliest valid times, in zones that move them beyond the limits. */
const edges = [
  '9999-12-31T23:59',
  '0001-01-01T00:00',
  '0000-01-01T00:00',
  '2026-02-31T00:00',
  '2026-12-31T24:00',
].flatMap((moment) =>
  ['America/New_York', 'Asia/Tokyo', 'Nowhere/Town', ''].map((zone) => ({ from: moment, until: moment, zone })),
);

/** No name of a field reached the prototype of objects, which the console shares with this test. */
const expectNothingInherited = () => expect([Object.keys(Object.prototype), 'a' in {}]).toEqual([[], false]);

/** Each line of the log is one line of JSON, whatever was sent. */
function expectOneLineEach({ logLines }: ConsoleInstallation): void {
  expect(logLines.length).toBeGreaterThan(0);
  for (const line of logLines) {
    expect(line.slice(0, -1)).not.toMatch(/[\r\n\u2028\u2029]/);
    expect(JSON.parse(line)).toBeTypeOf('object');
  }
}

function expectHarmless({ text }: { text: string }): void {
  expect(text).not.toContain('<img src=x');
  expect(text).not.toContain('<script>alert');
}

async function expectPagesHarmless(_t: ConsoleInstallation, visitor: HttpVisitor, scene: Scene): Promise<void> {
  for (const route of pages) {
    const page = await visitor.get(pathWith(route, paramsOf(route, scene)));
    expect([route.name, page.status < 500]).toEqual([route.name, true]);
    if (!isFile(route)) expectHarmless(page);
  }
}

const isFile = ({ name }: Route) => name === 'downloadAuditLog';

const cookieOf = ({ jar }: HttpVisitor) => [...jar].map(([name, value]) => `${name}=${value}`).join('; ');

/** Sends a request exactly as written, where fetch would normalize it. */
function raw(
  t: ConsoleInstallation,
  path: string,
  headers: Record<string, string>,
  method = 'GET',
  body = '',
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
    sent.end(body);
  });
}
