/** API keys over HTTP: requests that no browser sends, and input that people type. */
import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { scopes } from '#domain/contract/scopes.ts';
import { listKeys } from '#domain/keys/list.ts';
import { type HttpVisitor, unescaped } from '#test/http-visitor.ts';
import { startTestApi } from '#test/setup.ts';
import { writeEntries } from '#test/write-entries.ts';
import { curlLine, firstReads } from '../../apps/console/pages/keys/first-call.ts';
import { factorFields } from '../../apps/console/web/second-factor.ts';
import { type ConsoleInstallation, type Enrolled, shareConsole } from './setup.ts';

const shared = shareConsole();

const keyForm = /aln_us_[0-9A-Za-z]{40}/;
const fields = { name: 'Monthly report', scopes: ['org.read'], expiry: 'offered' };

const newKeyAt = ({ orgId }: Pick<Enrolled, 'orgId'>) => `/o/${orgId}/keys/new`;
const createKey = (visitor: HttpVisitor, ada: Enrolled, more: Record<string, string | string[]> = {}) =>
  visitor.submit(newKeyAt(ada), newKeyAt(ada), { ...fields, ...more });
const listAllKeys = (t: ConsoleInstallation, { orgId }: Enrolled) => listKeys(t.owner, orgId, t.now());
const toMember = ({ orgId, personId }: Enrolled) => ({ orgId, userId: personId, roleId: null });

