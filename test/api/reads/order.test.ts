/** Lists have a total order by code point, whatever the order in which rows were written. */
import { randomUUID } from 'node:crypto';
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { createTestDatabase } from '#test/database.ts';
import { createFactories, type Factories } from '#test/make.ts';
import { startTestApi } from '#test/setup.ts';
import { migrate } from '../../../apps/migrate/migrate.ts';

/** Names whose order differs between code points, UTF-16 units and dictionaries. */
const names = [
  'Zoë',
  'ada',
  'Ada',
  'Émile',
  'Eze–Dubois',
  'Eze',
  '\u{1F33F} Fern',
  '\uFB00on',
  'Ada',
  'O’Brien',
  "O'Brien",
];

/** Compares code points, then length, as a comparison of UTF-8 bytes does. */
const byText = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Asserts that a list is sorted by these texts. */
function expectSorted<T>(list: T[], length: number, ...texts: ((item: T) => string)[]): void {
  expect(list.length).toBe(length);
  const sorted = list.toSorted(
    (a, b) => texts.map((text) => byText(text(a), text(b))).find((order) => order !== 0) ?? 0,
  );
  expect(list).toEqual(sorted);
}

/** Opens an organization in a database whose default collation is that of an English dictionary. */
async function setupReader() {
  const database = await createTestDatabase({ empty: true, locale: "locale_provider icu icu_locale 'en-US'" });
  onTestFinished(() => database.drop());
  await migrate({
    owner: parsePostgresUrl(database.ownerUrl),
    logins: [{ role: 'api', server: parsePostgresUrl(database.urls.api) }],
  });
  const owner = await openDatabase({
    server: parsePostgresUrl(database.ownerUrl),
    applicationName: 'test',
    poolMax: 5,
  });
  onTestFinished(() => owner.close());
  const { rows } = await owner.pool.query(`select 'ada' < 'Zoë' as dictionary`);
  expect(rows).toEqual([{ dictionary: true }]);
  const make = createFactories(owner);
  const api = await startTestApi(database);
  const creator = await make.member({ name: 'Mina' });
  const { key } = await make.apiKey({ creator });
  const get = async (resource: string) => (await api.get(`/v1/orgs/${creator.orgId}${resource}`, { key })).json();
  return { make, owner, creator, orgId: creator.orgId, get };
}

/** Creates a family and an active grant for each name, with equal dates. */
async function makeGrants(make: Factories, orgId: string, since: Date) {
  const grants = [];
  for (const name of names) {
    const professional = await make.member({ orgId, name });
    for (const family of [name, 'Ada']) {
      const familyId = await make.family({ orgId, name: family });
      grants.push(await make.grant({ professional, familyId, since }));
    }
  }
  return grants;
}

it('members are ordered by name and userId, their roles by key', async () => {
  const { make, owner, orgId, get } = await setupReader();
  for (const name of names) {
    const { userId } = await make.member({ orgId, name });
    for (const _ of [1, 2, 3])
      await owner.pool.query('insert into membership_role values ($1, $2, $3)', [
        orgId,
        userId,
        await make.role({ orgId, permissions: [] }),
      ]);
  }
  const members = (await get('/members')) as { name: string; userId: string; roles: { key: string }[] }[];
  expectSorted(
    members,
    names.length + 1,
    ({ name }) => name,
    ({ userId }) => userId,
  );
  for (const { roles, name } of members) expectSorted(roles, name === 'Mina' ? 1 : 4, ({ key }) => key);
});

it('custom roles are ordered by name and id, after the system roles', async () => {
  const { make, orgId, get } = await setupReader();
  for (const name of names) await make.role({ orgId, name, permissions: [] });
  const roles = (await get('/roles')) as { isSystem: boolean; key: string; name: string; id: string }[];
  expect(roles.slice(0, 5).map(({ key }) => key)).toEqual(['owner', 'admin', 'billing', 'analyst', 'member']);
  expectSorted(
    roles.slice(5),
    names.length,
    ({ name }) => name,
    ({ id }) => id,
  );
});

