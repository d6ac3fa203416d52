/** The Postman collection that the API serves, run as it is by Postman's own runner. */
import { createHash } from 'node:crypto';
import { cpSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from 'vitest';
import { setup } from '#test/setup.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import { runTool } from '#test/tools.ts';
import { endpoints } from '../../../apps/api/endpoints.ts';
import { cacheFolder, provideFolder } from '../../../apps/dev/servers/cache-folder.ts';
import { write } from './shown-samples.ts';

const remedy = 'see its output, and check the network and the package registry';

/** Returns newman, which is installed once into the user's cache folder. */
async function getNewman(): Promise<string> {
  const source = path.join(import.meta.dirname, 'newman');
  const lock = readFileSync(path.join(source, 'package-lock.json'));
  const home = cacheFolder(`newman-${createHash('sha256').update(lock).digest('hex').slice(0, 16)}`);
  await provideFolder(home, async (draft) => {
    cpSync(source, draft, { recursive: true });
    const install = ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'] as const;
    await runTool(install, { what: 'newman cannot be installed', remedy, cwd: draft });
    return true;
  });
  return path.join(home, 'node_modules/.bin/newman');
}

interface Report {
  run: { executions: { item: { name: string }; response: { code: number; stream: { data: number[] } } }[] };
}

it('every read of the Postman collection answers 200 with its body, and all fail with another key', {
  timeout: 600_000,
}, async () => {
  const newman = await getNewman();
  const { api, make } = await setup();
  const { key, orgId } = await make.apiKey();
  const folder = temporaryFolder();
  const collection = write(folder, 'collection.json', await (await api.get('/v1/postman-collection.json')).text());
  const report = path.join(folder, 'report.json');
  const values = { baseUrl: api.url, orgId, apiKey: key };
  const variables = Object.entries(values).flatMap(([name, value]) => ['--env-var', `${name}=${value}`]);
  const json = ['--reporters', 'json', '--reporter-json-export', report];
  await runTool([newman, 'run', collection, ...variables, ...json], { what: 'the collection failed', remedy });
  const { executions } = (JSON.parse(readFileSync(report, 'utf8')) as Report).run;
  expect(executions.map(({ item }) => item.name)).toEqual(endpoints.map(({ summary }) => summary));
  for (const [index, { response }] of executions.entries()) {
    const body = JSON.parse(Buffer.from(response.stream.data).toString()) as unknown;
    const { resource } = endpoints[index] as { resource: string };
    expect(body).toEqual(await (await api.get(`/v1/orgs/${orgId}${resource}`, { key })).json());
  }
  const rejected = runTool([newman, 'run', collection, ...variables, '--env-var', 'apiKey=aln_us_none'], {
    what: 'rejected',
    remedy,
  });
  await expect(rejected).rejects.toThrow('rejected');
});