describe('creating a key', () => {
  it('shows the key once with a working curl line, and never in a list, a log or the database', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http(ada);
    const made = await createKey(visitor, ada);
    expect(made.status).toBe(200);
    expect(made.text).toMatch(/<dt>Name<\/dt><dd><bdi>Monthly report<\/bdi>.*?<dt>Expires<\/dt><dd><time /s);
    const key = keyForm.exec(made.text)?.[0] ?? '';
    expect(unescaped(made.text)).toContain(
      `curl -H "Authorization: Bearer ${key}" http://127.0.0.1:8080/v1/orgs/${ada.orgId}`,
    );
    const [row] = await listAllKeys(t, ada);
    for (const path of ['/keys', `/keys/${row?.id}`, '/audit-log', '/keys/new'])
      expect((await visitor.get(`/o/${ada.orgId}${path}`)).text).not.toContain(key);
    expect(t.logLines.join('')).not.toContain(key);
    const { rows } = await t.owner.pool.query(
      `select (select jsonb_agg(to_jsonb(k)) from api_key k) as keys, (select jsonb_agg(to_jsonb(a))
        from audit_entry a) as entries`,
    );
    expect(JSON.stringify(rows)).not.toContain(key.slice(11, -4));
    const entry = await t.owner.pool.query(
      `select host(address) as address from audit_entry where action = 'key.create'`,
    );
    expect(entry.rows).toEqual([{ address: '127.0.0.1' }]);
  });

  it('accepts each scope, and the curl line for it gets 200', async () => {
    const t = shared();
    const ada = await t.enrol();
    const api = await startTestApi(t.database, { REDIS_URL: '' });
    expect(firstReads.map(([scope]) => scope).sort()).toEqual([...scopes].sort());
    for (const scope of scopes) {
      const made = await createKey(t.http(ada), ada, { scopes: [scope] });
      const key = keyForm.exec(made.text)?.[0] ?? '';
      const line = curlLine({ apiUrl: api.url, organizationId: ada.orgId, key, scopes: [scope] });
      const url = line.split(' ').at(-1) ?? '';
      const response = await fetch(url, { headers: { authorization: `Bearer ${key}` } });
      expect([scope, response.status]).toEqual([scope, 200]);
    }
  });

  it('offers 90 days, no expiry, or a date: the key expires at the end of that day in UTC', async () => {
    const t = shared();
    const ada = await t.enrol();
    for (const more of [{}, { expiry: 'never' }, { expiry: 'date', expiresOn: '2031-05-06' }])
      expect((await createKey(t.http(ada), ada, more)).status).toBe(200);
    const [offered, never, day] = (await listAllKeys(t, ada)).map(({ expiresAt }) => expiresAt);
    expect(offered?.getTime()).toBeCloseTo(t.now().getTime() + 90 * 86_400_000, -6);
    expect([never, day?.toISOString()]).toEqual([null, '2031-05-06T23:59:59.999Z']);
    for (const expiresOn of ['', 'tomorrow', '2031-02-30', '2020-01-01']) {
      const rejected = await createKey(t.http(ada), ada, { expiry: 'date', expiresOn });
      expect([expiresOn, rejected.status]).toEqual([expiresOn, 422]);
      expect(rejected.text).toContain('Monthly report');
    }
  });

  it('offers only scopes that its creator holds, explains the others, and rejects a form that asks for more', async () => {
    const t = shared();
    const bo = await t.enrol({ permissions: ['org.keys.manage', 'org.read'] });
    const page = await t.http(bo).get(newKeyAt(bo));
    expect(page.text).toMatch(/value="org\.clients\.read" disabled/);
    expect(page.text).toContain('Your roles don’t include this permission');
    expect(page.text).not.toMatch(/value="org\.read" disabled/);
    const rejected = await createKey(t.http(bo), bo, { scopes: ['org.read', 'org.clients.read'] });
    expect(rejected.status).toBe(422);
    expect(rejected.text).toContain('doesn’t have org.clients.read');
    for (const scopes of [[], ['org.nothing'], ['org.keys.manage']])
      expect((await createKey(t.http(bo), bo, { scopes })).status).toBe(422);
    expect(await listAllKeys(t, bo)).toEqual([]);
  });

  it('asks for a factor of the console after 5 minutes, takes no claim for it, and then creates the requested key', async () => {
    const t = shared();
    const ada = await t.enrol();
    t.pass(6 * 60_000);
    const visitor = t.http(ada);
    const requested = await createKey(visitor, ada);
    expect(requested.text).toContain('Confirm your identity');
    // A step-up takes no claim, and a key is never created with a provider's word alone.
    const claims = { amr: 'mfa', auth_time: String(t.now().getTime() / 1000), id_token: 'e30.e30.e30' };
    const claimed = await createKey(visitor, ada, claims);
    expect([claimed.status, claimed.text.includes('Confirm your identity')]).toEqual([requested.status, true]);
    expect(await listAllKeys(t, ada)).toEqual([]);
    const made = await visitor.submit(requested, newKeyAt(ada), { [factorFields.code]: t.nextCode(ada), ...fields });
    expect(made.text).toMatch(keyForm);
    expect((await listAllKeys(t, ada)).map(({ label }) => label)).toEqual(['Monthly report']);
  });

  it('creates one key for one form, however often it is submitted', async () => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http(ada);
    const rendered = await visitor.get(newKeyAt(ada));
    const responses = await Promise.all(
      Array.from({ length: 5 }, () => visitor.submit(rendered, newKeyAt(ada), fields)),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409]);
    expect((await listAllKeys(t, ada)).length).toBe(1);
  });

  it('creates 2 for 4 owners at once beside 23; the others explain the limit and suggest a key to revoke', async () => {
    const t = shared();
    const ada = await t.enrol();
    for (let n = 0; n < 23; n += 1) await t.make.apiKey({ creator: toMember(ada) });
    // Of several people, because the console reads the requests of one session one after the other.
    const owners = [ada];
    while (owners.length < 4) owners.push(await t.enrol({ orgId: ada.orgId, roleKey: 'owner' }));
    const visits = await Promise.all(
      owners.map(async (owner) => {
        const visitor = t.http(owner);
        return { visitor, rendered: await visitor.get(newKeyAt(ada)) };
      }),
    );
    const responses = await Promise.all(
      visits.map(({ visitor, rendered }) => visitor.submit(rendered, newKeyAt(ada), fields)),
    );
    expect(responses.map(({ status }) => status).sort()).toEqual([200, 200, 422, 422]);
    expect((await listAllKeys(t, ada)).filter(({ state }) => state === 'valid').length).toBe(25);
    for (const { status, text } of responses) {
      expect(keyForm.test(text)).toBe(status === 200);
      expect(text.includes('The maximum is 25')).toBe(status === 422);
      expect(text.match(/\/revoke"/g) ?? []).toHaveLength(status === 422 ? 25 : 0);
    }
  });

  it.each([
    ['markup', '<img src=x onerror=alert(1)>"\'&', 200],
    ['a formula', '=HYPERLINK("http://evil.example","x")', 200],
    ['right to left', '\u202eتقرير شهري', 200],
    ['100 characters', 'x'.repeat(100), 200],
    ['10,000 characters', 'x'.repeat(10_000), 422],
    ['nothing but blanks', '   ', 422],
    ['two lines', 'a\nb', 422],
    ['a NUL', 'a\u0000b', 422],
  ])('keeps a name that is %s as text, or rejects it with a message', async (_what, name, status) => {
    const t = shared();
    const ada = await t.enrol();
    const visitor = t.http(ada);
    const response = await createKey(visitor, ada, { name });
    expect(response.status).toBe(status);
    if (status === 422) {
      expect(response.text).toMatch(
        />(Enter a name\.|Enter at most 100 characters\.|Remove line breaks|A field contains characters)/,
      );
      return;
    }
    const [key] = await listAllKeys(t, ada);
    expect(key?.label).toBe(name);
    for (const path of [
      '/keys',
      `/keys/${key?.id}`,
      `/keys/${key?.id}/rotate`,
      `/keys/${key?.id}/revoke`,
      '/audit-log',
    ]) {
      const { text, status: shown } = await visitor.get(`/o/${ada.orgId}${path}`);
      expect([path, shown]).toEqual([path, 200]);
      expect(text).not.toContain('<img src=x');
      expect(unescaped(text)).toContain(name.slice(0, 60));
    }
  });
});

