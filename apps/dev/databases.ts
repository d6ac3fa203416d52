import { Client, escapeIdentifier } from 'pg';
import type { Region } from '#domain/contract/regions.ts';
import { type Database, openDatabase } from '#domain/db/connect.ts';
import type { LoginRole } from '#domain/db/logins.ts';
import type { RegionSecrets } from './state.ts';

/** The setting of a development stack's database. `dev:key` refuses all others. */
export const developmentMark = 'org_api.development';

/**
 * Returns the owner's URL of a region's database, which it creates if needed and marks as part of a
 * development stack.
 */
export async function getRegionDatabase(serverUrl: string, name: string): Promise<string> {
  const ownerUrl = new URL(serverUrl);
  ownerUrl.pathname = name;
  const client = new Client({ connectionString: serverUrl, connectionTimeoutMillis: 10_000 });
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
  return ownerUrl.href;
}

/** Runs `work` with a database, which is closed afterwards. */
export async function withDatabase<Result>(
  url: string,
  work: (database: Database) => Promise<Result>,
  applicationName = 'org-api-dev',
): Promise<Result> {
  const database = await openDatabase({ url, applicationName, poolMax: 2 });
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/** The roles of the apps that `npm start` runs. */
type AppRole = Exclude<LoginRole, 'operator'>;

/** Returns each app's URL. Logins belong to the server, so the database is part of their names. */
export function loginUrls(
  ownerUrl: string,
  region: Region,
  passwords: RegionSecrets['passwords'],
): Record<AppRole, string> {
  const database = new URL(ownerUrl).pathname.slice(1);
  const url = (role: AppRole) => {
    const login = new URL(ownerUrl);
    login.username = `${database}_${region}_${role}`.slice(0, 63);
    login.password = passwords[role];
    return login.href;
  };
  return { api: url('api'), worker: url('worker'), console: url('console'), platform: url('platform') };
}
