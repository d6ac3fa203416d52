/** A hostile read: what the API's login can reach, were every statement of the API replaced by another's. Source: design, section 3. */
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { createTestDatabase, type TestDatabase } from '#test/database.ts';
import { setup, setupDatabase } from '#test/setup.ts';

/** Every column that the read role may select: of a family, a name; of access and seats, who and when; of money, the organization's own sums. */
const selectable = {
  'api.client_grant': 'ends_at, family_id, id, kind, organization_id, professional_id, since, status',
  'api.family': 'id, name, organization_id',
  'api.key': 'expires_at, fingerprint, id, maker_id, organization_id, revoked_at, scopes',
  'api.member': 'email, name, organization_id, person_id, status, title',
  'api.member_role': 'organization_id, person_id, role_id',
  'api.organization': 'created_at, id, kind, name, slug, status',
  'api.referral_code': 'active, code, id, label, link, not_counted, organization_id, qualified, signed_up',
  'api.referral_earning': 'currency, invoices, month, organization_id, share_cents',
  'api.role': 'description, id, key, name, organization_id, permissions, position',
  'api.schema_version': 'name',
  'api.seat': 'end_reason, ended_at, family_id, given_at, grant_id, id, organization_id',
  'api.seat_plan': 'invoiced, organization_id, price_cents, price_currency',
  'api.subscription': 'cancel_at_period_end, id, organization_id, quantity, renews_at, status',
};

/** The activity log takes its lines and shows none. */
const insertable = {
  'api.activity': 'action, address, at, code, id, key_id, organization_id, person_id, status',
};

const executable = [
  'api.outcomes(uuid)',
  'api.record_refusals(bytea[],timestamp with time zone[],integer[])',
  'api.utc(timestamp with time zone)',
];

async function connectAs(database: TestDatabase, url = database.urls.api): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** Columns by relation that `privilege` opens, also by a right on a column alone; a relation counts only when its schema may be entered. */
async function listColumns(client: pg.Client, privilege: string): Promise<Record<string, string>> {
  const { rows } = await client.query<{ relation: string; columns: string }>(
    `select format('%s.%s', n.nspname, c.relname) as relation, string_agg(a.attname, ', ' order by a.attname collate "C") as columns
     from pg_class c join pg_namespace n on n.oid = c.relnamespace
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname not in ('pg_catalog', 'information_schema') and n.nspname not like 'pg_toast%'
       and has_schema_privilege(n.oid, 'usage') and has_column_privilege(c.oid, a.attnum, $1)
     group by 1 order by 1`,
    [privilege],
  );
  return Object.fromEntries(rows.map(({ relation, columns }) => [relation, columns]));
}

it('reaches these columns, and of a family no more than names and dates', async () => {
  const client = await connectAs((await setupDatabase()).database);
  expect(await listColumns(client, 'select')).toEqual(selectable);
  expect(await listColumns(client, 'insert')).toEqual(insertable);
  expect(await listColumns(client, 'update')).toEqual({});
  expect(await listColumns(client, 'references')).toEqual({});
});

it('has no right at all on a table of schema public, though it could not enter the schema anyway', async () => {
  const client = await connectAs((await setupDatabase()).database);
  const { rows } = await client.query(
    `select c.relname from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
     and (has_table_privilege(c.oid, 'select, insert, update, delete, truncate, references, trigger') or has_any_column_privilege(c.oid, 'select, insert, update, references'))`,
  );
  expect(rows).toEqual([]);
  const { rows: schemas } = await client.query(
    `select n.nspname as name, has_schema_privilege(n.oid, 'create') as "mayCreate" from pg_namespace n
     where n.nspname not like 'pg_%' and n.nspname <> 'information_schema' and has_schema_privilege(n.oid, 'usage, create') order by 1`,
  );
  expect(schemas).toEqual([{ name: 'api', mayCreate: false }]);
});

it('may delete, truncate and trigger nothing', async () => {
  const client = await connectAs((await setupDatabase()).database);
  const { rows } = await client.query(
    `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname not in ('pg_catalog', 'information_schema') and c.relkind in ('r', 'p', 'v', 'm', 'f')
       and has_table_privilege(c.oid, 'delete, truncate, trigger')`,
  );
  expect(rows).toEqual([]);
});

it('executes these functions of ours and no other', async () => {
  const client = await connectAs((await setupDatabase()).database);
  const { rows } = await client.query<{ name: string }>(
    `select p.oid::regprocedure::text as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where n.nspname not in ('pg_catalog', 'information_schema') and has_schema_privilege(n.oid, 'usage')
       and has_function_privilege(p.oid, 'execute') order by 1`,
  );
  expect(rows.map(({ name }) => name)).toEqual(executable);
});

it('is a plain login: no superuser, no maker of roles or databases, a member of org_api_read alone, owner of nothing', async () => {
  const client = await connectAs((await setupDatabase()).database);
  const { rows } = await client.query(
    `select rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,
       array(select g.rolname::text from pg_auth_members m join pg_roles g on g.oid = m.roleid where m.member = r.oid) as groups,
       (select count(*)::int from pg_class c where c.relowner = r.oid) + (select count(*)::int from pg_proc p where p.proowner = r.oid) as owned
     from pg_roles r where rolname = current_user`,
  );
  const no = { rolsuper: false, rolcreaterole: false, rolcreatedb: false, rolreplication: false, rolbypassrls: false };
  expect(rows).toEqual([{ ...no, groups: ['org_api_read'], owned: 0 }]);
});

it('is refused whatever it tries beyond that', async () => {
  const { database, make } = await setupDatabase();
  const maker = await make.member();
  await make.grant({ professional: maker });
  const client = await connectAs(database);
  const denied = [
    'select * from public.family_day',
    'select * from public.family',
    'select * from public.referral_invoice',
    'select * from public.api_key',
    'select * from public.activity',
    'select count(*) from api.activity',
    'insert into api.activity (id, at, organization_id, action) values (gen_random_uuid(), now(), gen_random_uuid(), $$x$$) returning id',
    'update api.activity set status = 200',
    'delete from api.activity',
    `update api.key set revoked_at = null`,
    `insert into api.key select * from api.key`,
    'delete from api.client_grant',
    'select public.drop_old_activity($$1 day$$)',
    'select public.keep_activity_partitions()',
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
    // Insufficient privilege; a grant it may not give; a role that is none here.
    expect([statement, outcome]).toEqual([statement, expect.toBeOneOf(['42501', '0LP01', '22023', '42704'])]);
  }
});

it('gets outcomes as sums over five families or more, and nothing of fewer', async () => {
  const { database, owner, make } = await setup();
  const maker = await make.member();
  const client = await connectAs(database);
  const outcomes = async () => (await client.query('select * from api.outcomes($1)', [maker.orgId])).rows[0];
  for (let families = 1; families <= 5; families += 1) {
    const { familyId } = await make.grant({ professional: maker, since: new Date(Date.now() - 30 * 86_400_000) });
    await owner.pool.query(
      `insert into family_day values ($1, $2, (now() at time zone 'UTC')::date - 3, 10, 7, 4, 3, 2, 1)`,
      [maker.orgId, familyId],
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

it('cannot enter the database of another installation on the same server', async () => {
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
