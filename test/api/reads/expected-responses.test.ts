/**
 * Imports the fixtures, reads them over HTTP and compares with answers that another program
 * computed.
 */
import { createReadStream, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { Region } from '#domain/contract/regions.ts';
import { scopes } from '#domain/contract/scopes.ts';
import { createKey } from '#domain/keys/create.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { comparable, type Responses, shifted } from '#test/expected-responses.ts';
import { fixturePath } from '#test/fixtures.ts';
import { withinOneDay } from '#test/one-day.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setupDatabase, startTestApi, type TestApi } from '#test/setup.ts';
import { type Endpoint, endpoints } from '../../../apps/api/endpoints.ts';
import { importFile } from '../../../apps/import/document/import-file.ts';

/** A read's body with exactly the declared fields. */
async function read(api: TestApi, endpoint: Endpoint, orgId: string, key: string): Promise<unknown> {
  const response = await api.get(`/v1/orgs/${orgId}${endpoint.resource}`, { key });
  expect([endpoint.operationId, response.status]).toEqual([endpoint.operationId, 200]);
  const body = await response.json();
  expect(endpoint.response.parse(body), 'a field that is not declared').toEqual(body); // drops undeclared fields
  return body;
}

async function readAll(api: TestApi, orgId: string, key: string): Promise<Responses> {
  const responses: Responses = {};
  for (const endpoint of endpoints)
    responses[endpoint.operationId] = comparable(endpoint.operationId, await read(api, endpoint, orgId, key));
  return responses;
}

it.for<Region>(['us', 'ca'])(
  '%s.json: all nine reads of all organizations, also when it was imported the day before',
  async (region) => {
    const file = fixturePath(`${region}.json`);
    const expected = JSON.parse(readFileSync(fixturePath(`${region}.expected.json`), 'utf8')) as Record<
      string,
      Responses
    >;

    const { database, owner } = await setupDatabase();
    const api = await startTestApi(database, { REGION: region });
    const { responses, shiftedDays } = await withinOneDay(async () => {
      const document = { server: parsePostgresUrl(database.ownerUrl), fileName: `${region}.json`, region, today: true };
      const yesterday = new Date(Date.now() - 86_400_000);
      await importFile({ ...document, source: createReadStream(file), now: yesterday });
      const imported = await importFile({ ...document, source: createReadStream(file) });
      const byOrganization: Record<string, Responses> = {};
      for (const { id, ownerUserId } of imported.organizations) {
        const input = { organizationId: id, creatorId: ownerUserId ?? '', scopes, label: '', expiresAt: null };
        const { key } = await createKey(owner, { ...input, by: 'orgctl' }, { ...testKeySecrets, region });
        byOrganization[id] = await readAll(api, id, key);
      }
      return { responses: byOrganization, shiftedDays: imported.shiftedDays };
    });
    expect(responses).toEqual(shifted(expected, shiftedDays));
  },
);
