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

/** A server, or a function that returns it: each new connection uses the login of that moment. */
export type CurrentServer = PostgresServer | (() => PostgresServer);

export const serverNow = (server: CurrentServer): PostgresServer => (typeof server === 'function' ? server() : server);

/** What a connection is for, and its bounds; a bound that is absent does not exist. */
export interface SessionOptions {
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  connectTimeoutMs?: number;
  /** How long a statement may take at the server. */
  statementTimeoutMs?: number;
  /** How long this process waits for the result of a statement. */
  queryTimeoutMs?: number;
  /** How long a statement may wait for a lock. */
  lockTimeoutMs?: number;
  /** Further parameters of the session, by their names in PostgreSQL. */
  parameters?: Readonly<Record<string, string>>;
}

/**
 * Returns the options of every connection to PostgreSQL: of pools, single clients and MikroORM. It
 * states everything that says where a connection leads and as whom, because `pg` would take what is
 * absent from `PG…` of the environment.
 */
export function connectionOptions(server: PostgresServer, session: SessionOptions): PoolConfig {
  const { connectTimeoutMs, statementTimeoutMs, queryTimeoutMs, lockTimeoutMs, parameters = {} } = session;
  const settings = Object.entries(parameters).map(([name, value]) => `-c ${name}=${value}`);
  return {
    ...loginOptions(server),
    host: server.host,
    port: server.port,
    database: server.database,
    sslnegotiation: 'postgres',
    client_encoding: 'UTF8',
    application_name: session.applicationName,
    keepAlive: true,
    ...(settings.length > 0 && { options: settings.join(' ') }),
    ...(connectTimeoutMs !== undefined && { connectionTimeoutMillis: connectTimeoutMs }),
    ...(statementTimeoutMs !== undefined && { statement_timeout: statementTimeoutMs }),
    ...(queryTimeoutMs !== undefined && { query_timeout: queryTimeoutMs }),
    ...(lockTimeoutMs !== undefined && { lock_timeout: lockTimeoutMs }),
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
