/** `npm run lint`: runs every check of style and words, also after one has failed. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { readNoOptions, startCommand } from '#runtime/command-line.ts';
import { findDocstringErrors } from './docstrings.ts';
import { findLongLines } from './lines.ts';

startCommand({ usage: 'Usage: npm run lint\n\nRuns every check of style and words.', read: readNoOptions });
const root = path.join(import.meta.dirname, '..');

/** Generated or recorded files, and the list of words that the terminology check looks for. */
const unchecked =
  /^(package-lock\.json|apps\/(api\/openapi\/openapi|import\/import-1\.schema)\.json|apps\/clients\/.*(generated|models)|lint\/terms|test\/(fixtures|golden)\/)|\/histories\//;
const files = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter(
    (file) =>
      /\.(ts|js|mjs|cjs|css|md|ya?ml|tpl|sh|sql|lua|pml|py|go|java|rs|txt)$/.test(file) && !unchecked.test(file),
  );

/** Runs a package's command over the repository. Returns whether it found nothing. */
function run(command: string, args: string[]): boolean {
  const { status } = spawnSync(path.join(root, 'node_modules/.bin', command), args, { cwd: root, stdio: 'inherit' });
  return status === 0;
}

const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');

/** Reports what `find` finds in each of the files. Returns whether it found nothing. */
function report(pattern: RegExp, find: (file: string, text: string) => string[]): boolean {
  const messages = files.filter((file) => pattern.test(file)).flatMap((file) => find(file, read(file)));
  for (const message of messages) console.error(message);
  return messages.length === 0;
}

const checks: Record<string, () => boolean> = {
  style: () => run('biome', ['ci', '--colors=off', '.']),
  imports: () =>
    run('depcruise', ['--config', 'lint/imports.cjs', 'apps', 'charts', 'docs', 'lint', 'test', 'workflows']),
  columns: () => report(/\.(ts|js|mjs|cjs|css|ya?ml|tpl|sh|lua|pml|py|go|java|rs|md)$/, findLongLines),
  docstrings: () => report(/\.ts$/, findDocstringErrors),
  terms: () => run('textlint', ['--format', 'unix', ...files]),
  spelling: () =>
    run('cspell', [
      'lint',
      '--config',
      'lint/spelling.json',
      '--no-progress',
      '--no-summary',
      '--dot',
      '--cache',
      '--cache-location',
      'node_modules/.cache/cspell',
    ]),
};

for (const [name, check] of Object.entries(checks)) {
  const from = performance.now();
  const isClean = check();
  console.log(`${name}: ${isClean ? 'ok' : 'failed'} (${((performance.now() - from) / 1000).toFixed(1)} s)`);
  if (!isClean) process.exitCode = 1;
}
