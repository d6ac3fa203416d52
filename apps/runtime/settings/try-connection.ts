import type { Redis } from 'ioredis';
import { groupRoles, type LoginRole, readLoginRights } from '#domain/db/login-rights.ts';
import { connectionOptions, type PostgresServer } from '#domain/db/server.ts';
import { Session } from '#domain/db/session.ts';
import { type RedisServer, redisOptions } from './redis.ts';

const connectTimeoutMs = 2_000;
const anotherServer = 'names another server or database, which takes effect when the process restarts';

/** Returns what tries a new login of an app, at the same PostgreSQL server and database, by a connection. */
export const tryPostgres =
  (role: LoginRole) =>
  async (next: PostgresServer, old: PostgresServer): Promise<string | null> =>
    addressOf(next) === addressOf(old) ? tryLogin(next, role) : anotherServer;

/**
 * Returns why a PostgreSQL server cannot be used by an app, as the end of a sentence, or null: it
 * cannot be connected to, or the login lacks the rights of the app.
 */
export async function tryLogin(server: PostgresServer, role: LoginRole): Promise<string | null> {
  const bounds = { connectTimeoutMs, queryTimeoutMs: connectTimeoutMs };
  const session = new Session(connectionOptions(server, { applicationName: 'org-api-setting', ...bounds }));
  session.on('error', () => {}); // the failed connect reports it as well
  try {
    await session.connect();
    const { groups } = await readLoginRights(session);
    return groups.includes(groupRoles[role]) ? null : `names a login without the role ${groupRoles[role]}`;
  } catch (error) {
    return `cannot be used to connect to PostgreSQL (${codeOf(error)})`;
  } finally {
    session.end().catch(() => {}); // a silent server never answers it
  }
}

/** Tries a new login of the same Redis server and database by a connection. */
export async function tryRedis(next: RedisServer, old: RedisServer): Promise<string | null> {
  if (addressOf(next) !== addressOf(old)) return anotherServer;
  try {
    await askRedis(next, connectTimeoutMs, (redis) => redis.ping());
    return null;
  } catch (error) {
    return `cannot be used to connect to Redis (${codeOf(error)})`;
  }
}

/**
 * Asks a Redis server over a connection of its own, without a second try.
 *
 * @throws what prevents the connection, or else the error of `ask`
 */
export async function askRedis<T>(
  server: RedisServer,
  timeoutMs: number,
  ask: (redis: Redis) => Promise<T>,
): Promise<T> {
  const { Redis } = await import('ioredis');
  const redis = new Redis({
    ...redisOptions(server),
    lazyConnect: true,
    connectTimeout: timeoutMs,
    commandTimeout: timeoutMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  let failure: unknown = null;
  redis.on('error', (error: unknown) => {
    failure = error;
  });
  try {
    await redis.connect();
    return await ask(redis);
  } catch (error) {
    throw failure ?? error;
  } finally {
    redis.disconnect();
  }
}

/** Where a server is and how it is verified; the login and the files of TLS may change. */
function addressOf(server: PostgresServer | RedisServer): string {
  const { host, port, database, tls } = server;
  return JSON.stringify([host, port, database, tls?.isVerified]);
}

/** Returns SQLSTATE, Node's code, or the first word of a response of Redis, for example WRONGPASS. */
export function codeOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code === 'string') return code;
  return /^[A-Z]{2,}/.exec(String(message))?.[0] ?? 'no response';
}
