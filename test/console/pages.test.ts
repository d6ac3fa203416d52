import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { routes } from '../../apps/console/routes.ts';
import { pages } from './pages/all.ts';

/** Routes that answer with a file. */
const files = new Set(['downloadAuditLog', 'downloadEvidence']);

it('every page is among those that `npm run tool -- long` checks', () => {
  const seen = new Set(pages.map(({ route }) => route));
  const missed = routes.filter(({ method, name }) => method === 'GET' && !seen.has(name) && !files.has(name));
  expect(missed.map(({ name }) => name)).toEqual([]);
});

it('no two routes answer the same method and path', () => {
  const shapes = routes.map(({ method, path }) => `${method} ${path.replace(/:\w+/g, ':')}`);
  expect(shapes.filter((shape, index) => shapes.indexOf(shape) !== index)).toEqual([]);
});

it('the list of pages with the bound of their worst statement names every page', () => {
  const readme = readFileSync(path.join(import.meta.dirname, '../../apps/console/README.md'), 'utf8');
  const [, section = ''] = readme.split('## What pages read');
  const [list = ''] = section.split('\n## ');
  const named = [...list.matchAll(/`([a-z]\w+)`/g)].map(([, name]) => name);
  const all = routes.filter(({ method }) => method === 'GET').map(({ name }) => name);
  expect(all.filter((name) => !named.includes(name))).toEqual([]);
});
