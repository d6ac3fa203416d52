/** The acceptance files, read through HTTP, give the answers that were worked out independently. Source: design, section 9. */
import { createReadStream, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { z } from 'zod';
import type { Region } from '#domain/contract/regions.ts';
import type { Member, Role } from '#domain/contract/resources.ts';
import { scopes } from '#domain/contract/scopes.ts';
import { importFile } from '#domain/import/import-file.ts';
import { createKey } from '#domain/keys/create.ts';
import { testKeySecrets } from '#test/secrets.ts';
import { setupDatabase, startTestApi, type TestApi } from '#test/setup.ts';
import { sharedData, sharedDataAbsent } from '#test/shared-data.ts';
import type { Endpoint } from '../../../apps/api/endpoint.ts';
import { endpoints } from '../../../apps/api/endpoints/index.ts';

type Answers = Record<string, unknown>;

/** The same JSON with every date-time moved by whole days. */
function shifted(value: unknown, days: number): unknown {
  if (typeof value === 'string' && /^\d{4}-\d\d-\d\dT.*Z$/.test(value))
    return new Date(Date.parse(value) + days * 86_400_000).toISOString();
  if (Array.isArray(value)) return value.map((item) => shifted(item, days));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, shifted(item, days)]));
}

/** The answer in the form of the expected file: ids of system roles are ours, so it names roles by key. */
function comparable(operationId: string, body: unknown): unknown {
  if (operationId === 'listMembers') {
    return (body as z.infer<typeof Member>[]).map(({ roles, ...member }) => ({
      ...member,
      roleKeys: roles.map(({ key }) => key),
    }));
  }
  if (operationId !== 'listRoles') return body;
  const roles = body as z.infer<typeof Role>[];
  return {
    systemKeys: roles.filter(({ isSystem }) => isSystem).map(({ key }) => key),
    own: roles.filter(({ isSystem }) => !isSystem).map(({ isSystem: _, ...role }) => role),
  };
}

/** A read's body: as declared, with no field beside that. */
async function read(api: TestApi, endpoint: Endpoint, orgId: string, key: string): Promise<unknown> {
  const answer = await api.get(`/v1/orgs/${orgId}${endpoint.resource}`, { key });
  expect([endpoint.operationId, answer.status]).toEqual([endpoint.operationId, 200]);
  const body = await answer.json();
  expect(endpoint.response.parse(body), 'a field that is not declared').toEqual(body); // parsing drops what is not
  return body;
}

it.for<Region>(['us', 'ca'])('%s.json: all nine reads of all organizations', async (region, { skip }) => {
  const file = sharedData(`${region}.json`);
  const expectedFile = sharedData(`${region}.expected.json`);
  if (file === null || expectedFile === null) return skip(sharedDataAbsent);
  const expected = JSON.parse(readFileSync(expectedFile, 'utf8')) as Record<string, Answers>;

  const { database, owner } = await setupDatabase();
  const api = await startTestApi(database, { REGION: region });
  const { organizations, shiftedDays } = await importFile({
    ...{ databaseUrl: database.ownerUrl, source: createReadStream(file), fileName: `${region}.json`, region },
    today: true,
  });
  expect(organizations.map(({ id }) => id).sort()).toEqual(Object.keys(expected).sort());

  for (const { id, ownerUserId } of organizations) {
    const input = { organizationId: id, makerId: ownerUserId ?? '', scopes, label: '', expiresAt: null };
    const { key } = await createKey(owner.orm.em, { ...input, byOperator: true }, { ...testKeySecrets, region });
    const answers: Answers = {};
    for (const endpoint of endpoints)
      answers[endpoint.operationId] = comparable(endpoint.operationId, await read(api, endpoint, id, key));
    expect(answers).toEqual(shifted(expected[id], shiftedDays));
  }
});
