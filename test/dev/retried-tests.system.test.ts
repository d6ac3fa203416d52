/** `.ci/run` tries a failed test once more, and lists at its end what passed then. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { childEnvironment } from '#test/child-environment.ts';
import { runCommand } from '#test/run-command.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';

const root = path.join(import.meta.dirname, '../..');

/** Runs tests with a second try, as `.ci/run` does. Returns what is listed. */
async function listRetried(tests: string): Promise<string> {
  const folder = temporaryFolder();
  const list = path.join(folder, 'retried-tests.log');
  writeFileSync(path.join(folder, 'some.test.mjs'), tests);
  const reporter = `--reporter=${path.join(root, 'test/support/retried-tests.ts')}`;
  const args = ['node_modules/vitest/vitest.mjs', 'run', '--root', folder, '--globals', '--retry=1', reporter];
  const { code, stderr } = await runCommand(args, { ...childEnvironment, RETRIED_TESTS: list });
  expect(code, stderr).toBe(0);
  return existsSync(list) ? readFileSync(list, 'utf8') : '';
}

it('a test that passes at its second try is listed with the error of its first, and no other one is', async () => {
  const passing = `it('passes', () => {});`;
  const late = `let tries = 0; it('passes late', () => { tries += 1; expect(tries, 'too early').toBe(2); });`;
  expect(await listRetried(passing)).toBe('');
  expect(await listRetried(`${passing} ${late}`)).toMatch(
    /^some\.test\.mjs: passes late\n {2}first try: too early: .*\n$/,
  );
});

it('.ci/run tries every stage of tests twice and prints the list', () => {
  const script = readFileSync(path.join(root, '.ci/run'), 'utf8');
  for (const stage of ['npm test', 'npm run --silent test:system', 'npm run --silent test:operator'])
    expect(script).toMatch(new RegExp(`${stage} -- .*--retry=1`));
  expect(script).toContain('export RETRIED_TESTS=');
  expect(script).toMatch(/tests that passed at their second try\\n%s\\n' "\$\(<"\$RETRIED_TESTS"\)"/);
});
