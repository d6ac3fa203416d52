import { escapeIdentifier } from 'pg';
import type { Region } from '#domain/contract/regions.ts';
import type { LoginRole } from '#domain/db/login-rights.ts';
import { connectionOptions, type PostgresServer } from '#domain/db/server.ts';
import { Session } from '#domain/db/session.ts';
import { type Database, openDatabase } from '#domain/open-database.ts';
import type { RegionSecrets } from './state.ts';

/** The setting of a development stack's database. `dev:key` refuses all others. */
export const developmentMark = 'org_api.development';

const applicationName = 'org-api-dev';

/**
 * Returns a region's database as its owner reaches it. It creates the database if needed and marks
 * it as part of a development stack.
 */
export async function getRegionDatabase(server: PostgresServer, name: string): Promise<PostgresServer> {
  const client = new Session(connectionOptions(server, { applicationName, connectTimeoutMs: 10_000 }));
  client.on('error', () => {}); // the failed query reports it as well
  await client.connect();
  try {
    const { rows } = await client.query('select from pg_database where datname = $1', [name]);
    if (rows.length === 0)
      await client.query(`create database ${escapeIdentifier(name)} template template0 encoding 'UTF8'`);
    await client.query(`alter database ${escapeIdentifier(name)} set ${developmentMark} = 'on'`);
  } finally {
    await client.end();
  }
  return { ...server, database: name };
}

/** Runs `work` with a database, which is closed afterwards. */
export async function withDatabase<Result>(
  server: PostgresServer,
  work: (database: Database) => Promise<Result>,
  name = applicationName,
): Promise<Result> {
  const database = await openDatabase({ server, applicationName: name, poolMax: 2 });
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/** The roles of the apps that `npm start` runs. */
type AppRole = Exclude<LoginRole, 'operator'>;

/** Returns each app's login. Logins belong to the server, so the database is part of their names. */
export function loginsOf(
  owner: PostgresServer,
  region: Region,
  passwords: RegionSecrets['passwords'],
): Record<AppRole, PostgresServer> {
  const login = (role: AppRole): PostgresServer => ({
    ...owner,
    user: `${owner.database}_${region}_${role}`.slice(0, 63),
    password: passwords[role],
  });
  return { api: login('api'), worker: login('worker'), console: login('console'), platform: login('platform') };
}
