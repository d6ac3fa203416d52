/** The packages as a release publishes them, installed in empty projects. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, globSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { endChild } from '#test/end-child.ts';
import { shareInstallation } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { samples } from '../../apps/api/docs/samples.ts';
import { endpoints } from '../../apps/api/endpoints.ts';
import { getFreePort } from '../../apps/dev/servers/ports.ts';
import { installLines } from '../../apps/dev/summary.ts';
import { packClients } from '../../charts/release/clients.ts';
import {
  execute,
  findPrograms,
  findPythons,
  installPackages,
  inventDelivery,
  repository,
  runAsPartner,
  startPartner,
  tools,
} from './installed-packages.ts';
import { openPostgres } from './receivers/own-databases.ts';
import { readBlocks, readTypescriptReceiver } from './receivers/readme-receivers.ts';

const timeout = 600_000;
const orgId = '0b54b1c4-5f0f-4f0e-9a53-0d5c1a6b2c3d';
const key = `aln_us_${'k'.repeat(43)}`;
const installed = shareInstallation(installPackages);
const shown = endpoints.map(
  ({ operationId: id, resource }) => [id, samples({ id, path: `/v1/orgs/{orgId}${resource}` })] as const,
);

it('a release packs four packages, with the same bytes each time', { timeout }, () => {
  const { packed, packages } = installed();
  const again = temporaryFolder();
  packClients({ repository, out: again });
  const [first, second] = [packed, again].map((folder) =>
    readdirSync(folder)
      .sort()
      .map((name) => {
        const bytes = readFileSync(path.join(folder, name));
        return `${name} ${createHash('sha256').update(bytes).digest('hex')}`;
      }),
  );
  expect(first).toEqual(second);
  const names = ['@org-api/client', '@org-api/receiver', 'org-api', 'org-api-receiver'];
  expect(packages.map(({ name }) => name).sort()).toEqual(names);
});

it('the lines of npm start install all four from a checkout, without a package index and leaving no file in it', {
  timeout,
}, async () => {
  const listFiles = async () =>
    (await execute('git', ['status', '--porcelain', '--untracked-files=all'], { cwd: repository })).stdout;
  const [project, target, before] = [temporaryFolder(), temporaryFolder(), await listFiles()];
  await execute('sh', ['-ec', installLines.join('\n')], {
    cwd: project,
    env: { ...process.env, npm_config_offline: 'true', PIP_NO_INDEX: '1', PIP_TARGET: target },
  });
  expect(await listFiles()).toBe(before);
  const imports = ['client', 'receiver'].map((name) => `console.log(await import('@org-api/${name}'))`).join(';');
  const shown = await execute('node', ['--input-type=module', '--eval', imports], { cwd: project });
  expect(shown.stdout).toMatch(/OrgApi: \[class OrgApi[\s\S]*receive: \[AsyncFunction/);
  const program = 'import org_api, org_api_receiver; print(org_api, org_api_receiver)';
  const env = { ...process.env, PYTHONPATH: target };
  const python = await execute('python3', ['-B', '-c', program], { env });
  expect(python.stdout.split(target)).toHaveLength(3);
});

describe('the TypeScript client in an empty project', () => {
  const program = `import { OrgApi } from '@org-api/client';
     const { data } = await new OrgApi().getFirmRoster('${orgId}');
     console.log(data.clients[0].family);`;
  const writeProgram = (project: string) => writeFileSync(path.join(project, 'main.js'), program);

  it('reads the roster on Node 20 and on the newest', { timeout }, async () => {
    const { project } = installed();
    writeProgram(project);
    for (const node of await findNodes()) expect(await runAsPartner(key, [node, 'main.js'], project)).toBe('Rossi');
  });

  it('reads the roster on Deno, with rights for two variables and one host only', { timeout }, async () => {
    const { project } = installed();
    writeProgram(project);
    const deno = await findBinary('deno');
    const rights = ['--no-prompt', '--allow-env=ORG_API_KEY,ORG_API_BASE_URL', '--allow-net=127.0.0.1'];
    const more = { DENO_DIR: temporaryFolder(), DENO_NO_UPDATE_CHECK: '1' };
    expect(await runAsPartner(key, [deno, 'run', '--quiet', ...rights, 'main.js'], project, more)).toBe('Rossi');
  });

  it('reads the roster on Bun', { timeout }, async () => {
    const { project } = installed();
    writeProgram(project);
    expect(await runAsPartner(key, [await findBinary('bun'), 'main.js'], project)).toBe('Rossi');
  });

  it('reads the roster in a Worker (workerd)', { timeout }, async () => {
    const { project } = installed();
    const worker = `import { OrgApi } from '@org-api/client';
      export default {
        async fetch(_request, { ORG_API_KEY: key, ORG_API_BASE_URL: baseUrl }) {
          const { data } = await new OrgApi({ key, baseUrl }).getFirmRoster('${orgId}');
          return new Response(data.clients[0].family);
        },
      };`;
    writeFileSync(path.join(project, 'worker.js'), worker);
    // A Worker is uploaded in one piece; its tools bundle as Bun does.
    await execute(await findBinary('bun'), ['build', 'worker.js', '--outfile', 'bundle.js'], { cwd: project });
    const port = await getFreePort();
    const config = `using Workerd = import "/workerd/workerd.capnp";
      const config :Workerd.Config = (
        services = [
          (name = "main", worker = (
            compatibilityDate = "2026-11-01",
            modules = [(name = "worker.js", esModule = embed "bundle.js")],
            bindings = [
              (name = "ORG_API_KEY", fromEnvironment = "ORG_API_KEY"),
              (name = "ORG_API_BASE_URL", fromEnvironment = "ORG_API_BASE_URL")],
            globalOutbound = "server")),
          (name = "server", network = (allow = ["private"]))],
        sockets = [(name = "http", address = "127.0.0.1:${port}", http = (), service = "main")]);`;
    writeFileSync(path.join(project, 'config.capnp'), config);
    const { server, env } = await startPartner(key);
    const child = spawn(await findBinary('workerd'), ['serve', 'config.capnp'], {
      cwd: project,
      env,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    onTestFinished(() => endChild(child).then(() => {}));
    expect(await readWhenReady(child, `http://127.0.0.1:${port}/`)).toBe('Rossi');
    expect(server.requests[0]?.headers.authorization).toBe(`Bearer ${key}`);
  });
});

it('the TypeScript kit takes a delivery once on Node 20 and on the newest', { timeout }, async () => {
  const { project } = installed();
  symlinkSync(path.join(repository, 'node_modules/pg'), path.join(project, 'node_modules/pg'));
  const program = `import { postgres, receive, schema } from '@org-api/receiver';
    import { Pool } from 'pg';
    const { BODY, DATABASE, HEADERS, WEBHOOK_SECRET } = process.env;
    const pool = new Pool({ connectionString: DATABASE });
    for (const statement of schema) await pool.query(statement);
    const headers = new Headers(JSON.parse(HEADERS));
    const options = { secrets: () => [WEBHOOK_SECRET], database: postgres(pool), apply: async () => {} };
    const take = () => receive((name) => headers.get(name), Buffer.from(BODY), options);
    console.log(await take(), await take());
    await pool.end();`;
  writeFileSync(path.join(project, 'receiver.js'), program);
  const { database } = await openPostgres();
  for (const node of await findNodes()) {
    const env = { ...inventDelivery(), DATABASE: database };
    const { stdout } = await execute(node, ['receiver.js'], { cwd: project, env });
    expect(stdout).toBe('applied repeat\n');
  }
});

const pythons = findPythons();
// The oldest is listed where it is not installed too, as skipped.
describe.each([...new Set(['3.9', ...pythons.keys()])])('the Python packages on Python %s', (version) => {
  const python = pythons.get(version) ?? '';
  const run = [python, '-B', '-W', 'error', '-c'] as const;

  it.runIf(python)('read the roster', { timeout }, async () => {
    const { project, python: target } = installed();
    const read = `from org_api import OrgApi; print(OrgApi().get_firm_roster("${orgId}").data["clients"][0]["family"])`;
    expect(await runAsPartner(key, [...run, read], project, { PYTHONPATH: target })).toBe('Rossi');
  });

  it.runIf(python)('take a delivery once', { timeout }, async () => {
    const [program, ...args] = run;
    const env = { ...inventDelivery(), PYTHONPATH: installed().python };
    const { stdout } = await execute(program, [...args, pythonReceiver], { cwd: temporaryFolder(), env });
    expect(stdout).toBe('applied repeat\n');
  });
});

const pythonReceiver = `
import json, sqlite3
from os import environ
from org_api_receiver import SCHEMA, receive, sqlite

def transaction():
    return sqlite(lambda: sqlite3.connect("receiver.sqlite"))

with transaction() as tx:
    for statement in SCHEMA:
        tx.execute(statement, ())

def take():
    headers, body = json.loads(environ["HEADERS"]), environ["BODY"].encode()
    secrets = lambda endpoint: [environ["WEBHOOK_SECRET"]]
    return receive(headers, body, secrets=secrets, transaction=transaction, apply=lambda event, tx: None)

print(take(), take())
`;

it('tsc accepts what the READMEs of the TypeScript packages and the reference show', { timeout }, async () => {
  const { project } = installed();
  const types = path.join(project, 'node_modules/@types');
  mkdirSync(types);
  const ofTests = path.join(repository, 'node_modules/@types');
  for (const name of ['node', 'pg']) symlinkSync(path.join(ofTests, name), path.join(types, name));
  // A copy, which finds the types of Node beside it.
  const ofSqlite = path.join(await tools.npm(), '@types/better-sqlite3');
  cpSync(ofSqlite, path.join(types, 'better-sqlite3'), { recursive: true });
  const client = `${readBlocks('typescript', 'ts').join('\n')}
    declare const organizationId: string;
    declare const stored: { etag: string };
    declare function store(members: Awaited<ReturnType<OrgApi['listMembers']>>['data'], etag: string): Promise<void>;`;
  const files = {
    'client.ts': client,
    'postgres.ts': readTypescriptReceiver('pg'),
    'node-sqlite.ts': readTypescriptReceiver('node:sqlite'),
    'better-sqlite3.ts': readTypescriptReceiver('better-sqlite3'),
    ...Object.fromEntries(shown.map(([id, code]) => [`${id}.ts`, code.typescript])),
  };
  for (const [name, code] of Object.entries(files)) writeFileSync(path.join(project, name), code);
  const options = ['--strict', '--noEmit', '--module', 'nodenext', '--target', 'es2022', '--types', 'node'];
  const tsc = path.join(repository, 'node_modules/.bin/tsc');
  const result = await execute(tsc, [...options, ...Object.keys(files)], { cwd: project }).catch((error) => error);
  expect(result.stdout).toBe('');
});

it('mypy accepts the Python packages, and what their READMEs and the reference show', { timeout }, async () => {
  const { python: target } = installed();
  const folder = temporaryFolder();
  const client = readBlocks('python', 'python').join('\n');
  const declared = 'from typing import Any\norganization_id: str\nstored_etag: str\ndef store(*_: Any) -> None: ...\n';
  writeFileSync(path.join(folder, 'client.py'), declared + client);
  writeFileSync(path.join(folder, 'receiver.py'), readBlocks('receiver-python', 'python').join('\n'));
  const mypy = path.join(await tools.python(), 'bin/mypy');
  const check = async (...args: string[]) => {
    const env = { ...process.env, MYPYPATH: target };
    const { stdout } = await execute(mypy, args, { cwd: folder, env }).catch((error) => error);
    expect(stdout).toMatch(/^Success/);
  };
  await check('--strict', '-p', 'org_api', '-p', 'org_api_receiver');
  for (const [id, code] of shown) writeFileSync(path.join(folder, `${id}.py`), code.python);
  await check('--strict', 'client.py', ...shown.map(([id]) => `${id}.py`));
  await check('--check-untyped-defs', 'receiver.py');
});

/** Returns the oldest Node that the packages support, and the newest. */
async function findNodes(): Promise<string[]> {
  const packages = await tools.npm();
  const [oldest = ''] = globSync(path.join(packages, 'node-*/bin/node'));
  const { stdout } = await execute(oldest, ['--version']);
  expect(stdout).toMatch(/^v20\./);
  return [oldest, process.execPath];
}

/** Returns the program of a package that has one for each platform, in a package of its own. */
async function findBinary(name: 'deno' | 'bun' | 'workerd'): Promise<string> {
  const packages = await tools.npm();
  const scope = { deno: '@deno', bun: '@oven', workerd: '@cloudflare' }[name];
  const files = readdirSync(path.join(packages, scope)).flatMap((platform) =>
    ['', 'bin'].map((folder) => path.join(packages, scope, platform, folder, name)),
  );
  const [program] = findPrograms(...files);
  return program ?? expect.fail(`npm has no ${name} for this platform`);
}

async function readWhenReady(child: ChildProcess, url: string): Promise<string> {
  const read = () =>
    fetch(url).then(
      (response) => response.text(),
      () => null,
    );
  await expect.poll(async () => child.exitCode ?? (await read()), { timeout: 60_000 }).not.toBeNull();
  return (await read()) ?? '';
}
