/** Every read and every error response as a caller sees it: status, headers and body. */
import { randomUUID } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { Agent } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { requestsPerWindow } from '#domain/contract/limits.ts';
import { scopes } from '#domain/contract/scopes.ts';
import { createKey } from '#domain/keys/create.ts';
import { generateKey } from '#domain/keys/key.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { type Exchanged, exchange } from '#test/exchange.ts';
import { fixturePath } from '#test/fixtures.ts';
import { setHostileDefaults } from '#test/hostile-surroundings.ts';
import { withinOneDay } from '#test/one-day.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setup } from '#test/setup.ts';
import { endpoints } from '../../apps/api/endpoints.ts';
import { importFile } from '../../apps/import/document/import-file.ts';
import { createStable, goldenText } from './stable.ts';

/** Values that differ from call to call; callers rely on their format. */
const headerForms: Record<string, [form: RegExp, shown: string]> = {
  date: [/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/, '<HTTP date>'],
  etag: [/^"[\w-]{22}"$/, '<entity tag>'],
  ratelimit: [/^"key";r=\d+;t=\d+$/, '"key";r=<left>;t=<seconds>'],
  'retry-after': [/^\d+$/, '<seconds>'],
};

function onTheWire({ status, headers, body }: Exchanged) {
  const shown = Object.entries(headers).map(([name, value]) => {
    const form = headerForms[name];
    if (form === undefined) return [name, value];
    expect(value).toMatch(form[0]);
    return [name, form[1]];
  });
  const isJson = String(headers['content-type']).startsWith('application/json') && body !== '';
  const text = body.replace(/(?<=Try again in )\d+(?= s\.)/, '<seconds>');
  return { status, headers: Object.fromEntries(shown), body: isJson ? JSON.parse(text) : text };
}

async function setupFixture() {
  const installation = await setup({ BASE_URL_CA: 'https://reads.example.ca' });
  await setHostileDefaults(installation.owner.pool);
  const { organizations } = await importFile({
    server: parsePostgresUrl(installation.database.ownerUrl),
    source: createReadStream(fixturePath('us.json')),
    fileName: 'us.json',
    region: 'us',
    today: true,
  });
  const [first] = organizations;
  if (first === undefined) throw new Error('the fixture has no organization');
  const input = { organizationId: first.id, creatorId: first.ownerUserId ?? '', scopes, label: '', expiresAt: null };
  const { key } = await createKey(installation.owner, { ...input, by: 'orgctl' }, testKeySecrets);
  return { ...installation, orgId: first.id, key };
}

it('the nine reads have unchanged responses', async () => {
  const answers = await withinOneDay(async () => {
    const { api, orgId, key } = await setupFixture();
    const stable = createStable();
    const authorization = `Bearer ${key}`;
    const read: Record<string, unknown> = {};
    for (const { operationId, resource } of endpoints) {
      const url = `${api.url}/v1/orgs/${orgId}${resource}`;
      const whole = await exchange(url, { headers: { authorization } });
      const headers = { authorization, 'if-none-match': String(whole.headers.etag) };
      const unchanged = await exchange(url, { headers });
      read[operationId] = stable({ whole: onTheWire(whole), unchanged: onTheWire(unchanged) });
    }
    return read;
  });
  await expect(goldenText(answers)).toMatchFileSnapshot('reads.json');
});

it('every error response is unchanged', async () => {
  const { api, make, owner, orgId, key } = await setupFixture();
  const stable = createStable();
  const answers: Record<string, unknown> = {};
  // One connection, because `Keep-Alive` depends on what a connection has sent. A pool may take another one when the
  // machine is busy.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  const ask = async (name: string, path: string, sent: string | null = key, method = 'GET') => {
    const headers = sent === null ? {} : { authorization: sent.startsWith('aln_') ? `Bearer ${sent}` : sent };
    answers[name] = stable(onTheWire(await exchange(`${api.url}${path}`, { method, headers, agent })));
  };
  const path = `/v1/orgs/${orgId}/seats`;

  await ask('no key', path, null);
  await ask('another scheme', path, 'Basic YTpi');
  await ask('no key of the service', path, 'Bearer secret');
  await ask('a forged tag', path, generateKey('us', Buffer.alloc(32)));
  await ask('a key of the other region', path, generateKey('ca', testKeySecrets.tagSecrets[0]));
  await ask('an unknown key', path, generateKey('us', testKeySecrets.tagSecrets[0]));

  const creator = await make.member({ permissions: ['org.read', 'org.billing.manage'] });
  const own = `/v1/orgs/${creator.orgId}`;
  const [revoked, expired, elsewhere, narrow, lost] = [
    await make.apiKey({ creator, scopes: ['org.read'] }),
    await make.apiKey({ creator, scopes: ['org.read'] }),
    await make.apiKey({ creator, scopes: ['org.read'], allowedAddresses: ['203.0.113.9'] }),
    await make.apiKey({ creator, scopes: ['org.read'] }),
    await make.apiKey({ creator, scopes: ['org.billing.manage'] }),
  ];
  await make.keyRevoked(revoked);
  await make.keyExpired(expired);
  await make.permissionLost(creator, 'org.billing.manage');
  await ask('a revoked key', own, revoked.key);
  await ask('an expired key', own, expired.key);
  await ask('an address that the key does not allow', own, elsewhere.key);
  await ask('a missing scope', `${own}/seats`, narrow.key);
  await ask('a permission that the creator lost', `${own}/seats`, lost.key);
  await ask('a key of another organization', path, narrow.key);
  await owner.pool.query(`update membership set status = 'left' where person_id = $1`, [creator.userId]);
  await ask('a creator who left', own, narrow.key);

  await ask('a malformed id', '/v1/orgs/1/seats');
  await ask('a query', `${path}?limit=1`);
  await ask('an organization that does not exist', `/v1/orgs/${randomUUID()}`);
  await ask('a path that does not exist', `${path}/nowhere`);
  await ask('a path that does not exist, without a key', '/nowhere', null);
  await ask('a trailing slash', `${path}/`);
  await ask('a double slash', `/${path}`);
  await ask('capitals in the path', path.replace('seats', 'Seats'));
  await ask('capitals in the id', path.replace(orgId, orgId.toUpperCase()));
  await ask('an encoded slash', path.replace('/seats', '%2Fseats'));
  await ask('an encoded letter', path.replace('seats', '%73eats'));
  await ask('a malformed escape', path.replace('seats', '%zz'));
  await ask('a malformed escape in the id', '/v1/orgs/%zz/seats');
  await ask('a NUL in the id', '/v1/orgs/%00/seats');
  for (const method of ['HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    await ask(`${method} with a key`, path, key, method);
    await ask(`${method} without a key`, path, null, method);
  }
  for (const open of ['/livez', '/v1/openapi.json', '/docs']) await ask(`POST ${open} with a key`, open, key, 'POST');

  const busy = await make.apiKey({ scopes: ['org.read'] });
  for (let sent = 0; sent < requestsPerWindow; sent += 1) await api.get(`/v1/orgs/${busy.orgId}`, { key: busy.key });
  await ask('the 121st request within a minute', `/v1/orgs/${busy.orgId}`, busy.key);
  await expect(goldenText(answers)).toMatchFileSnapshot('error-responses.json');
});
