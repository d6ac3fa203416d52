/** The generated files, written again by the generators. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { it } from 'vitest';

it('npm run tool -- clients would change nothing', { timeout: 600_000 }, () => {
  const main = path.join(import.meta.dirname, '../../apps/clients/generate/main.ts');
  execFileSync(process.execPath, [main, '--check'], { stdio: 'pipe' });
});
