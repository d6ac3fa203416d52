/**
 * What a thief of the platform's login reaches: the functions and views of schema `platform`, and nothing
 * else. What is tried comes from the catalog, so a new table, function or role is tried by itself.
 */
import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { setupDatabase } from '#test/setup.ts';

const notAllowed = '42501';

async function setupThief() {
  const t = await setupDatabase();
  const { orgId, userId } = await t.make.member({ signedIn: true });
  const familyId = await t.make.family({ orgId });
  await t.make.delivery({ webhook: await t.make.webhook({ orgId }) });
  const connect = async () => {
    const client = new pg.Client({ connectionString: t.database.urls.platform });
    await client.connect();
    onTestFinished(() => client.end());
    return client;
  };
  const client = await connect();
  const list = async (text: string): Promise<string[]> =>
    (await t.owner.pool.query<{ name: string }>(text)).rows.map(({ name }) => name);
  /** Returns the SQLSTATE of a rejected statement; null when it was accepted. */
  const attempt = (statement: string, by: pg.Client = client): Promise<string | null> =>
    by.query(statement).then(
      () => null,
      ({ code }: pg.DatabaseError) => code ?? 'no code',
    );
  /** Tries each statement; returns those that were not rejected for want of a right. */
  const findAccepted = async (statements: readonly string[]): Promise<[string, string | null][]> => {
    const tried: [string, string | null][] = [];
    for (const statement of statements) tried.push([statement, await attempt(statement)]);
    return tried.filter(([, code]) => code !== notAllowed);
  };
  return { ...t, orgId, userId, familyId, client, connect, list, attempt, findAccepted };
}

/** Everything but PostgreSQL's catalogs, and what the login is for. */
const elsewhere = `n.nspname !~ '^pg_' and n.nspname not in ('information_schema', 'platform')`;

it('reads, writes, locks and truncates no table or view outside schema platform', async () => {
  const t = await setupThief();
  const relations = await t.list(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where ${elsewhere} and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') order by 1`,
  );
  expect(relations.length).toBeGreaterThan(50);
  const statements = relations.flatMap((relation) => [
    `select from ${relation}`,
    `insert into ${relation} default values`,
    `delete from ${relation}`,
    `truncate ${relation}`,
    `do $$ begin lock table ${relation} in access share mode; end $$`,
    `copy ${relation} to stdout`,
    `create trigger t after insert on ${relation} for each row execute function suppress_redundant_updates_trigger()`,
  ]);
  expect(await t.findAccepted(statements)).toEqual([]);
  const columns = await t.list(
    `select format('update %I.%I set %3$I = %3$I', n.nspname, c.relname, a.attname) as name
     from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
     where ${elsewhere} and c.relkind in ('r', 'p') and a.attnum > 0 and not a.attisdropped order by 1`,
  );
  expect(columns.length).toBeGreaterThan(200);
  expect(await t.findAccepted(columns)).toEqual([]);
});

it('changes no view of schema platform, and calls no function that only its functions call', async () => {
  const t = await setupThief();
  const views = await t.list(
    `select c.oid::regclass::text as name from pg_class c where c.relnamespace = 'platform'::regnamespace`,
  );
  expect(views.length).toBeGreaterThan(9);
  const statements = views.flatMap((view) => [
    `delete from ${view}`,
    `insert into ${view} (organization) values ('${t.orgId}')`,
    `update ${view} set organization = organization`,
    `create or replace view ${view} as select 1 as organization`,
  ]);
  // PostgreSQL cannot write a view of several tables, with any right.
  const accepted = await t.findAccepted(statements);
  expect(accepted.filter(([, code]) => code !== '55000')).toEqual([]);
  for (const view of views) expect(await t.attempt(`select * from ${view}`)).toBeNull();

  const calls = await t.list(
    `select format('select %I.%I(%s)', n.nspname, p.proname, array_to_string(array(
       select 'null' from unnest(p.proargtypes::oid[])), ', ')) as name
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace
     where p.prokind = 'f' and (${elsewhere} or n.nspname = 'platform'
       and not has_function_privilege('org_api_platform', p.oid, 'execute')) order by 1`,
  );
  expect(calls.length).toBeGreaterThan(50);
  expect(await t.findAccepted(calls)).toEqual([]);
});

