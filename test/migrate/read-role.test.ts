/**
 * What the API's login can reach if an attacker could run any statement through the API. Its rights
 * are listed in rights.txt.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { listCallHours } from '#domain/audit-log/calls.ts';
import { createTestDatabase, type TestDatabase } from '#test/database.ts';
import { setup, setupDatabase } from '#test/setup.ts';
import { sumCalls } from '#test/sum-calls.ts';

async function connectAs(database: TestDatabase, url = database.urls.api): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

it('the read login can do nothing beyond its rights', async () => {
  const { database, make } = await setupDatabase();
  const creator = await make.member();
  await make.grant({ professional: creator });
  const client = await connectAs(database);
  const denied = [
    'select * from public.family_day',
    'select * from public.family',
    'select * from public.referral_invoice',
    'select * from public.api_key',
    'select * from public.audit_entry',
    'insert into public.audit_entry (organization_id, action) values (gen_random_uuid(), $$x$$)',
    'update public.audit_entry set status = 200',
    'delete from public.audit_entry',
    `update api.key set revoked_at = null`,
    `insert into api.key select * from api.key`,
    'delete from api.client_grant',
    'select public.drop_old_audit_entries($$1 day$$)',
    'select public.keep_audit_partitions()',
    'select public.new_id()',
    'create table api.mine (x int)',
    'create table public.mine (x int)',
    'create schema mine',
    'create function api.mine() returns int language sql return 1',
    'set role org_api_platform',
    'set role org_api_worker',
    'set role org_api_console',
    'set role org_api_backfill',
    'set role postgres',
    'set session authorization postgres',
    `alter role current_user superuser`,
    'grant org_api_platform to current_user',
    'create role mine',
    `copy api.family to program 'cat'`,
    `select pg_read_file('PG_VERSION')`,
    `select lo_import('/etc/hostname')`,
    `alter view api.family rename to families`,
    'do $$ begin lock table api.family in access exclusive mode; end $$',
    'create temporary table mine (x int)',
    'create function pg_temp.mine() returns int language sql return 1',
    'drop view api.family',
  ];
  for (const statement of denied) {
    const outcome = await client.query(statement).then(
      () => 'done',
      (error: pg.DatabaseError) => error.code,
    );
    // Insufficient privilege; a grant that it may not give; a role that does not exist here.
    expect([statement, outcome]).toEqual([statement, expect.toBeOneOf(['42501', '0LP01', '22023', '42704'])]);
  }
});

it('the read login records in the audit log only that a key was used, now, by its own creator and organization', async () => {
  const { database, make, owner } = await setupDatabase();
  const key = await make.apiKey();
  const client = await connectAs(database);
  const record = (keyId: string, action: string, status: number | null) =>
    client.query('select api.record_key_uses($1, $2, $3, $4, $5, $6)', [
      [randomUUID()],
      [keyId],
      [action],
      [status],
      [null],
      ['192.0.2.1'],
    ]);
  await record(key.id, 'api.getOrg', 200);
  for (const [keyId, action, status] of [
    [randomUUID(), 'api.getOrg', 200],
    [key.id, 'webhook.delete', 200],
    [key.id, 'api.rate_limited', 429],
    [key.id, 'api.getOrg', null],
  ] as const)
    await expect(record(keyId, action, status)).rejects.toMatchObject({ constraint: 'audit_entry_use_of_key' });
  const { rows } = await owner.pool.query(
    `select organization_id, person_id, key_id, action, status, at between now() - interval '1 minute'
      and now() as "isNow" from audit_entry
     where action <> 'key.create'`,
  );
  expect(rows).toEqual([
    {
      organization_id: key.orgId,
      person_id: key.creatorId,
      key_id: key.id,
      action: 'api.getOrg',
      status: 200,
      isNow: true,
    },
  ]);
});

it('a count of rejections ends at the largest integer: no login can make the next one, or a page that sums them, fail', async () => {
  const { database, make, owner } = await setupDatabase();
  const key = await make.apiKey();
  const { rows: keys } = await owner.pool.query<{ fingerprint: Buffer }>('select fingerprint from api_key');
  const fingerprint = keys[0]?.fingerprint;
  const api = await connectAs(database);
  const console = await connectAs(database, database.urls.console);
  for (const counts of [[2_147_483_647], [1], ['9223372036854775807', '9223372036854775807']]) {
    const fingerprints = counts.map(() => fingerprint);
    await api.query('select api.record_rejections($1, $2)', [fingerprints, counts]);
    await console.query('select api.record_keys_at_console($1, $2, $3)', [
      fingerprints,
      counts,
      counts.map(() => null),
    ]);
  }
  // These add nothing.
  for (const count of [-1, 0, null]) await api.query('select api.record_rejections($1, $2)', [[fingerprint], [count]]);
  const { rows } = await owner.pool.query('select distinct count from audit_entry where status is not null');
  expect(rows).toEqual([{ count: 2_147_483_647 }]);

  await owner.pool.query(
    `insert into audit_entry (organization_id, key_id, action, status, count)
     select $1, $2, 'api.' || n, 429, 2147483647 from generate_series(1, 3) n`,
    [key.orgId, key.id],
  );
  await sumCalls(owner);
  const hours = await listCallHours(owner, key.orgId, 2, new Date());
  expect(hours.reduce((sum, { limited }) => sum + limited, 0)).toBeGreaterThanOrEqual(4 * 2_147_483_647);
});

it('the read login gets outcomes only as sums over five families or more', async () => {
  const { database, owner, make } = await setup();
  const creator = await make.member();
  const client = await connectAs(database);
  const outcomes = async () => (await client.query('select * from api.outcomes($1)', [creator.orgId])).rows[0];
  for (let families = 1; families <= 5; families += 1) {
    const { familyId } = await make.grant({ professional: creator, since: new Date(Date.now() - 30 * 86_400_000) });
    await owner.pool.query(
      `insert into family_day values ($1, $2, (now() at time zone 'UTC')::date - 3, 10, 7, 4, 3, 2, 1)`,
      [creator.orgId, familyId],
    );
    const row = await outcomes();
    const sums = [
      row.calm_messages,
      row.messages,
      row.exchanges_on_time,
      row.exchanges,
      row.expenses_answered,
      row.expenses_due,
    ];
    expect(sums).toEqual(families < 5 ? [null, null, null, null, null, null] : ['35', '50', '15', '20', '5', '10']);
  }
});

it('the read login cannot connect to the database of another installation on the same server', async () => {
  const { database } = await setupDatabase();
  const other = await createTestDatabase({ empty: true });
  onTestFinished(() => other.drop());
  const owner = await connectAs(other, other.ownerUrl);
  await owner.query(`revoke connect on database "${other.name}" from public`); // as the migrator does
  const url = new URL(database.urls.api);
  url.pathname = other.name;
  const client = new pg.Client({ connectionString: url.href });
  await expect(client.connect()).rejects.toMatchObject({ code: '42501' });
});
