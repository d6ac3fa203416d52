/** Migrates an empty database to the current schema, concurrently and repeatedly. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { Migration } from '@mikro-orm/migrations';
import pg from 'pg';
import { expect, it, onTestFinished, vi } from 'vitest';
import { currentMigration, migrationNames } from '#domain/db/schema-version.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { createTestDatabase, type TestDatabase } from '#test/database.ts';
import type { TestLogin } from '#test/global-setup.ts';
import { startTestApi } from '#test/setup.ts';
import { migrate } from '../../apps/migrate/migrate.ts';
import { migrations } from '../../apps/migrate/migrations/index.ts';
import { type RegionState, readRegionStateSql } from '../../apps/operator/region/state.ts';

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase({ empty: true });
  onTestFinished(() => database.drop());
  return database;
}

const listLogins = ({ urls }: TestDatabase) =>
  Object.entries(urls).map(([role, url]) => ({ role: role as TestLogin, server: parsePostgresUrl(url) }));

/** Returns null when a login may connect, otherwise the SQLSTATE of the error. */
async function findRejection(url: string): Promise<string | null> {
  const client = new pg.Client({ connectionString: url });
  try {
    await client.connect();
    await client.query('select 1');
    return null;
  } catch (error) {
    return (error as pg.DatabaseError).code ?? 'unknown';
  } finally {
    await client.end().catch(() => {});
  }
}

it('one call brings an empty database to the current schema, and reports it', async () => {
  const database = await emptyDatabase();
  const lines: string[] = [];
  const report = (line: string) => void lines.push(line);
  const result = await migrate({ owner: parsePostgresUrl(database.ownerUrl), logins: listLogins(database), report });
  expect(result).toEqual({
    applied: [...migrationNames],
    current: currentMigration,
  });
  expect(lines.join('\n')).toContain(`applying ${migrationNames.length} migrations`);
  for (const url of Object.values(database.urls)) expect(await findRejection(url)).toBeNull();
});

it('a second call applies nothing', async () => {
  const database = await emptyDatabase();
  await migrate({ owner: parsePostgresUrl(database.ownerUrl), logins: [] });
  const again = await migrate({ owner: parsePostgresUrl(database.ownerUrl), logins: listLogins(database) });
  expect(again).toEqual({ applied: [], current: currentMigration });
});

it('four parallel calls are safe: one applies, and the others find nothing to do', async () => {
  const database = await emptyDatabase();
  const options = { owner: parsePostgresUrl(database.ownerUrl), logins: listLogins(database) };
  const results = await Promise.all(Array.from({ length: 4 }, () => migrate(options)));
  expect(results.map(({ applied }) => applied.length).sort()).toEqual([0, 0, 0, migrationNames.length]);
});

/** Builds an index when another call waits for this one. */
class IndexBesideACall extends Migration {
  override isTransactional(): boolean {
    return false;
  }
  override async up(): Promise<void> {
    const waiting = `select pid from pg_locks where locktype = 'advisory' and not granted and database =
      (select oid from pg_database where datname = current_database())`;
    await vi.waitFor(async () => expect(await this.execute(waiting)).toHaveLength(1), { timeout: 60_000 });
    await this.execute('create index concurrently organization_built on organization (name)');
  }
}

it('a call that waits does not stop the index that the other builds', async () => {
  const database = await emptyDatabase();
  const options = { owner: parsePostgresUrl(database.ownerUrl), logins: [] };
  await migrate(options);
  const run = () =>
    migrate({ ...options, migrations: [...migrations, { name: '9999-index', class: IndexBesideACall }] });
  const results = await Promise.all([run(), run()]);
  expect(results.flatMap(({ applied }) => applied)).toEqual(['9999-index']);
});

it('two databases of one server can migrate at once, although they share their roles', async () => {
  const databases = await Promise.all([emptyDatabase(), emptyDatabase(), emptyDatabase()]);
  const results = await Promise.all(
    databases.map((database) => migrate({ owner: parsePostgresUrl(database.ownerUrl), logins: listLogins(database) })),
  );
  for (const { applied } of results) expect(applied.length).toBe(migrationNames.length);
  for (const { urls } of databases) expect(await findRejection(urls.api)).toBeNull();
});

