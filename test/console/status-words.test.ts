/** The terms for a status, each spelled in one place. */
import { globSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';

const consoleDirectory = new URL('../../apps/console/', import.meta.url);
const words = 'Active|Paused|Suspended|Failing|Pending|Delivering|Retrying|Held|Delivered|Failed|Cancelled';
const spelling = new RegExp(`['"\`>](${words})['"\`<]`);

it('no file of the console except that of the status vocabulary spells a status', () => {
  const files = globSync('**/*.{ts,js}', { cwd: consoleDirectory });
  expect(files.length).toBeGreaterThan(100);
  const spelled = files.filter((file) => spelling.test(readFileSync(new URL(file, consoleDirectory), 'utf8')));
  expect(spelled).toEqual(['components/status.ts']);
});
