/** Limits how many database connections slow reads may take from other reads. */
import { expect, it, vi } from 'vitest';
import type { MadeKey } from '#test/make.ts';
import { setup, type TestInstallation } from '#test/setup.ts';
import { watchStatements } from '#test/watch-statements.ts';
import { untilFigures } from './figures.ts';
import { gateRosters } from './gate-rosters.ts';
import { giveGrants, openReader } from './readers.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Enough grants for a response of more than 64 KiB. */
const grants = 500;

interface Firm {
  path: string;
  keys: [MadeKey, MadeKey];
}

/** Creates organizations with a large roster and two keys each. */
function makeFirms({ make, owner }: TestInstallation, count: number): Promise<Firm[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const creator = await make.member();
      await giveGrants(owner, creator, grants);
      return {
        path: `/v1/orgs/${creator.orgId}/clients`,
        keys: await Promise.all([make.apiKey({ creator }), make.apiKey({ creator })]),
      };
    }),
  );
}

/** Requests the rosters with all keys; returns what collects the responses. */
function readRosters({ api }: TestInstallation, firms: Firm[]): Promise<Response>[] {
  return firms.flatMap(({ path, keys }) => keys.map(({ key }) => api.get(path, { key })));
}

const readAll = (responses: Promise<Response>[]) =>
  Promise.all(responses.map(async (response) => (await response).arrayBuffer()));

/** Returns a function that reads the record of another organization, and its status. */
async function makeBystander({ api, make }: TestInstallation): Promise<() => Promise<number>> {
  const other = await make.apiKey();
  const read = async () => (await api.get(`/v1/orgs/${other.orgId}`, { key: other.key })).status;
  expect(await read()).toBe(200);
  return read;
}

async function countBlocked({ owner }: TestInstallation): Promise<number> {
  const { rows } = await owner.pool.query<{ statements: number }>(
    `select count(*)::integer as statements from pg_stat_activity
     where datname = current_database() and application_name = 'org-api' and wait_event_type = 'Lock'`,
  );
  return rows[0]?.statements ?? 0;
}

it('slow reads of one operation take three of ten connections, and other reads are answered', async () => {
  const installation = await setup({ DATABASE_POOL_MAX: '10' });
  const firms = await makeFirms(installation, 5);
  const readBeside = await makeBystander(installation);
  const unlock = await watchStatements(installation.owner, 'org-api').lock('client_grant');
  const rosters = [readRosters(installation, firms)];
  for (const blocked of [1, 2, 3]) {
    await expect.poll(() => countBlocked(installation), { timeout: 30_000 }).toBeGreaterThanOrEqual(blocked);
    rosters.push(readRosters(installation, firms.slice(0, 1)));
  }
  expect(await readBeside()).toBe(200);
  expect(await countBlocked(installation)).toBe(3);
  await unlock();
  await readAll(rosters.flat());
});

it.each([
  { of: 'another organization', path: (orgId: string) => `/v1/orgs/${orgId}/clients` },
  { of: 'no organization', path: (orgId: string) => `/v1/orgs/${orgId}/clients?status=active` },
])('reads of $of take the memory of their key’s organization, and another’s are answered', async ({ path }) => {
  const installation = await setup({ RESPONSE_MEMORY_MIB: '16' });
  const { api, make, owner } = installation;
  const other = await make.apiKey();
  const readOther = async () => (await api.get(`/v1/orgs/${other.orgId}`, { key: other.key })).status;
  expect(await readOther()).toBe(200);
  const { key, orgId } = await make.apiKey();
  expect((await api.get(`/v1/orgs/${orgId}`, { key })).status).toBe(200);
  const unlock = await watchStatements(owner, 'org-api').lock('client_grant');
  const reads = Array.from({ length: 80 }, () => api.get(path(other.orgId), { key }));
  await untilFigures(api.metricsUrl, ({ waiting }) => waiting > 0);
  expect(await readOther()).toBe(200);
  await unlock();
  await Promise.all(reads);
});

it('slow reads with large bodies take one of ten connections, and other reads are answered', async () => {
  const installation = await setup({ DATABASE_POOL_MAX: '10' });
  const { api } = installation;
  const firms = await makeFirms(installation, 3);
  const readBeside = await makeBystander(installation);
  const gate = await gateRosters(
    installation.owner,
    firms.map(({ keys: [{ orgId }] }) => orgId),
  );
  const rosters = readRosters(installation, firms);
  await untilFigures(api.metricsUrl, ({ waiting }) => waiting === rosters.length - 1);
  expect(await readBeside()).toBe(200);
  expect(await gate.listWaiting()).toHaveLength(1);
  await gate.open();
  await readAll(rosters);
});

it('the statement of a large response ends when the last client that waits for it disconnects', async () => {
  const installation = await setup();
  const { api, owner } = installation;
  const { until, expectEnded } = watchStatements(owner, 'org-api');
  const [firm] = await makeFirms(installation, 1);
  const {
    path,
    keys: [{ key, orgId }],
  } = firm ?? expect.fail();
  const gate = await gateRosters(owner, [orgId]);
  for (const count of [1, 3]) {
    const readers = await Promise.all(Array.from({ length: count }, () => openReader(api.url, { path, key })));
    await until((waits) => waits === 1);
    for (const { socket } of readers) socket.destroy();
    await expectEnded();
  }
  await gate.open();
  expect((await api.get(path, { key })).status).toBe(200);
});
