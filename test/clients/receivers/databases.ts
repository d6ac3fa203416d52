import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Pool } from 'pg';
import { inject, onTestFinished, vi } from 'vitest';
import { startMariadb } from '#test/mariadb.ts';
import { temporaryFolder } from '#test/temporary-folder.ts';
import type { Kit } from './kills.ts';
import { loadMysql } from './mysql.ts';

/** A new database of a receiver. */
export interface ReceiverDatabase {
  database: string;
  query: (sql: string) => Promise<Record<string, unknown>[]>;
}

export function openSqlite(): ReceiverDatabase {
  const database = path.join(temporaryFolder(), 'receiver.sqlite');
  const file = new DatabaseSync(database, { timeout: 20_000 });
  file.exec('pragma journal_mode = wal');
  onTestFinished(() => file.close());
  return { database, query: async (sql) => file.prepare(sql).all() };
}

/** On the server of the tests. */
export async function openPostgres(): Promise<ReceiverDatabase> {
  const url = new URL(inject('databaseAdminUrl'));
  const name = `receiver_${randomUUID().replaceAll('-', '')}`;
  const admin = new Pool({ connectionString: url.href, max: 1 });
  await admin.query(`create database ${name}`);
  url.pathname = `/${name}`;
  const pool = new Pool({ connectionString: url.href, max: 2 });
  pool.on('error', () => {}); // of a connection that closes while its database is dropped
  onTestFinished(async () => {
    await pool.end();
    await admin.query(`drop database ${name} with (force)`);
    await admin.end();
  });
  return { database: url.href, query: async (sql) => (await pool.query(sql)).rows };
}

/** On a server of the test's own. */
export async function openMariadb(): Promise<ReceiverDatabase> {
  const database = await startMariadb();
  const pool = (await loadMysql())(database);
  onTestFinished(() => pool.end());
  const query = async (sql: string) => (await pool.query(sql))[0] as Record<string, unknown>[];
  await vi.waitFor(() => query('select 1'), { timeout: 60_000, interval: 100 });
  return { database, query };
}

const databases = [
  ['SQLite', openSqlite],
  ['PostgreSQL', openPostgres],
  ['MariaDB', openMariadb],
] as const;

/** Each kit with each database that it has a port for. */
export const kitsWithDatabases = (['typescript', 'python'] satisfies Kit[]).flatMap((kit) =>
  databases.map(([name, open]) => [kit, name, open] as const),
);
