import type { RedisOptions } from 'ioredis';
import { hostAndPort, InvalidValueError, parseConnectionUrl, readHost, rejectParameters } from './connection-url.ts';

/** How a Redis server and a database of it are reached: one reading of a URL. */
export interface RedisServer {
  readonly protocol: 'redis';
  /** A name, an address (IPv6 without brackets), or the absolute path of a Unix socket. */
  readonly host: string;
  readonly port: number;
  readonly user: string | null;
  readonly password: string | null;
  readonly database: number;
  /** Null: plain text. The server's certificate is verified against the system's authorities. */
  readonly tls: { readonly isVerified: true } | null;
}

const example = 'redis://user:password@host:port/number, rediss:// or unix://user:password@/path';
const defaultPort = 6379;

/**
 * Returns the server that a `redis://`, `rediss://` or `unix://` URL names. What the URL says is
 * read here or rejected by its name.
 *
 * @throws InvalidValueError
 */
export function parseRedisUrl(text: string): RedisServer {
  const url = parseConnectionUrl(text, ['redis', 'rediss', 'unix'], example);
  const isSocket = url.scheme === 'unix';
  rejectParameters(url, isSocket ? ['db'] : []);
  if (isSocket && (url.host !== '' || url.port !== null || url.path === ''))
    throw new InvalidValueError('must have a path and no host with unix://');
  const host = isSocket ? readHost(encodeURIComponent(`/${url.path}`)) : url.host;
  if (host === '') throw new InvalidValueError('must name a host');
  if (!isSocket && host.startsWith('/')) throw new InvalidValueError('must be unix://path for a socket');
  if (url.user !== null && url.password === null)
    throw new InvalidValueError('must have a password with its user; a password alone is written :password@');
  return Object.freeze({
    protocol: 'redis',
    host,
    port: url.port ?? defaultPort,
    user: url.user,
    password: url.password,
    database: readNumber((isSocket ? url.parameters.get('db') : url.path) || '0'),
    tls: url.scheme === 'rediss' ? Object.freeze({ isVerified: true }) : null,
  });
}

function readNumber(text: string): number {
  if (/^\d{1,5}$/.test(text)) return Number(text);
  throw new InvalidValueError('must name its database by a number');
}

/** Returns a URL that reads as the server. */
export function redisUrlOf({ host, port, user, password, database, tls }: RedisServer): string {
  const login = password === null ? '' : `${encodeURIComponent(user ?? '')}:${encodeURIComponent(password)}@`;
  if (host.startsWith('/')) return `unix://${login}${host.split('/').map(encodeURIComponent).join('/')}?db=${database}`;
  const url = `${tls === null ? 'redis' : 'rediss'}://${login}${hostAndPort({ host, port })}`;
  return database === 0 ? url : `${url}/${database}`;
}

type ServerOptions = Pick<RedisOptions, 'path' | 'host' | 'port' | 'username' | 'password' | 'db' | 'tls'>;

/** Returns the options of ioredis that say where a connection leads and as whom. */
export function redisOptions({ host, port, user, password, database, tls }: RedisServer): ServerOptions {
  return {
    ...(host.startsWith('/') ? { path: host } : { host, port }),
    ...(user !== null && { username: user }),
    ...(password !== null && { password }),
    db: database,
    // `rejectUnauthorized` is set because a variable could turn it off.
    ...(tls !== null && { tls: { rejectUnauthorized: tls.isVerified } }),
  };
}
