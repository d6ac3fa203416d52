/** Every page on a wide screen, light and dark. Source: issue of the console, point 7 and "how it will be judged". */
import { afterAll, expect, it } from 'vitest';
import { routes } from '../../apps/console/routes.ts';
import { closeBrowser } from './browser.ts';
import { pages } from './pages/all.ts';
import { judgeEveryPage } from './pages/judge.ts';

/** Routes that answer with a file. */
const files = new Set(['downloadActivity']);

afterAll(closeBrowser);

it('every page is among those that are looked at', () => {
  const seen = new Set(pages.map(({ route }) => route));
  const missed = routes.filter(({ method, name }) => method === 'GET' && !seen.has(name) && !files.has(name));
  expect(missed.map(({ name }) => name)).toEqual([]);
});

it('every page has no accessibility violation, fits the screen, and asks and complains of nothing', {
  timeout: 400_000,
}, async () => {
  expect(await judgeEveryPage('wide')).toEqual({});
});
