import { Client } from 'pg';
import { describe, expect, inject, it, onTestFinished } from 'vitest';
import { createTestDatabase } from '#test/database.ts';

async function query(url: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  try {
    await client.connect();
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

async function setup(options?: { empty: boolean }) {
  const database = await createTestDatabase(options);
  onTestFinished(() => database.drop());
  return database;
}

describe('a test’s database', () => {
  it('has the current schema, and admits each app with its own login', async () => {
    const { urls, name } = await setup();
    for (const [role, url] of Object.entries(urls)) {
      expect(await query(url, 'select current_user as "user", current_database() as database')).toEqual([
        { user: `org_api_login_${role}`, database: name },
      ]);
    }
    expect(await query(urls.api, 'select count(*)::int as rows from api.organization')).toEqual([{ rows: 0 }]);
  });

  it('is closed to every other login, as in production', async () => {
    const { name } = await setup();
    const sql = `select has_database_privilege('pg_monitor', '${name}', 'connect') as may`;
    expect(await query(inject('databaseAdminUrl'), sql)).toEqual([{ may: false }]);
  });

  it('is isolated: what one test writes, another does not see', async () => {
    const [one, other] = await Promise.all([setup(), setup()]);
    await query(one.ownerUrl, 'create table mark ()');
    expect(await query(other.ownerUrl, "select to_regclass('mark') as found")).toEqual([{ found: null }]);
  });

  it('can be created empty', async () => {
    const { ownerUrl } = await setup({ empty: true });
    expect(await query(ownerUrl, "select to_regclass('public.organization') as found")).toEqual([{ found: null }]);
  });

  it('is dropped while a connection is open, and can be dropped twice', async () => {
    const database = await createTestDatabase();
    const client = new Client({ connectionString: database.ownerUrl });
    client.on('error', () => {});
    await client.connect();
    await database.drop();
    await database.drop();
    await expect(query(database.ownerUrl, 'select 1')).rejects.toMatchObject({ code: '3D000' });
    await client.end().catch(() => {});
  });
});