it('the roster is ordered by since and id; eligible families by family, professional and grant', async () => {
  const { make, orgId, get } = await setupReader();
  await makeGrants(make, orgId, new Date('2026-01-05T00:00:00Z'));
  await makeGrants(make, orgId, new Date('2026-01-04T00:00:00Z'));
  const count = 4 * names.length;
  const { clients } = (await get('/clients')) as { clients: { since: string; grantId: string }[] };
  expectSorted(
    clients,
    count,
    ({ since }) => since,
    ({ grantId }) => grantId,
  );
  const { eligible } = (await get('/seats/families')) as {
    eligible: Record<'family' | 'professional' | 'grantId', string>[];
  };
  expectSorted(
    eligible,
    count,
    ({ family }) => family,
    ({ professional }) => professional,
    ({ grantId }) => grantId,
  );
});

it('assigned seats are ordered by givenAt and id; ended ones by endedAt, newest first, and id', async () => {
  const { make, owner, orgId, get } = await setupReader();
  await owner.pool.query('update seat_plan set invoiced = 100');
  const grants = await makeGrants(make, orgId, new Date('2026-01-05T00:00:00Z'));
  for (const [n, grant] of grants.entries()) {
    const id = await make.seat({ orgId, grant, givenAt: new Date(Date.UTC(2026, 1, 1 + (n % 3))) });
    if (n % 2 === 0) continue;
    await owner.pool.query(`update seat set ended_at = $1, end_reason = 'ended_by_organization' where id = $2`, [
      new Date(Date.UTC(2026, 3, 1 + (n % 3))),
      id,
    ]);
  }
  const { seats, ended } = (await get('/seats/families')) as {
    seats: { givenAt: string; id: string }[];
    ended: { endedAt: string; id: string }[];
  };
  expectSorted(
    seats,
    names.length,
    ({ givenAt }) => givenAt,
    ({ id }) => id,
  );
  expectSorted(
    ended,
    names.length,
    ({ endedAt }) => String(Date.UTC(2100, 0) - Date.parse(endedAt)),
    ({ id }) => id,
  );
});

it('subscriptions are ordered by renewsAt with null last, and id; referral codes by code; earnings by month and currency', async () => {
  const { owner, orgId, get } = await setupReader();
  const renewals = ['2026-12-02', null, '2026-12-01', '2026-12-01', null].map((day) => day && `${day}T00:00:00.000Z`);
  const ids = renewals.map(() => randomUUID());
  for (const [n, renewsAt] of renewals.entries())
    await owner.pool.query(
      `insert into subscription (organization_id, id, status, quantity, renews_at) values ($1, $2, 'active', $3, $4)`,
      [orgId, ids[n], n, renewsAt],
    );
  const { subscriptions } = (await get('/seats')) as { subscriptions: { quantity: number; renewsAt: string | null }[] };
  expectSorted(
    subscriptions,
    renewals.length,
    ({ renewsAt }) => renewsAt ?? 'null, which is after every digit',
    ({ quantity }) => ids[quantity] ?? '',
  );

  for (const code of new Set(names))
    await owner.pool.query(`insert into referral_code (organization_id, code, link) values ($1, $2, 'x')`, [
      orgId,
      code,
    ]);
  const codes = (await get('/referral-codes')) as { code: string }[];
  expectSorted(codes, new Set(names).size, ({ code }) => code);

  for (const month of ['2026-10', '2025-12', '2026-02'])
    for (const currency of ['USD', 'CAD', 'usd'])
      await owner.pool.query(
        'insert into referral_invoice (organization_id, month, currency, share_cents) values ($1, $2, ' +
          '$3, 5000000000), ($1, $2, $3, 7)',
        [orgId, month, currency],
      );
  const { months } = (await get('/referral-earnings')) as { months: Record<string, string | number>[] };
  expectSorted(
    months,
    9,
    ({ month }) => String(month),
    ({ currency }) => String(currency),
  );
  for (const sum of months) expect(sum).toMatchObject({ invoices: 2, shareCents: 5_000_000_007 });
});
