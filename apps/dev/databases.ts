import { escapeIdentifier } from 'pg';
import type { Region } from '#domain/contract/regions.ts';
import type { Database } from '#domain/db/database.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import { openDatabase } from '#domain/open-database.ts';
import { withConnection } from './servers/postgres.ts';
import type { RegionMemory } from './state.ts';

/**
 * Returns a region's database as its owner reaches it. It creates the database if needed and marks
 * it as part of a development stack: `dev:key` and `listen` reject all others.
 */
export async function getRegionDatabase(server: PostgresServer, name: string): Promise<PostgresServer> {
  await withConnection(server, async (connection) => {
    const { rows } = await connection.query('select from pg_database where datname = $1', [name]);
    const quoted = escapeIdentifier(name);
    if (rows.length === 0) await connection.query(`create database ${quoted} template template0 encoding 'UTF8'`);
    await connection.query(`alter database ${quoted} set org_api.development = 'on'`);
  });
  return { ...server, database: name };
}

/** Runs `work` with a database, which is closed afterwards. */
export async function withDatabase<Result>(server: PostgresServer, work: (database: Database) => Promise<Result>) {
  const database = await openDatabase({ server, applicationName: 'org-api-dev', poolMax: 2 });
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/** Returns each app's login. Logins belong to the server, so the database is part of their names. */
export function buildLogins(owner: PostgresServer, region: Region, { passwords }: RegionMemory) {
  const login = (role: keyof typeof passwords): PostgresServer => ({
    ...owner,
    user: `${owner.database}_${region}_${role}`.slice(0, 63),
    password: passwords[role],
  });
  return { api: login('api'), worker: login('worker'), console: login('console'), platform: login('platform') };
}
