/** Every command of package.json, and what any of them does with its streams. Those of `orgctl` are in test/orgctl. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { closedPipeCode } from '#runtime/command-line.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { hostileShell } from '#test/hostile-surroundings.ts';
import { setupOrgctl } from '#test/orgctl.ts';
import { runCommand } from '#test/run-command.ts';
import { subcommands } from '../../apps/dev/subcommand.ts';
import { listCode } from '../docs/code-of-pages.ts';

const root = path.join(import.meta.dirname, '../..');
const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};
/** The programs of this project; others are Vitest, or start it with the caller's arguments. */
const commands = [
  ...Object.entries(scripts).flatMap(([name, line]) => {
    const [, program = null] = /(?:^|exec )node (\S+\.ts)(?: \S+)?$/.exec(line) ?? [];
    const isOwn = !(name in subcommands) && name !== 'test:operator';
    return program !== null && isOwn ? [[name, program] as const] : [];
  }),
  ...Object.values(subcommands)
    .flatMap(Object.entries)
    .flatMap(([name, { run }]) => (run[0].endsWith('.ts') && name !== 'security' ? [[name, run[0]] as const] : [])),
];

/** Runs a command without a terminal; `isClosed`: its standard output has no reader. */
const run = (
  args: string[],
  { env = {}, isClosed = false }: { env?: Record<string, string>; isClosed?: boolean } = {},
) => runCommand(args, { ...childEnvironment, ...env }, isClosed);

// biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there
const control = /[\x00-\x09\x0b-\x1f\x7f-\x9f]/;

/** A child takes most of a second, so what all commands share is tried on few of them. */
describe.concurrent('a command without a terminal', () => {
  it.each(['start', 'orgctl', 'migrate', 'generate', 'dev:key', 'listen'])(
    '%s writes its help to standard output, without control characters',
    async (name) => {
      const program = commands.find(([each]) => each === name)?.[1] ?? '';
      const { code, stdout, stderr } = await run([program, '--help'], { env: { FORCE_COLOR: '1' } });
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(/^Usage: /);
      expect(stdout).not.toMatch(control);
    },
  );

  it.each(commands)(
    '%s rejects an unknown option in a sentence on standard error, which shows or names its usage',
    async (_name, program) => {
      const { code, stdout, stderr } = await run([program, '--no-such-option'], { env: { FORCE_COLOR: '1' } });
      expect({ code, stdout }).toEqual({ code: expect.toBeOneOf([1, 2]), stdout: '' });
      expect(stderr).toMatch(/no-such-option/);
      expect(stderr).toMatch(/Usage: |--help/);
      expect(stderr).not.toMatch(/\n\s+at /);
      expect(stderr).not.toMatch(control);
    },
  );

  it.each([
    ...commands.map(([name, program]) => [`the help of ${name}`, [program, '--help']] as const),
    ['generate', ['apps/import/generate/main.ts', '--organizations', '3']] as const,
    ['openapi', ['apps/api/openapi/write.ts']] as const,
  ])('%s ends quietly when its standard output has no reader', async (_name, args) => {
    expect(await run([...args], { isClosed: true })).toEqual({ code: closedPipeCode, stdout: '', stderr: '' });
  });
});

it('the help of a command has every option that a page names', async () => {
  const named = listNamedOptions();
  const missing: string[] = [];
  for (const [name, program] of commands) {
    const options = named.get(name) ?? [];
    if (options.length === 0) continue;
    const { stdout } = await run([program, '--help']);
    missing.push(...options.filter((option) => !stdout.includes(option)).map((option) => `${name} ${option}`));
    named.delete(name);
  }
  expect(missing).toEqual([]);
  // Tests, whose further arguments are Vitest's.
  expect([...named.keys()]).toEqual(['test:operator']);
});

it.each([
  ['orgctl', 'npm run -s orgctl --', 'apps/orgctl/main.ts'],
  ['import', 'npm run -s import --', 'apps/import/main.ts'],
  ['generate', 'npm run -s generate --', 'apps/import/generate/main.ts'],
  ['tool', 'npm run tool -- migrate', 'apps/migrate/main.ts'],
])('the help of a program of the image names npm only when npm started it (%s)', async (script, npmCall, program) => {
  const readHelp = async (env: Record<string, string>) => (await run([program, '--help'], { env })).stdout;
  const [inPod, byNpm] = [await readHelp({ npm_lifecycle_event: '' }), await readHelp({ npm_lifecycle_event: script })];
  expect(inPod.split('\n')[0]).toMatch(new RegExp(`^Usage: node ${RegExp.escape(program)}( |$)`));
  expect(inPod).not.toContain('npm');
  expect(byNpm.split('\n')[0]).toMatch(new RegExp(`^Usage: ${RegExp.escape(npmCall)}( |$)`));
});

