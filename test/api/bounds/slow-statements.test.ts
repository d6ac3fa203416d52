/** Limits how many database connections slow reads may take from other reads. */
import { expect, it, vi } from 'vitest';
import type { MadeKey } from '#test/make.ts';
import { setup, type TestInstallation } from '#test/setup.ts';
import { statementsOf } from '#test/statements-of.ts';
import { untilFigures } from './figures.ts';
import { giveGrants, openReader } from './readers.ts';

vi.setConfig({ testTimeout: 120_000 });

/** Enough grants for an answer of more than 64 KiB. */
const grants = 500;

interface Firm {
  path: string;
  keys: MadeKey[];
}

/** Creates organizations with a large roster and two keys each. */
function makeFirms({ make, owner }: TestInstallation, count: number): Promise<Firm[]> {
  return Promise.all(
    Array.from({ length: count }, async () => {
      const maker = await make.member();
      await giveGrants(owner, maker, grants);
      return {
        path: `/v1/orgs/${maker.orgId}/clients`,
        keys: await Promise.all([make.apiKey({ maker }), make.apiKey({ maker })]),
      };
    }),
  );
}

/**
 * Requests the rosters with all keys while none can be computed. Waits until all but `running` of
 * them wait. Returns the number of running statements and the status of another read.
 */
async function readWhileBlocked({ api, owner, make }: TestInstallation, firms: Firm[], running: number) {
  const other = await make.apiKey();
  const readOther = async () => (await api.get(`/v1/orgs/${other.orgId}`, { key: other.key })).status;
  expect(await readOther()).toBe(200);
  const client = await owner.pool.connect();
  await client.query('begin');
  await client.query('lock table client_grant in access exclusive mode');
  const rosters = firms.flatMap(({ path, keys }) => keys.map(({ key }) => api.get(path, { key })));
  try {
    await untilFigures(api.metricsUrl, ({ waiting }) => waiting === rosters.length - running);
    const statusBeside = await readOther();
    const { rows } = await owner.pool.query<{ statements: number }>(
      `select count(*)::integer as statements from pg_stat_activity
       where datname = current_database() and application_name = 'org-api' and wait_event_type = 'Lock'`,
    );
    return { statements: rows[0]?.statements, statusBeside };
  } finally {
    await client.query('rollback');
    client.release();
    await Promise.all(rosters.map(async (answer) => (await answer).arrayBuffer()));
  }
}

it('slow reads whose answers have unknown size take three of ten connections, and other reads are answered', async () => {
  const installation = await setup({ DATABASE_POOL_MAX: '10' });
  const firms = await makeFirms(installation, 5);

  const running = 3;
  expect(await readWhileBlocked(installation, firms, running)).toEqual({ statements: running, statusBeside: 200 });
});

it('slow reads with large answers take one of ten connections, and other reads are answered', async () => {
  const installation = await setup({ DATABASE_POOL_MAX: '10' });
  const firms = await makeFirms(installation, 3);
  for (const { path, keys } of firms) await (await installation.api.get(path, { key: keys[0]?.key ?? '' })).text();

  const running = 1;
  expect(await readWhileBlocked(installation, firms, running)).toEqual({ statements: running, statusBeside: 200 });
});

it('the statement of a large answer ends when the last client that waits for it disconnects', async () => {
  const installation = await setup();
  const { api, owner } = installation;
  const { lock, until, expectEnded } = statementsOf(owner, 'org-api');
  const [firm] = await makeFirms(installation, 1);
  const { path = '', keys: [{ key } = { key: '' }] = [] } = firm ?? {};
  const unlock = await lock('client_grant');
  for (const count of [1, 3]) {
    const readers = await Promise.all(Array.from({ length: count }, () => openReader(api.url, { path, key })));
    await until((waits) => waits === 1);
    for (const { socket } of readers) socket.destroy();
    await expectEnded();
  }
  await unlock();
  expect((await api.get(path, { key })).status).toBe(200);
});
