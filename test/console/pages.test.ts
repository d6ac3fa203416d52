import { expect, it } from 'vitest';
import { routes } from '../../apps/console/routes.ts';
import { pages } from './pages/all.ts';

/** Routes that answer with a file. */
const files = new Set(['downloadActivity']);

it('every page is among those that `npm run test:long` checks', () => {
  const seen = new Set(pages.map(({ route }) => route));
  const missed = routes.filter(({ method, name }) => method === 'GET' && !seen.has(name) && !files.has(name));
  expect(missed.map(({ name }) => name)).toEqual([]);
});

it('no two routes answer the same method and path', () => {
  const shapes = routes.map(({ method, path }) => `${method} ${path.replace(/:\w+/g, ':')}`);
  expect(shapes.filter((shape, index) => shapes.indexOf(shape) !== index)).toEqual([]);
});
