/** `/livez` and `/readyz`. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { generateKey } from '#domain/keys/key.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setup, startTestApi } from '#test/setup.ts';

it('health checks ignore any key, valid or not, and do not count it', async () => {
  const { api, make, owner } = await setup();
  const { key } = await make.apiKey();
  const tagSecret = testKeySecrets.tagSecrets[0];
  for (const path of ['/livez', '/readyz']) {
    for (const sent of [undefined, key, 'nonsense', generateKey('ca', tagSecret), generateKey('us', tagSecret)]) {
      const response = await api.get(path, sent === undefined ? {} : { key: sent });
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual({ status: 'ok' });
      expect(response.headers.get('ratelimit')).toBeNull();
      expect(response.headers.get('cache-control')).toBe('no-store');
    }
  }
  expect((await owner.pool.query('select from audit_entry where action <> $$key.create$$')).rowCount).toBe(0);
});

it('the process is alive and not ready while the database cannot be reached', async () => {
  const { database } = await setup();
  const api = await startTestApi(database, { API_DATABASE_URL: 'postgresql://absent:nothing@127.0.0.1:1/nothing' });
  expect((await api.get('/livez')).status).toBe(200);
  const unready = await api.get('/readyz');
  expect(unready.status).toBe(503);
  expect(await unready.json()).toEqual({ status: 'unready', reason: expect.stringContaining('database') });
});

it('the process is not ready on an older schema, and says what to do', async () => {
  const { database, owner } = await setup();
  await owner.pool.query('delete from schema_migration');
  const api = await startTestApi(database);
  const unready = await api.get('/readyz');
  expect(unready.status).toBe(503);
  expect(await unready.json()).toMatchObject({ reason: expect.stringMatching(/run the migrations/) });
});

it('a draining process is alive and not ready, and every response closes its connection', async () => {
  const { database, make } = await setup();
  const { key, orgId } = await make.apiKey();
  const api = await startTestApi(database, { DRAIN_DELAY_MS: '1500' });
  expect((await api.get(`/v1/orgs/${orgId}`, { key })).headers.get('connection')).not.toBe('close');
  const stopped = api.stop();
  const [unready, alive, read] = await Promise.all([
    api.get('/readyz'),
    api.get('/livez'),
    api.get(`/v1/orgs/${orgId}`, { key }),
  ]);
  expect([unready.status, alive.status, read.status]).toEqual([503, 200, 200]);
  expect(await unready.json()).toEqual({ status: 'unready', reason: 'draining' });
  for (const response of [unready, alive, read]) expect(response.headers.get('connection')).toBe('close');
  await stopped;
  await expect(api.get('/livez')).rejects.toThrow();
});

it('an idle connection of a known key outlives those of gateways, and does not delay the stop', async () => {
  const { database, make } = await setup();
  const { key, orgId } = await make.apiKey();
  const path = `/v1/orgs/${orgId}`;
  const api = await startTestApi(database);
  expect((await api.get(path, { key })).headers.get('keep-alive')).toBe('timeout=4200');
  expect((await api.get('/livez')).headers.get('keep-alive')).toBe('timeout=15');
  const idle = connect(Number(new URL(api.url).port), '127.0.0.1');
  idle.write('GET /livez HTTP/1.1\r\nHost: api\r\n\r\n');
  const [response] = await once(idle.setEncoding('utf8'), 'data');
  expect(response).toMatch(/^HTTP\/1.1 200 .*Connection: keep-alive/s);
  await Promise.all([once(idle, 'end'), api.stop()]);
});

it('the server can be stopped twice', async () => {
  const { api } = await setup();
  await Promise.all([api.stop(), api.stop()]);
  await api.stop();
});
