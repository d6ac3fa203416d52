import type { PoolConfig } from 'pg';

/** How a PostgreSQL server, a database and a login of it are reached: one reading of a URL. */
export interface PostgresServer {
  readonly protocol: 'postgresql';
  /** A name, an address (IPv6 without brackets), or the absolute path of a Unix socket's folder. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly user: string;
  /** Null: the server must ask for none. */
  readonly password: string | null;
  /** Null: plain text. */
  readonly tls: PostgresTls | null;
}

export interface PostgresTls {
  /** Whether the server's certificate must be valid for the host. */
  readonly isVerified: boolean;
  /** The only trusted authorities; null: those of the system. */
  readonly ca: PemFile | null;
  /** The client's certificate and its key; null: none. */
  readonly own: { readonly certificate: PemFile; readonly key: PemFile } | null;
}

/** A file in PEM that a URL names, and its text when the URL was read. */
export interface PemFile {
  readonly file: string;
  readonly text: string;
}

/** The times of a database whose process sets no others. */
export const defaultTimes = { connectTimeoutMs: 5_000, statementTimeoutMs: 5_000 };

/** A server, or a function that returns it: each new connection uses the login of that moment. */
export type CurrentServer = PostgresServer | (() => PostgresServer);

export const serverNow = (server: CurrentServer): PostgresServer => (typeof server === 'function' ? server() : server);

/** What a connection is for, and its bounds; a bound that is absent does not exist. */
export interface ConnectionSettings {
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  connectTimeoutMs?: number;
  /** How long a statement may take at the server. */
  statementTimeoutMs?: number;
  /** How long this process waits for the result of a statement. */
  queryTimeoutMs?: number;
  /** How long a statement may wait for a lock. */
  lockTimeoutMs?: number;
  /** Further parameters of the connection, by their names in PostgreSQL. */
  parameters?: Readonly<Record<string, string>>;
}

/**
 * What every connection sets, so that nothing depends on the defaults of a server, a database or a role.
 * It travels with the start of the connection and costs no round trip.
 *
 * `default_transaction_read_only` is absent: a server that is read-only is left (`driver/primary-connection.ts`).
 */
export const connectionParameters: Readonly<Record<string, string>> = {
  DateStyle: 'ISO,MDY',
  IntervalStyle: 'postgres',
  TimeZone: 'UTC',
  search_path: 'public',
  bytea_output: 'hex',
  extra_float_digits: '1',
  standard_conforming_strings: 'on',
  backslash_quote: 'safe_encoding',
  transform_null_equals: 'off',
  array_nulls: 'on',
  quote_all_identifiers: 'off',
  row_security: 'on',
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  // A connection whose process is gone, or that forgot its transaction, ends.
  idle_in_transaction_session_timeout: '60s',
  idle_session_timeout: '0',
  client_connection_check_interval: '10s',
  tcp_keepalives_idle: '60',
  tcp_keepalives_interval: '10',
  tcp_keepalives_count: '6',
};

/** A parameter that only the start of a connection sets: one without it lacks the others, too. */
export const startMarker = 'org_api.connection';

/**
 * Returns the options of every connection to PostgreSQL: of pools, single clients and MikroORM. It
 * states everything that says where a connection leads and as whom, because `pg` would take what is
 * absent from `PG…` of the environment.
 */
export function connectionOptions(server: PostgresServer, connection: ConnectionSettings): PoolConfig {
  const { connectTimeoutMs, statementTimeoutMs, queryTimeoutMs, lockTimeoutMs, parameters = {} } = connection;
  const settings = {
    ...connectionParameters,
    [startMarker]: 'on',
    statement_timeout: `${statementTimeoutMs ?? 0}`,
    lock_timeout: `${lockTimeoutMs ?? 0}`,
    ...parameters,
  };
  return {
    ...loginOptions(server),
    host: server.host,
    port: server.port,
    database: server.database,
    sslnegotiation: 'postgres',
    client_encoding: 'UTF8',
    application_name: connection.applicationName,
    keepAlive: true,
    keepAliveInitialDelayMillis: 60_000,
    options: Object.entries(settings)
      .map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`)
      .join(' '),
    ...(connectTimeoutMs !== undefined && { connectionTimeoutMillis: connectTimeoutMs }),
    ...(queryTimeoutMs !== undefined && { query_timeout: queryTimeoutMs }),
  };
}

/** The part of the options that may change while a process runs. */
export function loginOptions(server: PostgresServer): Pick<PoolConfig, 'user' | 'password' | 'ssl'> {
  const { user, password, tls, host } = server;
  return { user, password: password ?? (() => ''), ssl: tls === null ? false : tlsOptions(tls, host) };
}

function tlsOptions(
  { isVerified, ca, own }: PostgresTls,
  host: string,
): Exclude<PoolConfig['ssl'], boolean | undefined> {
  return {
    host, // `pg` names it to TLS only when it is a name; an address would be verified as "localhost"
    rejectUnauthorized: isVerified,
    ...(ca !== null && { ca: ca.text }),
    ...(own !== null && { cert: own.certificate.text, key: own.key.text }),
  };
}
