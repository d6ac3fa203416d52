import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { TestInstallation } from './setup.ts';

/**
 * Returns every row of every table as text, by table; with `statistics` also what the planner keeps
 * of their values.
 */
export async function dumpTables(
  { owner }: Pick<TestInstallation, 'owner'>,
  { statistics = false } = {},
): Promise<Map<string, string>> {
  const { rows: tables } = await owner.pool.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname !~ '^pg_toast' and n.nspname <> 'information_schema'
       and (n.nspname <> 'pg_catalog' or $1 and c.relname like 'pg\\_statistic%')`,
    [statistics],
  );
  const texts = new Map<string, string>();
  for (const { name } of tables) {
    const { rows } = await owner.pool.query<{ line: string }>(`select t::text as line from ${name} t`);
    texts.set(name, rows.map(({ line }) => line).join('\n'));
  }
  return texts;
}

/** Returns a text as it may be stored: plain, in hexadecimal, and in base64 at each of the three alignments. */
export function listTraces(text: string): string[] {
  const bytes = Buffer.from(text);
  const base64 = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift, 'x'), bytes])
      .toString('base64')
      .slice(4, Math.floor((bytes.length * 4) / 3) - 2),
  );
  return [text, bytes.toString('hex'), ...base64];
}

/** A connection that may see settings of the server. */
interface Querying {
  owner: { pool: { query(text: string): Promise<{ rows: { folder: string }[] }> } };
}

/** Returns the folder of the run's servers. */
async function findServers({ owner }: Querying): Promise<string> {
  const { rows } = await owner.pool.query(`select current_setting('data_directory') as folder`);
  return path.join(rows[0]?.folder ?? '', '../..');
}

/** Returns the log of PostgreSQL. */
export const readServerLog = async (installation: Querying) =>
  readFile(path.join(await findServers(installation), 'postgres.log'), 'utf8');

/** Returns every value of every table of Temporal's store; of bytes, each is a character. */
export async function readTemporalStore(installation: Pick<TestInstallation, 'owner'>): Promise<string> {
  const store = new DatabaseSync(path.join(await findServers(installation), 'temporal/store.db'), { readOnly: true });
  const tables = store.prepare(
    `select name from sqlite_schema where type = 'table' and sql not like 'create virtual%'`,
  );
  const values = tables
    .all()
    .flatMap((table) => store.prepare(`select * from "${table.name}"`).all().flatMap(Object.values));
  store.close();
  return values
    .map((value) => (value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value))
    .join('\n');
}