it('becomes no other role, and creates nothing', async () => {
  const t = await setupThief();
  const roles = await t.list(
    `select quote_ident(rolname) as name from pg_roles where rolname not in ('org_api_platform', 'org_api_login_platform')`,
  );
  expect(roles).toContain('org_api_import');
  const own = decodeURIComponent(new URL(t.database.urls.platform).username);
  expect(roles).not.toContain(own);
  const statements = roles.flatMap((role) => [
    `set role ${role}`,
    `set session authorization ${role}`,
    `grant ${role} to "${own}"`,
    `create schema mine authorization ${role}`,
  ]);
  const schemas = await t.list(`select quote_ident(nspname) as name from pg_namespace where nspname !~ '^pg_'`);
  statements.push(
    ...schemas.flatMap((schema) => [
      `create table ${schema}.mine (x int)`,
      `create function ${schema}.mine() returns int language sql return 1`,
      `create domain ${schema}.mine as int`,
    ]),
    'create temp table mine (x int)',
    'create function pg_temp.mine() returns int language sql return 1',
    'create schema mine',
    'create role mine',
    'create database mine',
    'create publication mine for all tables',
    'create event trigger mine on ddl_command_start execute function suppress_redundant_updates_trigger()',
    'create extension postgres_fdw',
    'alter system set log_statement = all',
    'alter role current_user superuser',
    "alter database current_database set log_statement = 'all'",
  );
  // Syntax that a server lacks, or a role that stands above the statement, is a rejection as well.
  const accepted = await t.findAccepted(statements);
  expect(accepted.filter(([, code]) => code === null)).toEqual([]);
});

it('reads no file, no statistics and no statement of another login, and ends no other connection', async () => {
  const t = await setupThief();
  const other = await t.owner.pool.query<{ pid: number }>(
    `select pid from pg_stat_activity where pid <> pg_backend_pid() and usename = current_user limit 1`,
  );
  const pid = other.rows[0]?.pid ?? 1;
  expect(
    await t.findAccepted([
      `copy (select 1) to '/tmp/mine'`,
      `copy (select 1) to program 'cat'`,
      `select pg_read_file('PG_VERSION')`,
      `select pg_ls_dir('.')`,
      `select lo_import('/etc/hostname')`,
      `select lo_from_bytea(0, 'x')`,
      `select pg_advisory_lock(1)`,
      `select pg_terminate_backend(${pid})`,
      `select pg_cancel_backend(${pid})`,
      'select * from pg_statistic',
      'select rolpassword from pg_authid',
      'select * from pg_hba_file_rules',
      `select set_config('session_replication_role', 'replica', false)`,
      `set row_security = off; select from public.webhook`,
    ]),
  ).toEqual([]);
  const { rows: seen } = await t.client.query(
    `select query from pg_stat_activity where usename <> current_user and query <> '<insufficient privilege>'
       and query <> ''`,
  );
  expect(seen).toEqual([]);
  await t.owner.pool.query('analyze');
  const { rows: statistics } = await t.client.query(`select tablename from pg_stats where schemaname !~ '^pg_'
    and schemaname <> 'information_schema'`);
  expect(statistics).toEqual([]);
});

it('changes by no setting of its session what a call writes: all of it, or an error', async () => {
  const t = await setupThief();
  const { rows: settings } = await t.owner.pool.query<{ name: string; values: string[] }>(
    `select name, case vartype when 'bool' then array['on', 'off'] when 'enum' then enumvals
       else array[min_val, max_val] end as values
     from pg_settings where context in ('user', 'superuser') and vartype <> 'string' order by name`,
  );
  expect(settings.length).toBeGreaterThan(100);
  const changed: [string, unknown][] = [];
  const rejected: string[] = [];
  let accepted = 0;
  for (const { name, values } of settings)
    for (const value of values) {
      const written = await writeAllWith(t, name, value);
      if (written !== undefined) accepted += 1;
      if (written === 'wrong_isolation') rejected.push(`${name} = ${value}`);
      else if (![undefined, null, 'client.ended client.started seat.ended seat.given'].includes(written))
        changed.push([`${name} = ${value}`, written]);
    }
  expect(changed).toEqual([]);
  expect(accepted).toBeGreaterThan(100);
  expect(rejected).toEqual(
    ['serializable', 'repeatable read', 'read uncommitted'].map((level) => `default_transaction_isolation = ${level}`),
  );
});

