/** The packages as a release publishes them, and the programs of this machine that can run them. */
import { execFile, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { generateSecret } from '#domain/webhooks/secret.ts';
import { signatureHeaders } from '#domain/webhooks/sign.ts';
import { npmPackages } from '#test/npm-packages.ts';
import { pythonEnvironment } from '#test/python-environment.ts';
import type { OnFinished } from '#test/setup.ts';
import { packClients } from '../../charts/release/clients.ts';
import { startFaultServer } from './fault-server.ts';

export const execute = promisify(execFile);
export const repository = path.join(import.meta.dirname, '../..');
const source = path.join(import.meta.dirname, 'packages');

/** The tools of these tests, each installed once into the user's cache by its lock. */
export const tools = {
  npm: () => npmPackages({ name: 'test-clients', source }),
  python: () => {
    const requirements = path.join(source, 'requirements.txt');
    return pythonEnvironment({
      name: 'test-clients-python',
      version: readFileSync(requirements, 'utf8'),
      install: ['--requirement', requirements],
      program: 'mypy',
      remedy: 'install Python 3.11 or newer with its venv module, and check the network and the Python package index',
    });
  },
};

/** Packs everything, and installs it into an empty project of each language, by the lines of the READMEs. */
export async function installPackages(onFinished: OnFinished) {
  const createFolder = () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'org-api-packages-'));
    onFinished(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
  };
  const [packed, project, python] = [createFolder(), createFolder(), createFolder()];
  const packages = packClients({ repository, out: packed });
  cpSync(packed, project, { recursive: true });
  writeFileSync(path.join(project, 'package.json'), '{"type":"module"}');
  const offline = { npm_config_offline: 'true', npm_config_audit: 'false', PIP_NO_INDEX: '1', PIP_TARGET: python };
  const lines = ['typescript', 'receiver-typescript', 'python', 'receiver-python'].map(readInstallLine);
  const script = ['pip() { python3 -m pip "$@"; }', ...lines].join('\n');
  await execute('sh', ['-ec', script], { cwd: project, env: { ...process.env, ...offline } });
  return { packed, packages, project, python };
}

/** Returns the line of a package's README that installs it from the folder of a release's files. */
function readInstallLine(folder: string): string {
  const text = readFileSync(path.join(repository, 'apps/clients', folder, 'README.md'), 'utf8');
  return /^(?:npm|pip) install .*$/m.exec(text)?.[0] ?? expect.fail(`the README of ${folder} installs nothing`);
}

/** Returns the programs of these that run here. */
export const findPrograms = (...programs: string[]): string[] =>
  programs.filter((program) => spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0);

/** Returns every Python from 3.9 that is on PATH or that pyenv has installed, by its version: `3.13`. */
export function findPythons(): Map<string, string> {
  const { PYENV_ROOT = path.join(homedir(), '.pyenv') } = process.env;
  const installed = globSync(path.join(PYENV_ROOT, 'versions/3.{9,1[0-9]}.*/bin/python3'));
  const readVersion = 'import sys; print("%d.%d" % sys.version_info[:2])';
  return new Map(
    [...installed, 'python3.9', 'python3.14', 'python3'].flatMap((program) => {
      const { status, stdout } = spawnSync(program, ['-c', readVersion], { encoding: 'utf8' });
      return status === 0 ? [[stdout.trim(), program] as const] : [];
    }),
  );
}

/** Starts a server that answers every read with one family, for a program with the settings of a partner. */
export async function startPartner(key: string) {
  const body = JSON.stringify({ clients: [{ family: 'Rossi' }] });
  const server = await startFaultServer([{ status: 200, headers: { ETag: '"a"' }, body }]);
  const env = { PATH: process.env.PATH ?? '', ORG_API_KEY: key, ORG_API_BASE_URL: server.url };
  return { server, env };
}

/** Returns the environment of a receiver to which a webhook of its own delivers an event, by variables of the tests. */
export function inventDelivery() {
  const [id, secret] = [randomUUID(), generateSecret()];
  const createdAt = new Date().toISOString();
  const data = { grantId: randomUUID(), kind: 'attorney' };
  const body = JSON.stringify({ id, type: 'client.started', createdAt, organization: { id: randomUUID() }, data });
  const signature = signatureHeaders({ id, timestampSeconds: Math.floor(Date.now() / 1_000), body, secrets: [secret] });
  const headers = { ...signature, 'webhook-endpoint': randomUUID(), 'webhook-sequence': '1' };
  return { PATH: process.env.PATH ?? '', WEBHOOK_SECRET: secret, HEADERS: JSON.stringify(headers), BODY: body };
}

/** Runs a program as a partner. Returns what it prints. */
export async function runAsPartner(key: string, [program = '', ...args]: string[], cwd: string, more = {}) {
  const { server, env } = await startPartner(key);
  const { stdout } = await execute(program, args, { cwd, env: { ...env, ...more } });
  expect(server.requests).toHaveLength(1);
  return stdout.trim();
}
