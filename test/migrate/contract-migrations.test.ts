/** Expand migrations run immediately; contract migrations wait until they are requested. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { Migration } from '@mikro-orm/migrations';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { currentMigration } from '#domain/db/schema-version.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { childEnvironment } from '#test/child-environment.ts';
import { createTestDatabase, type TestDatabase } from '#test/database.ts';
import { startTestApi } from '#test/setup.ts';
import { migrate } from '../../apps/migrate/migrate.ts';
import { migrations, type NamedMigration } from '../../apps/migrate/migrations/index.ts';
import { readRegionStateSql } from '../../apps/operator/region/state.ts';

class AddColumn extends Migration {
  override up(): void {
    this.addSql('alter table organization add column nickname text');
  }
}

class DropColumn extends Migration {
  override up(): void {
    this.addSql('alter table organization drop column nickname');
  }
}

class AddTable extends Migration {
  override up(): void {
    this.addSql('create table nickname (organization_id uuid primary key, name text not null)');
  }
}

class Fail extends Migration {
  override up(): void {
    this.addSql('select 1 / 0');
  }
}

const before: NamedMigration[] = [...migrations, { name: '9001-add-column', class: AddColumn }];
const contract: NamedMigration = { name: '9002-drop-column', class: DropColumn, isContract: true };
const after: NamedMigration[] = [...before, contract, { name: '9003-add-table', class: AddTable }];

async function openEmpty() {
  const database = await createTestDatabase({ empty: true });
  onTestFinished(() => database.drop());
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  onTestFinished(() => owner.end());
  return { database, owner, ownerUrl: database.ownerUrl };
}

/** Opens a database with every migration of the release before. */
async function openMigrated() {
  const t = await openEmpty();
  await migrate({ owner: parsePostgresUrl(t.ownerUrl), logins: [], migrations: before });
  return t;
}

const hasColumn = async (owner: pg.Client): Promise<boolean> => {
  const { rows } = await owner.query(
    `select from information_schema.columns where table_name = 'organization' and column_name = 'nickname'`,
  );
  return rows.length > 0;
};

/** Reads the migration status with the rights of the operator's login. */
async function readState({ urls, ownerUrl }: TestDatabase) {
  await migrate({
    owner: parsePostgresUrl(ownerUrl),
    logins: [{ role: 'operator', server: parsePostgresUrl(urls.operator) }],
    migrations: after,
  });
  const operator = new pg.Client({ connectionString: urls.operator });
  await operator.connect();
  const { rows } = await operator.query(readRegionStateSql);
  await operator.end();
  return rows[0].state;
}

it('a contract migration stays pending, and the expand migrations before and behind it run', async () => {
  const { ownerUrl, owner } = await openMigrated();

  const result = await migrate({ owner: parsePostgresUrl(ownerUrl), logins: [], migrations: after });

  expect(result).toMatchObject({ applied: ['9003-add-table'], pendingContract: ['9002-drop-column'] });
  expect(await hasColumn(owner)).toBe(true);
});

it('a contract migration runs once when it is asked for', async () => {
  const { ownerUrl, owner } = await openMigrated();
  await migrate({ owner: parsePostgresUrl(ownerUrl), logins: [], migrations: after });

  const first = await migrate({ owner: parsePostgresUrl(ownerUrl), logins: [], migrations: after, contract: true });
  const second = await migrate({ owner: parsePostgresUrl(ownerUrl), logins: [], migrations: after, contract: true });

  expect([first, second].map(({ applied, pendingContract }) => [applied, pendingContract])).toEqual([
    [['9002-drop-column'], []],
    [[], []],
  ]);
  expect(await hasColumn(owner)).toBe(false);
});

it('two calls at once apply a contract migration once', async () => {
  const { ownerUrl } = await openMigrated();
  const run = () => migrate({ owner: parsePostgresUrl(ownerUrl), logins: [], migrations: after, contract: true });

  const results = await Promise.all([run(), run()]);

  expect(results.flatMap(({ applied }) => applied).toSorted()).toEqual(['9002-drop-column', '9003-add-table']);
});

it('a new database gets every migration at once, because no older version uses it', async () => {
  const { ownerUrl, owner } = await openEmpty();

  const result = await migrate({ owner: parsePostgresUrl(ownerUrl), logins: [], migrations: after });

  expect(result).toMatchObject({ applied: after.map(({ name }) => name), pendingContract: [] });
  expect(await hasColumn(owner)).toBe(false);
});

it('the operator sees which contract migrations are pending, until they are applied', async () => {
  const { database, ownerUrl } = await openMigrated();

  expect(await readState(database)).toMatchObject({ pendingContract: ['9002-drop-column'], failedMigration: null });
  await migrate({ owner: parsePostgresUrl(ownerUrl), logins: [], migrations: after, contract: true });
  expect(await readState(database)).toMatchObject({ pendingContract: [] });
});

it('the version before forgets a contract migration that it does not know, so a rollback leaves none pending', async () => {
  const { ownerUrl, owner } = await openMigrated();
  await migrate({ owner: parsePostgresUrl(ownerUrl), logins: [], migrations: after });

  await migrate({ owner: parsePostgresUrl(ownerUrl), logins: [], migrations: before });

  expect((await owner.query('select name from contract_migration')).rows).toEqual([]);
  expect(await migrate({ owner: parsePostgresUrl(ownerUrl), logins: [], migrations: after })).toMatchObject({
    pendingContract: ['9002-drop-column'],
  });
});

it('a contract migration that fails changes nothing and stays pending, and the Region stays Ready', async () => {
  const { ownerUrl, owner } = await openMigrated();
  const failing = [...before, contract, { name: '9004-fail', class: Fail, isContract: true }];
  await migrate({ owner: parsePostgresUrl(ownerUrl), logins: [], migrations: failing });

  const failed = migrate({ owner: parsePostgresUrl(ownerUrl), logins: [], migrations: failing, contract: true });

  await expect(failed).rejects.toMatchObject({ code: '22012' });
  expect(await hasColumn(owner)).toBe(true);
  expect((await owner.query('select names from migration_failure')).rows).toEqual([]);
  expect((await owner.query('select name from contract_migration order by name')).rows).toHaveLength(2);
});

it('reads are served while a contract migration is pending', async () => {
  const { database, ownerUrl } = await openMigrated();
  await migrate({
    owner: parsePostgresUrl(ownerUrl),
    logins: [{ role: 'api', server: parsePostgresUrl(database.urls.api) }],
    migrations: after,
  });
  const api = await startTestApi(database);

  await expect.poll(async () => (await api.get('/readyz')).status, { timeout: 15_000 }).toBe(200);
});

it('the migration that this version needs is the newest expand migration', () => {
  expect(migrations.findLast(({ isContract }) => !isContract)?.name).toBe(currentMigration);
});

it('npm run tool -- migrate --contract applies what is pending, and another option is rejected', async () => {
  const { ownerUrl } = await openEmpty();
  const run = async (...args: string[]) => {
    const main = path.join(import.meta.dirname, '../../apps/migrate/main.ts');
    const child = spawn(process.execPath, [main, ...args], { env: { ...childEnvironment, DATABASE_URL: ownerUrl } });
    const [out, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
    return { out, errors, code };
  };

  expect(await run('--contract')).toMatchObject({ code: 0, out: expect.stringContaining('Applied') });
  expect(await run('--expand')).toMatchObject({
    code: 2,
    errors: expect.stringContaining('Usage: node apps/migrate/main.ts'),
  });
});
