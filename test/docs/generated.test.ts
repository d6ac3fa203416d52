import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { configurationPage } from '../../docs/generate/configuration.ts';
import { decisionsPage } from '../../docs/generate/decisions.ts';
import { platformPage } from '../../docs/generate/platform.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');

it('docs/configuration.md lists every setting of every process from their schemas', () => {
  expect(read('docs/configuration.md'), 'run npm run tool -- docs').toBe(configurationPage());
});

it('docs/adr/README.md lists every decision record', () => {
  expect(read('docs/adr/README.md'), 'run npm run tool -- docs').toBe(decisionsPage(path.join(root, 'docs/adr')));
});

it('docs/platform.md has the tables of the contract', () => {
  const page = read('docs/platform.md');
  expect(page.match(/^<!-- table: \w+ -->$/gm)).toHaveLength(4);
  expect(page, 'run npm run tool -- docs').toBe(platformPage(page));
});
