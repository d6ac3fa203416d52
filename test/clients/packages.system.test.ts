/** The packages as a release publishes them, installed in empty projects. */
import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { packClients } from '../../charts/release/clients.ts';
import { startFaultServer } from './fault-server.ts';

const execute = promisify(execFile);
const repository = path.join(import.meta.dirname, '../..');
const orgId = '0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d';
const key = `aln_us_${'k'.repeat(43)}`;
const body = JSON.stringify({ clients: [{ family: 'Rossi' }] });

/** The programs of these that run here, each once: a version may be missing, the last one is not. */
const findPrograms = (...names: string[]): string[] =>
  names.filter((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0);

/** Runs a program of an empty project with the settings of a partner. Returns what it prints. */
async function runAsPartner(program: string, args: string[], cwd: string, env: Record<string, string> = {}) {
  const server = await startFaultServer([{ status: 200, headers: { ETag: '"a"' }, body }]);
  const { PATH = '' } = process.env;
  const settings = { PATH, ORG_API_KEY: key, ORG_API_BASE_URL: server.url, ...env };
  const { stdout } = await execute(program, args, { cwd, env: settings });
  expect(server.requests).toHaveLength(1);
  return stdout.trim();
}

it('are the same bytes each time, and run on Node and Python without anything else', { timeout: 600_000 }, async () => {
  const folders = [temporaryFolder(), temporaryFolder()] as const;
  const packages = folders.map((out) => packClients({ repository, out }));
  const [first, second] = folders.map((folder) =>
    readdirSync(folder)
      .sort()
      .map(
        (name) =>
          `${name} ${createHash('sha256')
            .update(readFileSync(path.join(folder, name)))
            .digest('hex')}`,
      ),
  );
  expect(first).toEqual(second);
  const names = ['@org-api/client', '@org-api/receiver', 'org-api', 'org-api-receiver'];
  expect(packages[0]?.map(({ name }) => name).sort()).toEqual(names);
  const find = (pattern: RegExp) =>
    path.join(folders[0], readdirSync(folders[0]).find((name) => pattern.test(name)) ?? '');

  const project = temporaryFolder();
  writeFileSync(path.join(project, 'package.json'), '{"type":"module"}');
  await execute('npm', ['install', '--offline', '--no-audit', '--no-fund', find(/^org-api-client-/)], { cwd: project });
  writeFileSync(
    path.join(project, 'main.js'),
    `import { OrgApi } from '@org-api/client';
     const { data } = await new OrgApi().getFirmRoster('${orgId}');
     console.log(data.clients[0].family);`,
  );
  const nodes = findPrograms(process.execPath, '/usr/bin/node');
  for (const node of nodes) expect(await runAsPartner(node, ['main.js'], project)).toBe('Rossi');

  const read = `from org_api import OrgApi; print(OrgApi().get_firm_roster("${orgId}").data["clients"][0]["family"])`;
  const pythons = findPrograms('python3.9', 'python3.11', 'python3.13', 'python3');
  expect(pythons).toContain('python3');
  const target = temporaryFolder();
  await execute('python3', ['-m', 'pip', 'install', '--no-index', '--target', target, find(/^org_api-.*whl$/)]);
  for (const python of pythons)
    expect(await runAsPartner(python, ['-B', '-W', 'error', '-c', read], project, { PYTHONPATH: target })).toBe(
      'Rossi',
    );
});
