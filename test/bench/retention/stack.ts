import { tmpdir } from 'node:os';
import pg from 'pg';
import { migrate } from '#domain/db/migrate.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { makeRunFolder, removeRunFolder, removeRunFolderNow, stateOf } from '#test/run-folder.ts';
import { startPostgres } from '../../../apps/dev/servers/postgres.ts';

/** A migrated database of the benchmark's PostgreSQL. */
export interface BenchDatabase {
  ownerUrl: string;
  workerUrl: string;
  /** A connection of the owner, to insert rows. */
  owner: pg.Client;
}

/**
 * Starts a PostgreSQL for the benchmark, with flushing to disk, in a folder that `stop` removes.
 */
export async function startStack(report: (line: string) => void) {
  const folder = makeRunFolder(tmpdir());
  const postgres = await startPostgres({ stateFolder: stateOf(folder), report });
  const abandon = () => removeRunFolderNow(folder, [postgres.pid]);
  process.once('exit', abandon);
  const clients: pg.Client[] = [];

  async function connect(url: string): Promise<pg.Client> {
    // Generic plans, as on every connection in production.
    const client = new pg.Client({ connectionString: url, options: '-c plan_cache_mode=force_generic_plan' });
    await client.connect();
    clients.push(client);
    return client;
  }

  return {
    connect,

    async createDatabase(name: string): Promise<BenchDatabase> {
      const admin = await connect(postgres.adminUrl);
      await admin.query(`create database ${name} template template0 encoding 'UTF8'`);
      const ownerUrl = new URL(postgres.adminUrl);
      ownerUrl.pathname = name;
      const workerUrl = new URL(ownerUrl);
      Object.assign(workerUrl, { username: `${name}_worker`, password: 'bench' });
      await migrate({
        owner: parsePostgresUrl(ownerUrl.href),
        logins: [{ role: 'worker', server: parsePostgresUrl(workerUrl.href) }],
      });
      return { ownerUrl: ownerUrl.href, workerUrl: workerUrl.href, owner: await connect(ownerUrl.href) };
    },

    async stop(): Promise<void> {
      await Promise.all(clients.map((client) => client.end()));
      await removeRunFolder(folder);
      process.off('exit', abandon);
    },
  };
}

export type RetentionStack = Awaited<ReturnType<typeof startStack>>;
