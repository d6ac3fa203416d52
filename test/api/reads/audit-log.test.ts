/** Every use of a key is an audit entry, and a read without its entry is not answered. */
import { expect, it } from 'vitest';
import { requestsPerWindow } from '#domain/contract/limits.ts';
import { generateKey } from '#domain/keys/key.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setup, startTestApi, type TestInstallation } from '#test/setup.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';

interface Line {
  id: string;
  action: string;
  status: number;
  code: string | null;
  count: number;
  organization_id: string;
  person_id: string;
  key_id: string;
  address: string;
}

/** Returns rows of uses in the order of their ids, which is the order of the requests. */
async function listUses({ owner }: TestInstallation): Promise<Line[]> {
  const { rows } = await owner.pool.query<Line>(
    `select id, action, status, code, count, organization_id, person_id, key_id, host(address) as address
     from audit_entry where action like 'api.%' order by id`,
  );
  return rows;
}

it('the log holds exactly one entry for each use of a known key: actor, action, address, outcome and Request-Id', async () => {
  const installation = await setup();
  const { api, make } = installation;
  const creator = await make.member({ permissions: ['org.read', 'org.clients.read'] });
  const made = await make.apiKey({ creator, scopes: ['org.read', 'org.clients.read'] });
  const other = await make.organization();
  const path = `/v1/orgs/${creator.orgId}`;
  const expected: Line[] = [];
  async function use(
    target: string,
    action: string,
    options: { method?: string; headers?: Record<string, string> } = {},
  ) {
    const response = await api.get(target, { key: made.key, ...options });
    const text = await response.text();
    const code = text.startsWith('{"error"') ? (JSON.parse(text) as { error: string }).error : null;
    const { status } = response;
    expected.push({
      id: response.headers.get('request-id') ?? '',
      action,
      status,
      code,
      count: 1,
      organization_id: creator.orgId,
      person_id: creator.userId,
      key_id: made.id,
      address: '127.0.0.1',
    });
    return response;
  }

  const etag = (await use(path, 'api.getOrg')).headers.get('etag') ?? '';
  await use(path, 'api.getOrg', { headers: { 'if-none-match': etag } });
  await use('/v1/orgs/x', 'api.getOrg');
  await use(`${path}?a=b`, 'api.getOrg');
  await use(`${path}/seats`, 'api.getOrgSeats');
  await use(`/v1/orgs/${other}`, 'api.getOrg');
  await use('/v1/orgs/00000000-0000-4000-8000-000000000000', 'api.getOrg');
  await use(path, 'api.getOrg', { method: 'POST' });
  await use('/v1/nowhere', 'api.none');
  await make.permissionLost(creator, 'org.clients.read');
  await use(`${path}/clients`, 'api.getFirmRoster');
  await make.keyRevoked(made);
  await use(path, 'api.getOrg');

  expect(expected.map(({ status }) => status)).toEqual([200, 304, 400, 400, 403, 403, 404, 403, 404, 403, 401]);
  expect(await listUses(installation)).toEqual(expected);
});

it('the log names each of the nine reads by its operation', async () => {
  const installation = await setup();
  const { key, orgId } = await installation.make.apiKey();
  for (const { resource } of endpoints) await installation.api.get(`/v1/orgs/${orgId}${resource}`, { key });
  const actions = (await listUses(installation)).map(({ action }) => action);
  expect(actions).toEqual(endpoints.map(({ operationId }) => `api.${operationId}`));
});

it('the log holds no entry for an unknown key', async () => {
  const installation = await setup();
  const { api, make } = installation;
  const path = `/v1/orgs/${await make.organization()}`;
  const unknown = generateKey('us', testKeySecrets.tagSecrets[0]);
  for (const key of [undefined, 'x', unknown, generateKey('ca', testKeySecrets.tagSecrets[0])]) {
    await api.get(path, key === undefined ? {} : { key });
    await api.get(path, { method: 'DELETE', ...(key === undefined ? {} : { key }) });
  }
  expect(await listUses(installation)).toEqual([]);
});