/** Returns the options of each command that a page names; those of `orgctl` are in test/docs. */
function listNamedOptions(): Map<string, string[]> {
  const call = /\bnpm (?:run )?(?:-s |--silent )?([a-z][\w:]*) -- ([^\n#|>]*)/g;
  const calls = listCode().flatMap(({ code }) => [...code.matchAll(call)]);
  const named = calls.flatMap(([, script = '', args = '']) => {
    const name = script in subcommands ? (args.split(' ')[0] ?? '') : script;
    const options = [...args.matchAll(/--(?!help)[a-z-]+/g)];
    return options.map(([option]) => ({ name, option }));
  });
  const others = named.filter(({ name }) => name !== 'orgctl');
  return new Map(
    [...Map.groupBy(others, ({ name }) => name)].map(([name, all]) => [name, all.map(({ option }) => option)]),
  );
}

it('migrate and import end quietly when their standard output has no reader', async () => {
  const { env } = await setupOrgctl();
  for (const args of [['apps/migrate/main.ts'], ['apps/import/main.ts', 'test/fixtures/us.json']]) {
    const read = await run(args, { env });
    expect([args, read.code, read.stdout]).toEqual([args, 0, expect.stringMatching(/./)]);
    expect(`${read.stdout}${read.stderr}`).not.toMatch(control);
    const { code, stderr } = await run(args, { env, isClosed: true });
    expect([args, code, /\n\s+at |EPIPE/.test(stderr)]).toEqual([args, closedPipeCode, false]);
  }
});

it.each([
  ['bench growth', 'apps/dev/subcommand.ts', 'bench', 'growth', '--rows', '10,x'],
  ['bench deliveries', 'apps/dev/subcommand.ts', 'bench', 'deliveries', '--store', 'paper'],
  ['tool chaos', 'apps/dev/subcommand.ts', 'tool', 'chaos', '--webhooks', '21'],
])('%s rejects a value that it cannot use before it starts anything', async (_name, ...args) => {
  const { code, stdout, stderr } = await run(args);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(/^[^\n]+ (must be|is) [^\n]+\.\n\nUsage: /);
});

it.each(['bench', 'tool'])(
  'npm run %s names its subcommands, on standard error when none of them is asked for',
  async (group) => {
    const names = Object.keys(subcommands[group] ?? {});
    const help = await run(['apps/dev/subcommand.ts', group, '--help']);
    expect({ code: help.code, stderr: help.stderr }).toEqual({ code: 0, stderr: '' });
    const wrong = await run(['apps/dev/subcommand.ts', group, 'nothing']);
    expect({ code: wrong.code, stdout: wrong.stdout }).toEqual({ code: 2, stdout: '' });
    for (const name of names)
      for (const text of [help.stdout, wrong.stderr]) expect(text).toMatch(new RegExp(`^  ${name} `, 'm'));
  },
);

it('every command prints the same under a shell with variables for others', async () => {
  const { env } = await setupOrgctl();
  const calls = [
    ['apps/import/generate/main.ts', '--organizations', '3', '--as-of', '2026-11-20'],
    ['apps/migrate/main.ts'],
    ['apps/import/main.ts', 'test/fixtures/us.json'],
    ['apps/receiver/listen/main.ts', '--help'],
    ['apps/dev/create-key.ts', '--help'],
    ['apps/dev/main.ts', '--help'],
  ];
  await run(['apps/import/main.ts', 'test/fixtures/us.json'], { env }); // later ones change nothing
  for (const args of calls) {
    const ordinary = await run(args, { env });
    const hostile = await run(args, { env: { ...hostileShell, ...env } });
    expect([args, hostile.code, hostile.stdout]).toEqual([args, 0, ordinary.stdout]);
    expect(`${hostile.stdout}${hostile.stderr}`).not.toMatch(control);
  }
});

it('a command whose standard error has no reader does its work', async () => {
  const { env } = await setupOrgctl();
  const child = spawn(process.execPath, ['apps/migrate/main.ts'], {
    cwd: root,
    env: { ...childEnvironment, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stderr.destroy();
  let stdout = '';
  child.stdout.on('data', (bytes) => {
    stdout += bytes;
  });
  expect(await new Promise((resolve) => child.once('close', resolve))).toBe(0);
  expect(stdout).toContain('the schema is ');
});
