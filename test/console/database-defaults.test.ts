/** No page depends on the defaults of the server, the database or a role. */
import { expect, it, onTestFinished } from 'vitest';
import { setHostileDefaults } from '#test/hostile-surroundings.ts';
import { setupFailover } from '#test/read-only.ts';
import { routes } from '../../apps/console/routes.ts';
import { arrange } from './hostile/scene.ts';
import { paramsOf, pathWith } from './hostile/walk.ts';
import { setupConsole } from './setup.ts';

it('every page is the same in a database with other defaults', { timeout: 60_000 }, async () => {
  const t = await setupConsole();
  const scene = await arrange(t, 'Harbor');
  const visitor = t.http(scene.owner);
  const pages = routes.filter(({ method, name }) => method === 'GET' && !/stream|updates/i.test(name));
  expect(pages.length).toBeGreaterThan(30);
  const openAll = async () => {
    const seen = [];
    for (const route of pages) {
      const params = paramsOf(route, scene);
      const isNamed = [...route.path.matchAll(/:(\w+)/g)].every(([, name = '']) => name in params);
      if (!isNamed) continue;
      const { status, text } = await visitor.get(pathWith(route, params));
      seen.push([
        route.name,
        status,
        text.replace(/(value|content|nonce|data-copy|data-now)="[^"]*"|\d+ seconds?/g, ''),
      ]);
    }
    return seen;
  };
  const before = await openAll();
  expect(before.filter(([, status]) => Number(status) >= 500)).toEqual([]);
  await setHostileDefaults(t.owner.pool);
  const failOver = await setupFailover(t.owner, onTestFinished);
  await failOver(false); // ends all connections
  await expect.poll(async () => (await visitor.get('/account')).status, { timeout: 5_000 }).toBe(200);
  const after = await openAll();
  expect(after.map(([name, status]) => [name, status])).toEqual(before.map(([name, status]) => [name, status]));
});
