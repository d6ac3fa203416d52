import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';

const file = path.join(import.meta.dirname, '../../docs/operations/run-the-operator.md');
const [, section = ''] = readFileSync(file, 'utf8').split('## Capability levels\n');
const [levels = ''] = section.split(/^## /m);

it('every claim of a capability names a test that exists', () => {
  const claims = [...levels.matchAll(/\[([^\]]+)\]\(([^)]+\.test\.ts)\)/g)];
  const missing = claims.filter(([, title = '', target = '']) => {
    const test = readFileSync(path.resolve(path.dirname(file), target), 'utf8');
    return !test.includes(`it('${title.replaceAll(/\s+/g, ' ')}'`);
  });

  expect(claims.length).toBeGreaterThan(10);
  expect(missing.map(([, title]) => title)).toEqual([]);
});

it('every level says what is claimed, or that nothing is', () => {
  const titles = [...levels.matchAll(/^### Level (\d)/gm)].map(([, level]) => level);
  expect(titles).toEqual(['1', '2', '3', '4', '5']);
  for (const text of levels.split(/^### /m).slice(1)) expect(text).toMatch(/\.test\.ts\)|Nothing is claimed/);
});
