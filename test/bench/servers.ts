import pg from 'pg';
import { getStateFolder, makeRunFolder, removeRunFolder } from '#test/run-folder.ts';
import { startPostgres } from '../../apps/dev/servers/postgres.ts';

/** The open parts of a benchmark, in a new folder. */
export interface BenchServers {
  folder: string;
  /** Flushes to disk, as in production. */
  postgres: Awaited<ReturnType<typeof startPostgres>>;
  /** Adds a part that `stop` closes first. */
  onStop(close: () => Promise<void>): void;
  stop(): Promise<void>;
}

/** Starts PostgreSQL in a new folder, then `open`. `stop` closes and removes everything. */
export async function startServers<Stack>(
  report: (line: string) => void,
  open: (servers: BenchServers) => Promise<Stack>,
): Promise<Stack> {
  const runFolder = makeRunFolder();
  const folder = getStateFolder(runFolder);
  const closers: (() => Promise<void>)[] = [() => removeRunFolder(runFolder)];
  const stop = async () => {
    for (let close = closers.pop(); close !== undefined; close = closers.pop()) await close();
  };
  try {
    const postgres = await startPostgres({ stateFolder: folder, report });
    closers.push(() => postgres.stop());
    return await open({ folder, postgres, onStop: (close) => void closers.push(close), stop });
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Runs `work` over a connection of the database's owner. */
export async function asOwner<T>(ownerUrl: string, work: (owner: pg.Client) => Promise<T>): Promise<T> {
  const owner = new pg.Client({ connectionString: ownerUrl });
  await owner.connect();
  try {
    return await work(owner);
  } finally {
    await owner.end();
  }
}

/** Amounts that a PostgreSQL server has written since it began to count. */
export interface Writes {
  /** Of its write-ahead log. */
  walBytes: number;
  /**
   * Full-page images in that log: the first change of a page after a checkpoint writes the page.
   */
  walPages: number;
  transactions: number;
  /** Rows inserted, changed or deleted. */
  rows: number;
}

/** Of all databases of the server. Its sessions publish their counts at most once a second. */
export async function readWrites(client: pg.Client): Promise<Writes> {
  const { rows } = await client.query<Writes>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as "walBytes",
       (select wal_fpi from pg_stat_wal)::float8 as "walPages",
       sum(xact_commit)::float8 as transactions,
       sum(tup_inserted + tup_updated + tup_deleted)::float8 as rows
     from pg_stat_database`,
  );
  return rows[0] as Writes;
}
