/**
 * The programs that the benchmark of reads compares the API with use its statements and its tables.
 * A ratio says something only while all of them give the same responses.
 */
import { expect, inject, it, onTestFinished } from 'vitest';
import { testKeySecrets } from '#test/secrets.ts';
import { setupDatabase } from '#test/setup.ts';
import { type ProgramName, startProgram } from '../../bench/reads/processes.ts';

it('the API and the programs that it is compared with give the same responses', async () => {
  const { database, make } = await setupDatabase();
  const creator = await make.member();
  await make.grant({ professional: creator });
  const { key, orgId } = await make.apiKey({ creator });

  async function readBoth(name: ProgramName): Promise<string[]> {
    const program = await startProgram(name, {
      databaseUrl: database.urls.api,
      redisUrl: inject('redisUrl'),
      secrets: testKeySecrets,
    });
    onTestFinished(() => program.stop());
    return Promise.all(
      ['', '/clients'].map(async (resource) => {
        const url = `${program.url}/v1/orgs/${orgId}${resource}`;
        const response = await fetch(url, { headers: { Authorization: `Bearer ${key}` } });
        return `${response.status} ${response.headers.get('etag')} ${await response.text()}`;
      }),
    );
  }

  const [ofApi, ...others] = await Promise.all((['org-api', 'floor', 'fastify'] as const).map(readBoth));
  expect(ofApi).toEqual([expect.stringMatching(/^200 ".+" \{/), expect.stringMatching(/^200 ".+" \{/)]);
  for (const ofOther of others) expect(ofOther).toEqual(ofApi);
});
