/** Commands that a text names exist, and docs/commands.md names every one that exists. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { eventTypes } from '#domain/contract/events.ts';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { subcommands } from '../../apps/dev/subcommand.ts';
import { nouns } from '../../apps/orgctl/nouns.ts';
import { readOptions as readCertifyOptions } from '../../apps/receiver/certify/options.ts';
import { readOptions as readListenOptions } from '../../apps/receiver/listen/options.ts';
import { listCode } from './code-of-pages.ts';

const root = path.join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(path.join(root, file), 'utf8');
const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
const mention = /npm run(?: -s| --silent)? ([a-z][\w:]*)(?: -- ([a-z]+(?:-[a-z]+)*))?/g;

it('every npm script and subcommand that the repository names exists', () => {
  const files = execFileSync('git', ['ls-files', '-z', '*.md', '*.ts', '*.yml', '*.yaml', '*.txt', '.ci/run'], {
    cwd: root,
    encoding: 'utf8',
  }).split('\0');
  const wrong = files
    .filter(Boolean)
    .flatMap((file) =>
      [...read(file).matchAll(mention)]
        .filter(([, script = '', name]) => !isCommand(script, name ?? null))
        .map(([text]) => `${file}: ${text}`),
    );
  expect(wrong).toEqual([]);
});

it('docs/commands.md names every npm script and subcommand', () => {
  const page = read('docs/commands.md');
  const named = new Set([...page.matchAll(mention)].map(([, script, name]) => `${script} ${name ?? ''}`.trim()));
  const all = Object.keys(scripts).flatMap((script) => {
    const names = Object.keys(subcommands[script] ?? {});
    return names.length === 0 ? [script] : names.map((name) => `${script} ${name}`);
  });
  expect(all.filter((command) => !named.has(command) && !page.includes(`npm ${command}`))).toEqual([]);
});

it('every orgctl command that a page names exists and has its options, and in a block also those that it needs', () => {
  const calls = listCode().flatMap(({ file, code, isBlock }) =>
    [...code.matchAll(/\borgctl ([a-z][^\n|;&>)]*)/g)].map(([text, call = '']) => ({ file, text, call, isBlock })),
  );
  expect(
    calls.flatMap((one) => listProblems(one.call, one.isBlock).map((problem) => [one.file, one.text, problem])),
  ).toEqual([]);
  expect(calls.length).toBeGreaterThan(60);
});

it('every call of listen and certify that a page, the console or npm start shows is accepted', () => {
  const sources = ['apps/api/docs/tools.ts', 'apps/console/pages/webhooks/verify.ts', 'apps/dev/summary.ts'];
  const shown = [...listCode(), ...sources.map((file) => ({ file, code: read(file) }))];
  const calls = shown.flatMap(({ file, code }) =>
    [...code.matchAll(/tool -- (listen|certify)((?: +(?:'[^']*'|[^\s'"`<\\]+))+)/g)].map(([text, name, args = '']) => {
      const words = [...args.replace(/[[\]]/g, '').matchAll(/'([^']*)'|\S+/g)].map(([word, quoted]) => quoted ?? word);
      return { file, text, name, args: words.map((word) => placeholders[word] ?? word) };
    }),
  );
  const wrong = calls
    .filter(({ args }) => !args.includes('--help'))
    .filter(
      ({ name, args }) => !accepts(() => (name === 'listen' ? readListenOptions(args) : readCertifyOptions(args))),
    );
  expect(wrong.map(({ file, text }) => `${file}: ${text}`)).toEqual([]);
  expect(calls.length).toBeGreaterThan(12);
});

const placeholders: Record<string, string> = {
  URL: 'http://127.0.0.1:3000/',
  TYPE: eventTypes[0] ?? '',
  '${type}': eventTypes[0] ?? '',
  '${region}': 'us',
  'whsec_…': generateSecret(),
};

function accepts(readOptions: () => unknown): boolean {
  try {
    readOptions();
    return true;
  } catch {
    return false;
  }
}

/** Returns what is wrong with a call of `orgctl`, such as `key revoke --key KEY`. */
function listProblems(call: string, isWhole: boolean): string[] {
  const [first = '', second = ''] = call.trim().split(/\s+/);
  const noun = nouns.find((one) => one.noun === first);
  if (noun === undefined) return ['unknown noun'];
  const command = noun.commands.find(({ verb }) => verb === '') ?? noun.commands.find(({ verb }) => verb === second);
  if (command === undefined) return second === '' && !isWhole ? [] : ['unknown verb'];
  const given = [...call.matchAll(/--([a-z-]+)/g)].map(([, name = '']) => name);
  const known = [...Object.keys(command.options), 'region', 'json', 'help'];
  const needed = Object.entries(command.options).filter(([, { required }]) => required && isWhole);
  return [
    ...given.filter((name) => !known.includes(name)).map((name) => `unknown option --${name}`),
    ...needed.filter(([name]) => !given.includes(name)).map(([name]) => `--${name} is missing`),
  ];
}

function isCommand(script: string, name: string | null): boolean {
  const names = subcommands[script];
  if (names === undefined || name === null) return script in scripts;
  return name in names;
}
