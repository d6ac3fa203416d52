/** While PostgreSQL is down, hangs or rejects, each request ends in an error without internals. */
import { expect, it, onTestFinished } from 'vitest';
import { requestsPerWindow } from '#domain/contract/limits.ts';
import { rejectWritesOnOpenConnections, setupFailover } from '#test/read-only.ts';
import { setupDatabase, startTestApi } from '#test/setup.ts';
import { startTcpProxy } from '#test/tcp-proxy.ts';

async function setupBehindProxy() {
  const { database, make, owner } = await setupDatabase();
  const url = new URL(database.urls.api);
  const proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  url.host = `127.0.0.1:${proxy.port}`;
  const logLines: string[] = [];
  const api = await startTestApi(database, { API_DATABASE_URL: url.href }, logLines);
  const creator = await make.member();
  const { key } = await make.apiKey({ creator });
  const path = `/v1/orgs/${creator.orgId}`;
  expect((await api.get(path, { key })).status).toBe(200);
  return { api, proxy, owner, key, path, make, creator, logLines };
}

async function expectUnavailable(response: Response): Promise<void> {
  expect(response.status).toBe(503);
  expect(response.headers.get('retry-after')).toBe('1');
  expect(await response.json()).toEqual({
    error: 'unavailable',
    message: expect.stringMatching(/Try again/),
    requestId: response.headers.get('request-id'),
  });
}

it('while connections are refused, every read gets 503 at once, health checks answer, and reads recover with the database', async () => {
  const { api, proxy, key, path } = await setupBehindProxy();
  expect((await api.get('/readyz')).status).toBe(200);
  await proxy.reject();
  for (const response of await Promise.all(Array.from({ length: 20 }, () => api.get(path, { key }))))
    await expectUnavailable(response);
  await expectUnavailable(await api.get(path, { key, method: 'POST' }));
  expect((await api.get('/livez')).status).toBe(200);
  // Readiness stays on. Otherwise all pods would leave the load balancer together, and clients
  // would not get the 503.
  expect((await api.get('/readyz')).status).toBe(200);
  expect((await api.get(path)).status).toBe(401);

  await proxy.resume();
  await expect.poll(async () => (await api.get(path, { key })).status, { timeout: 15_000 }).toBe(200);
});

it('while the database is silent, every request ends with 503, and reads recover with the database', async () => {
  const { api, proxy, make, creator, path } = await setupBehindProxy();
  const keys = await Promise.all([1, 2, 3].map(() => make.apiKey({ creator })));
  proxy.pause();
  // More requests than connections: each waits for a connection, then for its statement. If one
  // waited without end, the test's deadline would fail.
  const reads = keys.flatMap(({ key }) => Array.from({ length: 10 }, () => api.get(path, { key })));
  for (const response of await Promise.all(reads)) await expectUnavailable(response);
  await proxy.resume();
  const { key } = await make.apiKey({ creator });
  await expect.poll(async () => (await api.get(path, { key })).status, { timeout: 20_000 }).toBe(200);
}, 60_000);

it('calls over the limit are rejected while the database is down, and counted once it is back', async () => {
  const { api, proxy, owner, key, path, logLines } = await setupBehindProxy();
  await Promise.all(Array.from({ length: requestsPerWindow - 1 }, () => api.get(path, { key })));
  await proxy.reject();
  const reject = async (times: number) => {
    for (let call = 0; call < times; call += 1) expect((await api.get(path, { key })).status).toBe(429);
  };
  await reject(5);
  // The flush of these rows fails; later rows are added to them.
  await expect.poll(() => logLines.join('').includes('counts of rejected calls'), { timeout: 10_000 }).toBe(true);
  await reject(3);
  await proxy.resume();
  const counted = async () =>
    (await owner.pool.query<{ count: number }>('select sum(count)::int as count from audit_entry where status = 429'))
      .rows;
  await expect.poll(counted, { timeout: 15_000 }).toEqual([{ count: 8 }]);
});

it('connections that the server closed are replaced, and idle ones that it closed do not end the process', async () => {
  const { api, owner, key, path } = await setupBehindProxy();
  for (let turn = 0; turn < 3; turn += 1) {
    await owner.pool.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()
        and application_name = 'org-api'`,
    );
    await expect.poll(async () => (await api.get(path, { key })).status, { timeout: 10_000 }).toBe(200);
  }
});

it.each(['standby', 'full'] as const)(
  'while its connections lead to a server that is %s, a read gets 503, and recovers with the primary',
  async (outage) => {
    const { api, owner, key, path } = await setupBehindProxy();
    const setReadOnly = await setupFailover(owner, onTestFinished, outage);
    await setReadOnly(true);
    for (let turn = 0; turn < 3; turn += 1) await expectUnavailable(await api.get(path, { key }));

    await setReadOnly(false);
    await expect.poll(async () => (await api.get(path, { key })).status, { timeout: 15_000 }).toBe(200);
  },
);

it('a server that rejects writes on connections that were open costs one rejected round of reads', async () => {
  const { api, owner, make, creator, path } = await setupBehindProxy();
  const keys = await Promise.all([1, 2, 3, 4, 5].map(() => make.apiKey({ creator })));
  const readAtOnce = async () =>
    (await Promise.all(keys.map(({ key }) => api.get(path, { key })))).map(({ status }) => status);
  expect(await readAtOnce()).toEqual([200, 200, 200, 200, 200]);
  await rejectWritesOnOpenConnections(owner);
  await expectUnavailable(await api.get(path, { key: keys[0]?.key ?? '' }));
  expect(await readAtOnce()).toEqual([200, 200, 200, 200, 200]);
});

it('a statement that the database rejects gets 500 internal, without detail in the response or values in the log', async () => {
  const { database, make, owner } = await setupDatabase();
  const logLines: string[] = [];
  const api = await startTestApi(database, {}, logLines);
  const { key, orgId } = await make.apiKey();
  await owner.pool.query('drop view api.seat_plan');
  const response = await api.get(`/v1/orgs/${orgId}/seats`, { key });
  expect(response.status).toBe(500);
  expect(await response.json()).toEqual({
    error: 'internal',
    message: 'An internal error occurred.',
    requestId: response.headers.get('request-id'),
  });
  const line = logLines
    .map((text) => JSON.parse(text) as Record<string, unknown>)
    .find(({ msg }) => msg === 'internal error');
  expect(line).toMatchObject({
    level: 'error',
    requestId: response.headers.get('request-id'),
    operation: 'getOrgSeats',
    code: 'internal',
    error: { code: '42P01' },
  });
  expect(JSON.stringify(line)).not.toContain('seat_plan'); // the database's message may quote a value
  expect((await api.get(`/v1/orgs/${orgId}`, { key })).status).toBe(200);
});
