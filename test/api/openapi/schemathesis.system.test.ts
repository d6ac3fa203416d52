import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { validKeysPerOrganization } from '#domain/contract/limits.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { setup, type TestInstallation } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { importFile } from '../../../apps/import/document/import-file.ts';
import { generateSample } from '../../../apps/import/generate/sample.ts';
import { getSchemathesis } from './schemathesis/install.ts';

const document = fileURLToPath(new URL('../../../apps/api/openapi/openapi.json', import.meta.url));
const hooks = fileURLToPath(new URL('schemathesis/keys.py', import.meta.url));

describe('the API', () => {
  it('behaves as its OpenAPI document says: all checks and phases of schemathesis find nothing', async () => {
    const { api, logLines, ...installation } = await setup();
    const keys = await makeKeys(installation);

    const { code, output } = await runSchemathesis({ document, url: api.url, keys, maxExamples: 300 });

    expect(code, output).toBe(0);
    expect(output).toContain('No issues found');
    // Not all responses were 429 or 404: each read succeeded, and error responses of every kind
    // occurred.
    const responses = new Set(
      logLines.map((line) => JSON.parse(line)).map(({ operation, status }) => `${operation} ${status}`),
    );
    for (const { operationId } of endpoints) {
      for (const status of [200, 304, 400, 401, 403, 404]) expect(responses).toContain(`${operationId} ${status}`);
      expect(responses).not.toContain(`${operationId} 429`);
    }
  }, 300_000);

  it('is rejected by schemathesis when its document omits 404', async () => {
    const { api, ...installation } = await setup();
    const keys = await makeKeys(installation);
    const folder = temporaryFolder();
    const faulty = path.join(folder, 'openapi.json');
    writeFileSync(faulty, readFileSync(document, 'utf8').replaceAll('"404"', '"410"'));

    const { code, output } = await runSchemathesis({ document: faulty, url: api.url, keys, maxExamples: 10 });

    expect(code).toBe(1);
    expect(output).toContain('Undocumented status code');
  }, 300_000);
});

/**
 * Creates six organizations with data of every kind and their maximum number of keys: 18,000
 * requests a minute.
 */
async function makeKeys({
  database,
  make,
}: Pick<TestInstallation, 'database' | 'make'>): Promise<Record<string, string[]>> {
  const asOf = new Date().toISOString().slice(0, 10);
  const sample = generateSample({ region: 'us', organizations: 6, familiesPerOrganization: 8, seed: 9, asOf });
  const source = (async function* () {
    for await (const piece of sample) yield Buffer.from(piece);
  })();
  const imported = await importFile({
    server: parsePostgresUrl(database.ownerUrl),
    source,
    fileName: 'sample',
    region: 'us',
  });
  const keys: Record<string, string[]> = {};
  for (const { id: orgId, ownerUserId } of imported.organizations) {
    if (ownerUserId === null) continue;
    const creator = { orgId, userId: ownerUserId, roleId: null };
    const made = Array.from({ length: validKeysPerOrganization }, () => make.apiKey({ creator }));
    keys[orgId] = (await Promise.all(made)).map(({ key }) => key);
  }
  return keys;
}

/**
 * Runs schemathesis to its end without blocking the API, which runs in this process. `code` is 0
 * when it found nothing, 1 when it found something.
 */
async function runSchemathesis(run: {
  document: string;
  url: string;
  keys: Record<string, string[]>;
  maxExamples: number;
}) {
  const program = await getSchemathesis();
  const folder = temporaryFolder();
  const settings = path.join(folder, 'schemathesis.toml');
  const keysFile = path.join(folder, 'keys.json');
  writeFileSync(settings, settingsText(Object.keys(run.keys), run.maxExamples));
  writeFileSync(keysFile, JSON.stringify(run.keys), { mode: 0o600 });
  const words = ['--config-file', settings, 'run', run.document, '--url', run.url, '--no-color'];
  const everything = ['--checks', 'all', '--phases', 'examples,coverage,fuzzing,stateful', '--mode', 'all'];
  const env = {
    PATH: process.env.PATH ?? '',
    HOME: folder,
    ORG_API_KEYS: keysFile,
    PYTHONDONTWRITEBYTECODE: '1',
  };
  return new Promise<{ code: number | string; output: string }>((resolve) => {
    execFile(program, [...words, ...everything], { cwd: folder, env, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal ?? 1), output: `${stdout}${stderr}` });
    });
  });
}

/**
 * Most requests name an organization that exists, so that they succeed. The others get 404 and 400.
 */
function settingsText(organizationIds: string[], maxExamples: number): string {
  return `
hooks = ${JSON.stringify(hooks)}
workers = 2
request-timeout = 10

[warnings]
fail-on = true

[dictionaries.organizations]
values = ${JSON.stringify(organizationIds)}

[dictionaries.etags]
values = ["*"]

[parameters]
"path.orgId" = { dictionary = "organizations", probability = 0.7 }
"header.If-None-Match" = { dictionary = "etags", probability = 0.2 }

[generation]
max-examples = ${maxExamples}
database = "none"
`;
}