it.each([
  ['begin isolation level', 'repeatable read'],
  ['begin isolation level', 'serializable'],
  ['begin; set transaction isolation level', 'repeatable read'],
  ['begin; set local transaction_isolation =', "'serializable'"],
  ['set default_transaction_isolation =', "'repeatable read'"],
  ['set session characteristics as transaction isolation level', 'serializable'],
])('calls no function in a transaction of another isolation level: %s %s', async (how, level) => {
  const t = await setupThief();
  const calls = await t.list(
    `select format('select platform.%I(%s)', p.proname, array_to_string(array(
       select 'null::' || format_type(a, null) from unnest(p.proargtypes::oid[]) a), ', ')) as name
     from pg_proc p where p.pronamespace = 'platform'::regnamespace
       and has_function_privilege('org_api_platform', p.oid, 'execute') order by 1`,
  );
  expect(calls).toHaveLength(18);
  for (const call of calls) {
    await t.client.query(`${how} ${level}`);
    const { constraint, code, detail } = (await t.client
      .query(call)
      .catch((error: pg.DatabaseError) => error)) as pg.DatabaseError;
    expect([call, constraint, code, detail]).toEqual([call, 'wrong_isolation', '25000', level.replaceAll("'", '')]);
    await t.client.query('rollback');
  }
});

it('erases no more families, and gives no more seats, by several sessions in any isolation level', async () => {
  const t = await setupThief();
  const { rows: plans } = await t.owner.pool.query('update seat_plan set invoiced = 1 returning organization_id');
  expect(plans).toEqual([{ organization_id: t.orgId }]);
  await t.owner.pool.query('update erasure_limit set families = 2');
  const sessions = await Promise.all([t.connect(), t.connect(), t.connect()]);
  for (const level of ['read committed', 'repeatable read', 'serializable']) {
    const families = await Promise.all(Array.from({ length: 6 }, () => t.make.family({ orgId: t.orgId })));
    const grants = families.map(() => randomUUID());
    for (const [index, family] of families.entries())
      await t.client.query(`select platform.start_grant($1, $2, 'neutral', $3, $4)`, [
        t.orgId,
        grants[index],
        t.userId,
        family,
      ]);
    const begin = `begin isolation level ${level}; select from platform.seat`;
    for (const session of sessions) await session.query(begin);
    const assign = async (session: pg.Client, index: number) => {
      await t.attempt(`select platform.give_seat('${t.orgId}', '${randomUUID()}', '${grants[index]}')`, session);
      await session.query('commit');
    };
    await Promise.all(sessions.map(assign));
    const { rows: seats } = await t.owner.pool.query(
      'select count(*)::int as given from seat where grant_id = any ($1)',
      [grants],
    );
    for (const session of sessions) await session.query(begin);
    const erase = async (session: pg.Client, index: number) => {
      for (const family of families.slice(index * 2, index * 2 + 2)) {
        await session.query('savepoint s');
        if ((await t.attempt(`select platform.erase_family('${family}', 'c')`, session)) !== null)
          await session.query('rollback to s');
      }
      await session.query('commit');
    };
    await Promise.all(sessions.map(erase));
    const { rows: erasures } = await t.owner.pool.query('select count(*)::int as erased from erasure');
    const isRead = level === 'read committed';
    expect([level, ...seats, ...erasures]).toEqual([level, { given: isRead ? 1 : 0 }, { erased: 2 }]);
    await t.owner.pool.query('update seat_plan set invoiced = invoiced + 1');
  }
});

/**
 * Writes all with a setting that is made before the transaction begins, where some count, and in it. Returns undefined
 * when the login may not make it.
 */
async function writeAllWith(t: Awaited<ReturnType<typeof setupThief>>, name: string, value: string) {
  const before = await t.attempt(`set ${name} = '${value}'`);
  await t.client.query('begin');
  const isSet = before === null || (await t.attempt(`set local ${name} = '${value}'`)) === null;
  const written = isSet ? await writeAll(t) : undefined;
  await t.client.query('rollback');
  await t.client.query('reset all');
  return written;
}

/**
 * Starts a grant, gives it a seat and ends it. Returns the types of its events, `wrong_isolation` for that error, and
 * null for another.
 */
async function writeAll(t: Awaited<ReturnType<typeof setupThief>>): Promise<string | null> {
  const grantId = randomUUID();
  const calls: [string, string[]][] = [
    ['start_grant($1, $2, $3, $4, $5)', [t.orgId, grantId, 'attorney', t.userId, t.familyId]],
    ['give_seat($1, $2, $3)', [t.orgId, randomUUID(), grantId]],
    ['end_grant($1, $2)', [t.orgId, grantId]],
  ];
  try {
    for (const [call, values] of calls) await t.client.query(`select platform.${call}`, values);
    const { rows } = await t.client.query<{ type: string }>(
      'select type from platform.event where grant_id = $1 order by id',
      [grantId],
    );
    return rows
      .map(({ type }) => type)
      .sort()
      .join(' ');
  } catch (error) {
    return (error as pg.DatabaseError).constraint === 'wrong_isolation' ? 'wrong_isolation' : null;
  }
}
