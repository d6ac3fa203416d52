import { Client, escapeIdentifier } from 'pg';
import type { Region } from '#domain/contract/regions.ts';
import type { LoginRole } from '#domain/db/logins.ts';
import type { RegionSecrets } from './state.ts';

/**
 * The setting that marks a database as a development stack's; `dev:key` refuses to work on any
 * other.
 */
export const developmentMark = 'org_api.development';

/**
 * The owner's URL of a region's database, made when absent and marked as a development stack's.
 *
 * Several regions on one server get a database each, `<name>_<region>`; they share nothing but the
 * server.
 */
export async function getRegionDatabase(serverUrl: string, name: string): Promise<string> {
  const ownerUrl = new URL(serverUrl);
  ownerUrl.pathname = name;
  const client = new Client({ connectionString: serverUrl, connectionTimeoutMillis: 10_000 });
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

/** The roles of the apps that `npm start` runs. */
type AppRole = Exclude<LoginRole, 'operator'>;

/**
 * Each app's URL of a region's database, with a login of its own. Logins belong to the server, so
 * their names hold the database's.
 */
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
