/** New databases for receivers, with what every machine of the tests has. */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Pool } from 'pg';
import { inject, onTestFinished } from 'vitest';
import { temporaryFolder } from '#test/temporary-folder.ts';

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
