import { onTestFinished, vi } from 'vitest';
import { startMariadb } from '#test/mariadb.ts';
import type { Kit } from './kills.ts';
import { loadMysql } from './mysql.ts';
import { openPostgres, openSqlite, type ReceiverDatabase } from './own-databases.ts';

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