it('a login gets access to its own database only, and the password of its URL', async () => {
  const [us, ca] = await Promise.all([emptyDatabase(), emptyDatabase()]);
  const name = `org_api_login_region_${us.name.slice(-8)}`;
  const buildUrl = (database: TestDatabase, password: string) => {
    const url = new URL(database.urls.api);
    url.username = name;
    url.password = encodeURIComponent(password);
    return url.href;
  };
  onTestFinished(async () => {
    const admin = new pg.Client({ connectionString: us.ownerUrl });
    await admin.connect();
    await admin.query(`drop owned by ${name}; drop role ${name}`);
    await admin.end();
  });
  await migrate({
    owner: parsePostgresUrl(us.ownerUrl),
    logins: [{ role: 'api', server: parsePostgresUrl(buildUrl(us, 'first: p@ss/word')) }],
  });
  await migrate({ owner: parsePostgresUrl(ca.ownerUrl), logins: listLogins(ca) });
  expect(await findRejection(buildUrl(us, 'first: p@ss/word'))).toBeNull();
  expect(await findRejection(buildUrl(ca, 'first: p@ss/word'))).toBe('42501');

  await migrate({
    owner: parsePostgresUrl(us.ownerUrl),
    logins: [{ role: 'api', server: parsePostgresUrl(buildUrl(us, 'second')) }],
  });
  expect(await findRejection(buildUrl(us, 'second'))).toBeNull();
});

it('a login without a password is rejected, and so is the owner as a login', async () => {
  const database = await emptyDatabase();
  const nameless = new URL(database.urls.api);
  nameless.password = '';
  await expect(
    migrate({
      owner: parsePostgresUrl(database.ownerUrl),
      logins: [{ role: 'api', server: parsePostgresUrl(nameless.href) }],
    }),
  ).rejects.toThrow(/names no password/);
  const owner = new URL(database.ownerUrl);
  owner.password ||= 'x';
  await expect(
    migrate({
      owner: parsePostgresUrl(database.ownerUrl),
      logins: [{ role: 'api', server: parsePostgresUrl(owner.href) }],
    }),
  ).rejects.toThrow(/owner/);
});

it('a login whose name or password programs read differently is rejected before anything changes', async () => {
  const database = await emptyDatabase();
  const attempt = (user: string, password: string) => {
    const server = { ...parsePostgresUrl(database.urls.api), user, password };
    return migrate({ owner: parsePostgresUrl(database.ownerUrl), logins: [{ role: 'api', server }] });
  };
  // RFC 4013 removes, maps, prohibits or does not know these; libpq, `pg` and the server differ in which.
  for (const character of [
    '\u00ad',
    '\u200d',
    '\u2764\ufe0f',
    '\u00a0',
    '\u2126',
    'é',
    'e\u0301',
    '🦜',
    '\t',
    '\u007f',
  ]) {
    const secret = `copper${character}lantern`;
    const rejected = attempt('org_api_login_any', secret);
    await expect(rejected, JSON.stringify(character)).rejects.toThrow(
      /password of the api's login has other characters/,
    );
    await expect(rejected).rejects.not.toThrow(/copper/);
  }
  for (const user of ['l'.repeat(64), 'l\u00f6gin', 'lo\u00adgin', 'a login'])
    await expect(attempt(user, 'x')).rejects.toThrow(/login of the api has a name that is longer than 63 characters/);
  const admin = new pg.Client({ connectionString: database.ownerUrl });
  await admin.connect();
  onTestFinished(() => admin.end());
  expect((await admin.query(`select from pg_tables where schemaname = 'public'`)).rowCount).toBe(0);

  const all = String.fromCharCode(...Array.from({ length: 95 }, (_, index) => 32 + index));
  const user = `org_api_login_any_${database.name.slice(-8)}`;
  onTestFinished(async () => void (await admin.query(`drop owned by ${user}; drop role ${user}`)));
  await attempt(user, all);
  const { host, port } = parsePostgresUrl(database.urls.api);
  const login = { host, port, user, password: all, database: database.name };
  const client = new pg.Client(login);
  await client.connect();
  await client.end();
});

