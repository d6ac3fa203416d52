import type { Region } from '#domain/contract/regions.ts';
import { PrimaryConnection } from '#domain/db/driver/primary-connection.ts';
import { groupRoles, type LoginRole, readLoginRights } from '#domain/db/login-rights.ts';
import { connectionOptions, type PostgresServer } from '#domain/db/server.ts';
import type { RedisServer } from './redis.ts';

const connectTimeoutMs = 2_000;
const anotherServer = 'names another server or database, which takes effect when the process restarts';

/** Returns what tries a new login of an app, at the same PostgreSQL server and database, by a connection. */
export const tryPostgres =
  (role: LoginRole) =>
  async (next: PostgresServer, old: PostgresServer): Promise<string | null> =>
    describeAddress(next) === describeAddress(old) ? tryLogin(next, role) : anotherServer;

/**
 * Returns why a PostgreSQL server cannot be used by an app, as the end of a sentence, or null: it
 * cannot be connected to, or the login lacks the rights of the app.
 */
export async function tryLogin(server: PostgresServer, role: LoginRole): Promise<string | null> {
  const bounds = { connectTimeoutMs, queryTimeoutMs: connectTimeoutMs };
  const connection = new PrimaryConnection(
    connectionOptions(server, { applicationName: 'org-api-setting', ...bounds }),
  );
  try {
    await connection.connect();
    const { groups } = await readLoginRights(connection);
    return groups.includes(groupRoles[role]) ? null : `names a login without the role ${groupRoles[role]}`;
  } catch (error) {
    return `cannot be used to connect to PostgreSQL (${getErrorCode(error)})`;
  } finally {
    connection.end().catch(() => {}); // a silent server never answers it
  }
}

/** Tries a new login of the same Redis by a call as the limiter makes them. */
export async function tryRedis(next: RedisServer, old: RedisServer, region: Region): Promise<string | null> {
  if (describeAddress(next) !== describeAddress(old)) return anotherServer;
  const { tryRedisWindow } = await import('../try-redis.ts');
  try {
    await tryRedisWindow({ server: next, region, timeoutMs: connectTimeoutMs }, async () => {});
    return null;
  } catch (error) {
    return `cannot be used to connect to Redis (${getErrorCode(error)})`;
  }
}

/** Where a server is and how it is verified; the login and the files of TLS may change. */
function describeAddress(server: PostgresServer | RedisServer): string {
  const { host, port, database, tls } = server;
  const redis = server.protocol === 'redis' ? [server.others, server.isCluster, server.sentinel?.name] : [];
  return JSON.stringify([host, port, database, tls?.isVerified, ...redis]);
}

/** Returns SQLSTATE, Node's code, or the first word of a response of Redis, for example WRONGPASS. */
export function getErrorCode(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === 'string') return code;
  return /^[A-Z]{2,}/.exec(String(message))?.[0] ?? 'no response';
}
