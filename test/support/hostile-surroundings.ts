/** Defaults of a server and variables of a shell that nothing of the product may depend on. */
import { escapeIdentifier, escapeLiteral, type Pool } from 'pg';

export const hostileDefaults: Readonly<Record<string, string>> = {
  DateStyle: 'German, DMY',
  IntervalStyle: 'iso_8601',
  TimeZone: 'Pacific/Chatham',
  search_path: 'pg_catalog',
  bytea_output: 'escape',
  extra_float_digits: '-15',
  standard_conforming_strings: 'off',
  backslash_quote: 'off',
  transform_null_equals: 'on',
  array_nulls: 'off',
  quote_all_identifiers: 'on',
  row_security: 'off',
  client_encoding: 'LATIN1',
  default_transaction_isolation: 'serializable',
  default_transaction_deferrable: 'on',
  statement_timeout: '1',
  lock_timeout: '1',
  idle_in_transaction_session_timeout: '1',
  idle_session_timeout: '1',
};

/**
 * Makes these the defaults of the pool's database, and in it of every role that may connect, for
 * connections that are opened afterwards. A default of a role comes before one of the database.
 */
export async function setHostileDefaults(pool: Pool): Promise<void> {
  const { rows } = await pool.query<{ database: string; role: string }>(
    `select current_database() as database, rolname as role from pg_roles
     where rolcanlogin and has_database_privilege(rolname, current_database(), 'connect')`,
  );
  const database = escapeIdentifier(rows[0]?.database ?? '');
  const owners = [
    `database ${database}`,
    ...rows.map(({ role }) => `role ${escapeIdentifier(role)} in database ${database}`),
  ];
  const settings = Object.entries(hostileDefaults).flatMap(([name, value]) => {
    const written = name === 'search_path' ? value : escapeLiteral(value);
    return owners.map((owner) => `alter ${owner} set ${name} to ${written}`);
  });
  await pool.query(settings.join(';'));
}

/** Variables that `pg` reads, without their prefix. */
const postgresVariables = {
  HOST: '192.0.2.1',
  PORT: '9',
  USER: 'nobody',
  PASSWORD: 'wrong',
  DATABASE: 'nowhere',
  SSLMODE: 'require',
  SSLNEGOTIATION: 'direct',
  OPTIONS: '-c search_path=pg_catalog',
  APPNAME: 'another',
  CLIENT_ENCODING: 'LATIN1',
  REPLICATION: 'database',
  CONNECT_TIMEOUT: '1',
};

/** Port 9 refuses connections, and 192.0.2.1 is no host. */
const proxy = 'http://127.0.0.1:9';

export const hostileShell: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(postgresVariables).map(([name, value]) => [`PG${name}`, value])),
  ...Object.fromEntries(
    ['http_proxy', 'https_proxy', 'all_proxy', 'grpc_proxy'].flatMap((name) => [
      [name, proxy],
      [name.toUpperCase(), proxy],
    ]),
  ),
  LANG: 'tr_TR.UTF-8',
  LC_ALL: 'ar_EG.UTF-8',
  TZ: 'Pacific/Chatham',
  NODE_OPTIONS: '--use-env-proxy --stack-trace-limit=0',
  NODE_USE_ENV_PROXY: '1',
  NODE_EXTRA_CA_CERTS: '/nonexistent/authorities.pem',
  NODE_TLS_REJECT_UNAUTHORIZED: '0',
  NODE_ENV: 'production',
  FORCE_COLOR: '3',
};
