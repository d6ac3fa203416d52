/** While PostgreSQL is not the primary, every page and form answers 503, and works soon after. */
import { expect, it, onTestFinished } from 'vitest';
import { rejectWritesOnOpenConnections, setupFailover } from '#test/read-only.ts';
import { routes } from '../../apps/console/routes.ts';
import type { Route } from '../../apps/console/web/route.ts';
import { buildRequest, readToken, send } from '../security/console/requests.ts';
import { arrange } from '../security/console/scene.ts';
import { setupConsole } from './setup.ts';

it('while its connections lead to a standby, every page and form answers 503 with Retry-After, and works with the primary', {
  timeout: 300_000, // each page and form
}, async () => {
  const t = await setupConsole();
  const mine = await arrange(t, 'Harbor');
  const visitor = t.http(mine.owner);
  const _token = await readToken(visitor);
  const request = (route: Route) => send(visitor, route, { ...buildRequest(route, mine), fields: { _token } });
  const setReadOnly = await setupFailover(t.owner, onTestFinished);
  await setReadOnly(true);
  const seen = [];
  for (const route of routes) {
    const { status, headers, text } = await request(route);
    if (route.access === 'anyone' && status < 500) continue; // it asks no database
    seen.push(route.name);
    expect([route.name, status, headers.get('retry-after'), headers.get('content-type')]).toEqual([
      route.name,
      503,
      '5',
      'text/html; charset=utf-8',
    ]);
    expect(text).toContain('Temporarily unavailable');
  }
  expect(seen.length).toBeGreaterThan(routes.length * 0.8);
  await setReadOnly(false);
  await expect.poll(async () => (await visitor.get(`/o/${mine.orgId}`)).status, { timeout: 30_000 }).toBe(200);
  for (const route of routes) expect([route.name, (await request(route)).status < 500]).toEqual([route.name, true]);
});

it('while its server has no connection for it, a page answers 503 with Retry-After, and works with the next one', async () => {
  const t = await setupConsole();
  const visitor = t.http(await t.enrol());
  const setFull = await setupFailover(t.owner, onTestFinished, 'full');
  await setFull(true);
  const { status, headers } = await visitor.get('/account');
  expect([status, headers.get('retry-after')]).toEqual([503, '5']);
  await setFull(false);
  await expect.poll(async () => (await visitor.get('/account')).status, { timeout: 30_000 }).toBe(200);
});

it('a server that rejects writes on connections that were open costs one rejected request', async () => {
  const t = await setupConsole();
  const ada = await t.enrol();
  const visitor = t.http(ada);
  const openAtOnce = async () =>
    (await Promise.all(Array.from({ length: 5 }, () => visitor.get(`/o/${ada.orgId}`)))).map(({ status }) => status);
  expect(await openAtOnce()).toEqual([200, 200, 200, 200, 200]);
  await rejectWritesOnOpenConnections(t.owner);
  expect((await visitor.get(`/o/${ada.orgId}`)).status).toBe(503);
  expect(await openAtOnce()).toEqual([200, 200, 200, 200, 200]);
  const keys = `/o/${ada.orgId}/keys/new`;
  const key = { name: 'Report', scopes: 'org.read', expiry: 'never', expiresOn: '' };
  expect((await visitor.submit(keys, keys, key)).status).toBe(200);
});