it('a failed migration leaves nothing behind, and the next call applies all', async () => {
  const database = await emptyDatabase();
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  onTestFinished(() => owner.end());
  await owner.query('create table api_key (in_the_way int)'); // the fifth migration's name
  await expect(migrate({ owner: parsePostgresUrl(database.ownerUrl), logins: [] })).rejects.toThrow(/api_key/);
  expect((await owner.query(`select to_regclass('organization') as found`)).rows).toEqual([{ found: null }]);
  await owner.query('drop table api_key');
  expect((await migrate({ owner: parsePostgresUrl(database.ownerUrl), logins: [] })).applied.length).toBe(
    migrationNames.length,
  );
});

class AddColumn extends Migration {
  override up(): void {
    this.addSql('alter table organization add column nickname text');
  }
}

class Fail extends Migration {
  override up(): void {
    this.addSql('create table half_done (id integer)');
    this.addSql('select 1 / 0');
  }
}

it('the operator sees which migrations failed and why, until a later call succeeds', async () => {
  const database = await emptyDatabase();
  const options = { owner: parsePostgresUrl(database.ownerUrl), logins: listLogins(database) };
  await migrate(options);
  const operator = new pg.Client({ connectionString: database.urls.operator });
  await operator.connect();
  onTestFinished(() => operator.end());
  const state = async () => (await operator.query<{ state: RegionState }>(readRegionStateSql)).rows[0]?.state;

  const failing = [...migrations, { name: '9999-fail', class: Fail }];
  await expect(migrate({ ...options, migrations: failing })).rejects.toMatchObject({ code: '22012' });
  expect(await state()).toMatchObject({
    migrations: [...migrationNames],
    failedMigration: { names: ['9999-fail'], code: '22012' },
  });

  await migrate(options);
  expect(await state()).toMatchObject({ migrations: [...migrationNames], failedMigration: null });
});

it('the version before changes nothing in a database that a newer one has migrated', async () => {
  const database = await emptyDatabase();
  const options = { owner: parsePostgresUrl(database.ownerUrl), logins: listLogins(database) };
  await migrate({ ...options, migrations: [...migrations, { name: '9999-newer', class: AddColumn }] });
  expect(await migrate(options)).toEqual({ applied: [], current: currentMigration });
});

it('npm run tool -- migrate applies what is pending, and rejects an option that it does not have', async () => {
  const { ownerUrl } = await emptyDatabase();
  const run = async (...args: string[]) => {
    const main = path.join(import.meta.dirname, '../../apps/migrate/main.ts');
    const child = spawn(process.execPath, [main, ...args], { env: { ...childEnvironment, DATABASE_URL: ownerUrl } });
    const [out, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
    return { out, errors, code };
  };

  expect(await run('--expand')).toMatchObject({
    code: 2,
    errors: expect.stringContaining('Usage: node apps/migrate/main.ts'),
  });
  expect(await run()).toMatchObject({ code: 0, out: expect.stringContaining('Applied') });
  expect(await run()).toMatchObject({ code: 0, out: expect.stringContaining('Nothing to apply') });
});

it('an API that waits on the empty database becomes ready', async () => {
  const database = await emptyDatabase();
  const api = await startTestApi(database);
  const readiness = async () => (await api.get('/readyz')).status;
  expect([await readiness(), (await api.get('/livez')).status]).toEqual([503, 200]);
  await migrate({ owner: parsePostgresUrl(database.ownerUrl), logins: listLogins(database) });
  await expect.poll(readiness, { timeout: 15_000 }).toBe(200);
});

it('ends with an error when a server accepts connections and says nothing', { timeout: 60_000 }, async () => {
  const silent = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void silent.close());
  await once(silent, 'listening');
  const owner = parsePostgresUrl(`postgres://owner@127.0.0.1:${(silent.address() as AddressInfo).port}/none`);
  await expect(migrate({ owner, logins: [] })).rejects.toThrow(/timeout/);
});