describe('a key', () => {
  it('is revoked once by two in parallel, and the next call with it gets 401', async () => {
    const t = shared();
    const ada = await t.enrol();
    const api = await startTestApi(t.database, { REDIS_URL: '' });
    const { id, key } = await t.make.apiKey({ creator: toMember(ada) });
    const read = async () => (await api.get(`/v1/orgs/${ada.orgId}`, { key })).status;
    expect(await read()).toBe(200);
    const at = `/o/${ada.orgId}/keys/${id}/revoke`;
    const visitor = t.http(ada);
    const [one, two] = [await visitor.get(at), await visitor.get(at)];
    expect(one.text).toContain('127.0.0.1');
    const responses = await Promise.all([one, two].map((rendered) => visitor.submit(rendered, at)));
    expect(responses.map(({ status, to }) => [status, to])).toEqual(Array(2).fill([303, `/o/${ada.orgId}/keys/${id}`]));
    expect(await read()).toBe(401);
    const entries = await t.owner.pool.query(`select from audit_entry where action = 'key.revoke'`);
    expect(entries.rows.length).toBe(1);
    expect((await visitor.get(at)).text).toContain('API key already revoked');
  });

  it('is renamed, described and restricted to addresses in one form, which keeps what is wrong for correction', async () => {
    const t = shared();
    const ada = await t.enrol();
    const made = await t.make.apiKey({ creator: toMember(ada) });
    const path = `/o/${ada.orgId}/keys/${made.id}`;
    const visitor = t.http(ada);
    const sent = { name: 'Reports', description: 'Office server', allowedAddresses: '203.0.113.7/24\r\n2001:DB8::1,' };
    const wrong = { ...sent, allowedAddresses: '203.0.113.0/24\n<b>10.0.0/8' };
    const rejected = await visitor.submit(`${path}/edit`, `${path}/edit`, wrong);
    expect(rejected.status).toBe(422);
    expect(unescaped(rejected.text)).toContain('“<b>10.0.0/8” is neither');
    expect(unescaped(rejected.text)).toContain('\n203.0.113.0/24\n<b>10.0.0/8</textarea>');
    expect((await visitor.submit(`${path}/edit`, `${path}/edit`, sent)).status).toBe(303);
    const [key] = await listAllKeys(t, ada);
    const allowedAddresses = ['203.0.113.0/24', '2001:db8::1/128'];
    expect(key).toMatchObject({ label: 'Reports', description: 'Office server', allowedAddresses });
    const shown = await visitor.get(path);
    for (const text of ['Reports', 'Office server', ...allowedAddresses]) expect(shown.text).toContain(text);
    const api = await startTestApi(t.database, { REDIS_URL: '' });
    expect((await api.get(`/v1/orgs/${ada.orgId}`, { key: made.key })).status).toBe(403);
    const renamed = { ...sent, name: 'Monthly reports' };
    expect((await visitor.submit(`${path}/edit`, `${path}/edit`, renamed)).status).toBe(303);
    const log = unescaped(
      (await visitor.get(`/o/${ada.orgId}/audit-log?action=key.change`)).text.replace(/<[^>]*>/g, ''),
    );
    expect(log).toMatch(/Edited API key “Reports”: name, description, allowed IP addresses/);
    expect(log).toMatch(/Renamed API key “Reports” to “Monthly reports”/);
    await t.make.keyRevoked(made);
    expect((await visitor.get(`${path}/edit`)).text).toContain('You can’t change it.');
  });

  it('is rotated: both keys work during the overlap, and each page links to the other', async () => {
    const t = shared();
    const ada = await t.enrol();
    const api = await startTestApi(t.database, { REDIS_URL: '' });
    const old = await t.make.apiKey({ creator: toMember(ada), label: 'Report' });
    const at = `/o/${ada.orgId}/keys/${old.id}/rotate`;
    const rotated = await t.http(ada).submit(at, at, { overlapHours: '24', expiry: 'never' });
    expect(rotated.status).toBe(200);
    const key = keyForm.exec(rotated.text)?.[0] ?? '';
    for (const each of [key, old.key]) expect((await api.get(`/v1/orgs/${ada.orgId}`, { key: each })).status).toBe(200);
    const successor = (await listAllKeys(t, ada)).find(({ id }) => id !== old.id);
    expect((await t.http(ada).get(`/o/${ada.orgId}/keys/${old.id}`)).text).toContain(`/keys/${successor?.id}`);
    expect((await t.http(ada).get(`/o/${ada.orgId}/keys/${successor?.id}`)).text).toContain(`/keys/${old.id}`);
    const again = (await t.http(ada).get(at)).text;
    expect(again).toContain(`was already replaced by <a href="/o/${ada.orgId}/keys/${successor?.id}">`);
    expect((await t.http(ada).get(at.replace('/rotate', '/revoke'))).text).not.toContain('rotate it</a> instead');
    for (const overlapHours of ['169', '-1', '', '1e9'])
      expect((await t.http(ada).submit(at, at, { overlapHours, expiry: 'never' })).status).toBe(422);
  });

  it('of an organization with 25 valid keys is rotated without an overlap, as the page says before and after', async () => {
    const t = shared();
    const ada = await t.enrol();
    for (let n = 0; n < 25; n += 1) await t.make.apiKey({ creator: toMember(ada) });
    const [old] = await listAllKeys(t, ada);
    const at = `/o/${ada.orgId}/keys/${old?.id}/rotate`;
    const rendered = await t.http(ada).get(at);
    expect(rendered.text).toContain('the old key stops working immediately');
    const rotated = await t.http(ada).submit(rendered, at, { overlapHours: '24', expiry: 'never' });
    expect(rotated.text).toContain('The old key has stopped working, because');
    const keys = await listAllKeys(t, ada);
    expect(keys.find(({ id }) => id === old?.id)?.state).toBe('revoked');
    expect(keys.filter(({ state }) => state === 'valid').length).toBe(25);
  });

  it('cannot be rotated by a member without all its scopes, with an explanation', async () => {
    const t = shared();
    const ada = await t.enrol();
    const bo = await t.enrol({ orgId: ada.orgId, permissions: ['org.keys.manage', 'org.read'] });
    const { id } = await t.make.apiKey({ creator: toMember(ada), scopes: ['org.read', 'org.clients.read'] });
    const at = `/o/${ada.orgId}/keys/${id}/rotate`;
    const page = await t.http(bo).get(at);
    expect(page.text).toContain('your roles don’t include org.clients.read');
    const own = await t.http(bo).get(newKeyAt(bo));
    const response = await t.http(bo).post(at, {
      _token: /name="_token" value="([^"]*)"/.exec(own.text)?.[1] ?? '',
      _form: randomUUID(),
      overlapHours: '0',
      expiry: 'never',
    });
    expect(response.status).toBe(422);
    expect((await listAllKeys(t, ada)).length).toBe(1);
  });

  it('that expires within a day says at what hour, and any other on which day', async () => {
    const t = shared();
    const ada = await t.enrol();
    for (const hours of [1, 25])
      await t.make.apiKey({ creator: toMember(ada), expiresAt: new Date(t.now().getTime() + hours * 3_600_000) });
    const times =
      (await t.http(ada).get(`/o/${ada.orgId}/keys`)).text.match(/data-heading="Expires".*?<\/time>/gs) ?? [];
    expect(times.map((cell) => cell.includes('data-day'))).toEqual([true, false]);
  });

  it('that has ended shows a later call as denied, and an earlier one as a use', async () => {
    const t = shared();
    const ada = await t.enrol();
    const [used, tried] = [
      await t.make.apiKey({ creator: toMember(ada) }),
      await t.make.apiKey({ creator: toMember(ada) }),
    ];
    const later = (ms: number) => new Date(t.now().getTime() + ms); // the console's clock ends the keys
    await writeEntries(t.owner, [{ orgId: ada.orgId, keyId: used.id, at: later(-1_000) }]);
    for (const { id } of [used, tried]) {
      const at = `/o/${ada.orgId}/keys/${id}/revoke`;
      expect((await t.http(ada).submit(at, at)).status).toBe(303);
    }
    const denied = { status: 401, code: 'unauthorized', at: later(1_000) };
    await writeEntries(t.owner, [{ orgId: ada.orgId, keyId: tried.id, ...denied }]);
    for (const [key, isDenied] of [
      [used, false],
      [tried, true],
    ] as const) {
      const { text } = await t.http(ada).get(`/o/${ada.orgId}/keys/${key.id}`);
      expect(/<dt>Last used<\/dt><dd>.*?<\/dd>/s.exec(text)?.[0].includes('Denied')).toBe(isDenied);
    }
  });

  it('warns about its expiry only until it is replaced', async () => {
    const t = shared();
    const ada = await t.enrol();
    const creator = { orgId: ada.orgId, userId: ada.personId, roleId: null };
    const { id } = await t.make.apiKey({
      creator,
      scopes: ['org.read'],
      expiresAt: new Date(t.now().getTime() + 5 * 86_400_000),
    });
    const list = async () => (await t.http(ada).get(`/o/${ada.orgId}/keys`)).text;
    expect(await list()).toContain('An API key expires within 14 days');
    const at = `/o/${ada.orgId}/keys/${id}/rotate`;
    expect((await t.http(ada).submit(at, at, { overlapHours: '24', expiry: 'never' })).status).toBe(200);
    expect(await list()).not.toContain('expires within 14 days');
  });

  it('shows whose permissions it uses, and what stops without them', async () => {
    const t = shared();
    const ada = await t.enrol();
    const bo = await t.make.member({
      orgId: ada.orgId,
      name: 'Bo Lindqvist',
      permissions: ['org.read', 'org.clients.read'],
    });
    const { id } = await t.make.apiKey({ creator: bo, scopes: ['org.read', 'org.clients.read'] });
    const page = async () => (await t.http(ada).get(`/o/${ada.orgId}/keys/${id}`)).text.replace(/<[^>]*>/g, '');
    expect(await page()).toMatch(
      /Bo Lindqvist leaves, is removed or suspended\s*All: the organization, the roster of clients/,
    );
    await t.make.permissionLost(bo, 'org.clients.read');
    expect(await page()).toMatch(/org\.clients\.read[^)]*\(inactive: the creator doesn’t have this permission\)/);
    await t.owner.pool.query(`update membership set status = 'suspended' where person_id = $1`, [bo.userId]);
    expect(await page()).toContain('This key can’t read anything');
  });
});

