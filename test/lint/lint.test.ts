import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { findDocstringErrors } from '../../lint/docstrings.ts';
import { findLongLines } from '../../lint/lines.ts';

const root = path.join(import.meta.dirname, '../..');

/** Writes `text` into a new folder of `parent` in this repository and runs one of its commands there. */
function runOn(file: string, text: string, command: string, ...args: string[]): string {
  return runIn('apps/api', file, text, command, ...args);
}

function runIn(parent: string, file: string, text: string, command: string, ...args: string[]): string {
  const folder = mkdtempSync(path.join(root, parent, 'lint-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const written = path.join(folder, file);
  writeFileSync(written, text);
  const { stdout, stderr } = spawnSync(path.join(root, 'node_modules/.bin', command), [...args, written], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, NO_COLOR: '1' },
  });
  return stdout + stderr;
}

it('the check of columns reports a line of 121 columns, but no table, no fenced output and no address', () => {
  const long = 'word '.repeat(24);
  expect(findLongLines('a.ts', `${long}\n${long}w`)).toEqual(['a.ts:2: 121 columns, at most 120']);
  expect(findLongLines('a.md', `| ${long} |\n\`\`\`\n${long}word\n\`\`\`\nSee https://${'a'.repeat(120)}`)).toEqual([]);
});

it('the check of docstrings reports a docstring whose syntax is not TSDoc, by file and line', () => {
  const text = ['const a = 1;', '/'.concat('**'), ' * Returns `a.', ' * @param b the second.', ' */'].join('\n');
  expect(findDocstringErrors('a.ts', text)).toEqual([
    'a.ts:3: The code span is missing its closing backtick',
    'a.ts:4: The @param block should be followed by a parameter name and then a hyphen',
  ]);
});

it('the style check rejects code that evaluates text', () => {
  const output = runOn('text.ts', "export const a = eval('1');\n", 'biome', 'lint', '--colors=off');
  expect(output).toContain('noGlobalEval');
});

it('the style check rejects a spread of a literal', () => {
  const output = runOn('spread.ts', 'export const a = [...[1, 2], 3];\n', 'biome', 'lint', '--colors=off');
  expect(output).toContain('Write the members out instead of spreading a literal.');
});

it.each([
  ['export function createA() {\n  let a = 0;\n  return { next: () => a++ };\n}\n', true],
  ['export const createA = () => {\n  const all = new Map<string, string>();\n  return all;\n};\n', true],
  [
    'export const createA = (a: number) => {\n  const next = () => {\n    let b = a;\n    b += 1;\n    return b;\n  };\n  return next;\n};\n',
    false,
  ],
  ['export async function createA() {\n  let a = 0;\n  a += 1;\n  return a;\n}\n', false],
])('the style check rejects state that a factory closes over: %j', (text, isRejected) => {
  const output = runOn('factory.ts', text, 'biome', 'lint', '--colors=off');
  expect(output.includes('a factory (create…) closes over constants only')).toBe(isRejected);
});

it('the check of terms reports a word that the glossary replaces, also inside a name', () => {
  const output = runOn('word.md', `Calls sign${'InAttempt'}s.\n`, 'textlint', '--format', 'unix');
  expect(output).toContain('=> sign-in failure');
});

it('the check of imports reports a cycle, an import from an app into another app, and what starts a process', () => {
  const output = runOn(
    'cycle.ts',
    "export { cycle } from './cycle.ts';\nexport { createApp } from '../../console/app.ts';\n" +
      "export { spawn } from 'node:child_process';\nexport { runInThisContext } from 'node:vm';\n",
    'depcruise',
    '--config',
    'lint/imports.cjs',
  );
  expect(output).toContain('no-cycle');
  expect(output).toContain('apps-do-not-import-each-other');
  expect(output.match(/no-process-starts-another/g)).toHaveLength(2);
});

it.each([
  ['charts/tools.ts', 'helm.test.ts', true],
  ['test/support/render-charts.ts', 'chart.test.ts', true],
  ['test/support/chromium.ts', 'page.test.ts', true],
  ['test/support/render-charts.ts', 'chart.system.test.ts', false],
  ['test/support/setup.ts', 'read.test.ts', false],
])('the check of imports reports a test of npm test that needs a tool: %s, from %s', (imported, file, isReported) => {
  const text = `import '../../${imported.startsWith('test/') ? imported.slice(5) : `../${imported}`}';\n`;
  const output = runIn('test/lint', file, text, 'depcruise', '--config', 'lint/imports.cjs');
  expect(output.includes('error npm-test-needs-no-tool:')).toBe(isReported);
  if (!isReported) expect(output).toContain('no dependency violations found');
});

it.each([
  ['apps/domain/contract', '../../access/authority.ts', 'domain-contract-imports-nothing-above-it'],
  ['apps/domain/webhooks', '../../keys/create.ts', 'domain-webhooks-imports-nothing-above-it'],
  ['apps/domain/keys', '../../open-database.ts', 'domain-folders-do-not-open-the-database'],
  ['apps/console/web', '../../components/form.ts', 'console-web-imports-nothing-above-it'],
  ['apps/console/pages/keys', '../../../middleware/session.ts', 'console-pages-import-no-middleware'],
  ['apps/operator/kube', '../../controller/runner.ts', 'operator-kube-imports-nothing-above-it'],
])('the check of imports reports a file of %s that imports %s', (parent, imported, rule) => {
  const text = `import '${imported}';\n`;
  expect(runIn(parent, 'arrow.ts', text, 'depcruise', '--config', 'lint/imports.cjs')).toContain(`error ${rule}:`);
});
