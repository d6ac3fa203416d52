import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { configurationPage } from '../../apps/dev/docs/configuration.ts';

it('docs/configuration.md lists every setting of every process, as their schemas have them', () => {
  const file = path.join(import.meta.dirname, '../../docs/configuration.md');
  expect(readFileSync(file, 'utf8'), 'run npm run docs').toBe(configurationPage());
});