describe('a leaked key', () => {
  const at = ({ orgId }: Enrolled) => `/o/${orgId}/keys/compromised`;

  it('leads to its revocation when pasted, and appears in no response, address, log or row', async () => {
    const t = shared();
    const ada = await t.enrol();
    const { id, key } = await t.make.apiKey({ creator: toMember(ada) });
    // Also when the second factor is stale: the page that asks for it must not contain the key.
    t.pass(6 * 60_000);
    const visitor = t.http(ada);
    const found = await visitor.submit(at(ada), at(ada), { key: `Authorization: Bearer ${key}` });
    expect([found.status, found.to]).toEqual([303, `/o/${ada.orgId}/keys/${id}/revoke?reported=yes`]);
    const requested = await visitor.get(found.to ?? '');
    expect(requested.text).toContain('You pasted this key');
    const stepUp = await visitor.submit(requested, `/o/${ada.orgId}/keys/${id}/revoke`);
    expect(stepUp.text).toContain('Confirm your identity');
    const done = await visitor.submit(stepUp, `/o/${ada.orgId}/keys/${id}/revoke`, {
      [factorFields.code]: t.nextCode(ada),
    });
    expect(done.status).toBe(303);
    expect((await listAllKeys(t, ada))[0]?.state).toBe('revoked');
    for (const text of [found.text, found.cookies.join(), requested.text, stepUp.text, done.text, t.logLines.join('')])
      expect(text).not.toContain(key);
    const { rows } = await t.owner.pool.query('select jsonb_agg(to_jsonb(a)) as entries from audit_entry a');
    expect(JSON.stringify(rows)).not.toContain(key.slice(11, -4));
  });

  it('gets the same response when it belongs to another organization or region, or does not exist', async () => {
    const t = shared();
    const ada = await t.enrol();
    const theirs = await t.make.apiKey();
    const texts = [];
    for (const key of [theirs.key, `aln_ca_${theirs.key.slice(7)}`, `aln_us_${'0'.repeat(40)}`]) {
      const response = await t.http(ada).submit(at(ada), at(ada), { key });
      expect(response.status).toBe(200);
      expect(response.text).not.toContain(key);
      texts.push(response.text.replace(/name="_(token|form)" value="[^"]*"/g, ''));
    }
    expect(new Set(texts).size).toBe(1);
    expect((await listKeys(t.owner, theirs.orgId, t.now()))[0]?.state).toBe('valid');
  });

  it('is not repeated when the text is rejected: without a key, with several, too long, or submitted too late', async () => {
    const t = shared();
    const ada = await t.enrol();
    const [one, two] = [
      await t.make.apiKey({ creator: toMember(ada) }),
      await t.make.apiKey({ creator: toMember(ada) }),
    ];
    const texts = [one.key.slice(0, -1), `${one.key}, ${two.key}`, `${one.key} ${'x'.repeat(10_000)}`];
    for (const key of texts) {
      const rejected = await t.http(ada).submit(at(ada), at(ada), { key });
      expect(rejected.status).toBe(422);
      expect(rejected.text).not.toContain(one.key.slice(0, 20));
    }
    const outOfDate = await t.http(ada).post(at(ada), { key: one.key, _token: 'of another session' });
    expect(outOfDate.status).toBe(422);
    expect(outOfDate.text).not.toContain(one.key);
    expect(t.logLines.join('')).not.toContain(one.key.slice(0, 20));
  });
});