it('the log holds an entry for each of many parallel reads, although they share inserts', async () => {
  const installation = await setup();
  const { api, make } = installation;
  const creator = await make.member();
  const keys = await Promise.all(Array.from({ length: 10 }, () => make.apiKey({ creator })));
  const responses = await Promise.all(
    keys.flatMap(({ key }) => Array.from({ length: 60 }, () => api.get(`/v1/orgs/${creator.orgId}`, { key }))),
  );
  expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
  const lines = await listUses(installation);
  expect(new Set(lines.map(({ id }) => id))).toEqual(
    new Set(responses.map(({ headers }) => headers.get('request-id'))),
  );
  expect(lines.length).toBe(600);
});

it('the log holds one entry for each key and minute of calls over the limit, to which every API process adds its count', async () => {
  const installation = await setup();
  const { api, make, database } = installation;
  const second = await startTestApi(database);
  const creator = await make.member();
  const [loud, quiet] = [await make.apiKey({ creator }), await make.apiKey({ creator })];
  const path = `/v1/orgs/${creator.orgId}`;
  await Promise.all(Array.from({ length: requestsPerWindow }, () => api.get(path, { key: loud.key })));
  expect((await api.get(path, { key: quiet.key })).status).toBe(200);

  const rejected = await Promise.all(
    Array.from({ length: 60 }, (_, n) => (n % 3 === 0 ? second : api).get(path, { key: loud.key })),
  );
  expect(new Set(rejected.map(({ status }) => status))).toEqual(new Set([429]));
  const unknown = generateKey('us', testKeySecrets.tagSecrets[0]);
  for (let call = 0; call < requestsPerWindow + 5; call += 1) await api.get(path, { key: unknown });

  const rejections = async () => (await listUses(installation)).filter(({ status }) => status === 429);
  await expect
    .poll(async () => (await rejections()).reduce((sum, line) => sum + line.count, 0), { timeout: 10_000 })
    .toBe(60);
  const lines = await rejections();
  expect(lines.length).toBeLessThanOrEqual(2); // two when the minute changed meanwhile
  for (const line of lines) {
    expect(line).toMatchObject({
      action: 'api.rate_limited',
      code: 'rate_limited',
      key_id: loud.id,
      organization_id: creator.orgId,
      person_id: creator.userId,
    });
  }
});

it('a graceful stop writes the counts of rejected calls first', async () => {
  const installation = await setup();
  const { api, make } = installation;
  const { key, orgId } = await make.apiKey();
  await Promise.all(Array.from({ length: requestsPerWindow + 7 }, () => api.get(`/v1/orgs/${orgId}`, { key })));
  await api.stop();
  const counts = (await listUses(installation)).filter(({ status }) => status === 429).map(({ count }) => count);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(7);
});

it('a read fails while its entry cannot be written, and succeeds again afterwards', async () => {
  const installation = await setup();
  const { api, make, owner, logLines } = installation;
  const made = await make.apiKey();
  const path = `/v1/orgs/${made.orgId}`;
  await owner.pool.query('revoke execute on function api.record_key_uses from org_api_read');

  const rejectedToo = [
    await api.get(path, { key: made.key }),
    await api.get('/v1/orgs/x', { key: made.key }),
    await api.get(path, { key: made.key, method: 'POST' }),
  ];
  for (const response of rejectedToo) {
    const text = await response.text();
    expect(response.status).toBe(500);
    expect(JSON.parse(text)).toEqual({
      error: 'internal',
      message: 'An internal error occurred.',
      requestId: response.headers.get('request-id'),
    });
    expect(response.headers.get('etag')).toBeNull();
    expect(text).not.toMatch(/Harbor|permission|audit_entry/);
  }
  expect(logLines.join('')).toContain('42501');
  expect(await listUses(installation)).toEqual([]);

  await owner.pool.query('grant execute on function api.record_key_uses to org_api_read');
  expect((await api.get(path, { key: made.key })).status).toBe(200);
  expect((await listUses(installation)).length).toBe(1);
});
