/** The samples of the reference, as its page shows them, with the programs that every machine has. */
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { shareInstallation } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { expectBodies, readShownSamples, write } from './shown-samples.ts';

const shown = shareInstallation(readShownSamples);
const run = promisify(execFile);
const clients = path.join(import.meta.dirname, '../../../apps/clients');
const { CLIENTS_PYTHON = 'python3' } = process.env;

/** Runs shell lines with these variables. @throws Error with what they printed when one fails. */
const runShell = async (lines: string, env: Record<string, string>): Promise<string> =>
  (await run('sh', ['-ec', lines], { env: { ...process.env, ...env } })).stdout;

it('every read has a sample in curl that prints the body', async () => {
  const { environment, reads } = shown();
  expectBodies(reads, await runShell(reads.map(({ code }) => `${code.curl}\nprintf '\\001'`).join('\n'), environment));
});

it('a sample in curl ends with an error when the API rejects the key', async () => {
  const { environment, reads } = shown();
  const rejected = runShell(reads[0]?.code.curl ?? '', { ...environment, ORG_API_KEY: 'aln_us_none' });
  await expect(rejected).rejects.toMatchObject({ code: 22, stdout: expect.stringContaining('invalid_api_key') });
});

it('every read has a sample in TypeScript that prints the body, by the client of this version', async () => {
  const { environment, reads } = shown();
  const folder = temporaryFolder();
  const client = path.join(folder, 'node_modules/@org-api/client');
  mkdirSync(client, { recursive: true });
  write(client, 'package.json', '{ "type": "module", "exports": "./index.js" }');
  write(client, 'index.js', `export * from ${JSON.stringify(path.join(clients, 'typescript/src/index.ts'))};\n`);
  write(folder, 'package.json', '{ "type": "module" }');
  for (const { id, code } of reads) write(folder, `${id}.ts`, code.typescript);
  const steps = reads.map(({ id }) => `await import('./${id}.ts');\nprocess.stdout.write('\\u0001');`);
  const { stdout } = await run(process.execPath, [write(folder, 'all.js', steps.join('\n'))], {
    env: { ...process.env, ...environment },
  });
  expectBodies(reads, stdout);
});

it('every read has a sample in Python that prints the body, by the client of this version', async () => {
  const { environment, reads } = shown();
  const folder = temporaryFolder();
  const files = reads.map(({ id, code }) => write(folder, `${id}.py`, code.python));
  const steps = [
    'import runpy, sys',
    'for file in sys.argv[1:]:',
    '    runpy.run_path(file)',
    '    print("\\x01", end="")',
  ];
  const { stdout } = await run(CLIENTS_PYTHON, ['-c', steps.join('\n'), ...files], {
    env: { ...process.env, ...environment, PYTHONPATH: path.join(clients, 'python'), PYTHONDONTWRITEBYTECODE: '1' },
  });
  expectBodies(reads, stdout);
});
