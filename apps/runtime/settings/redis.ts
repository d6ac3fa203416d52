import type { ClusterOptions, RedisOptions } from 'ioredis';
import {
  type ConnectionUrl,
  hostAndPort,
  InvalidValueError,
  parseConnectionUrl,
  readHost,
  rejectParameters,
} from './connection-url.ts';

/** Where a process of Redis listens. */
interface RedisAddress {
  /** A name, an address (IPv6 without brackets), or the absolute path of a Unix socket. */
  readonly host: string;
  readonly port: number;
}

/** How Redis and a database of it are reached: one reading of a URL. `host` and `port` are the first of several. */
export interface RedisServer extends RedisAddress {
  readonly protocol: 'redis';
  /** More nodes of the cluster, or more sentinels; any of them that answers names the others. */
  readonly others: readonly RedisAddress[];
  readonly isCluster: boolean;
  /** Whom to ask for the primary's address: `host` and `others` are sentinels. Null: `host` is Redis. */
  readonly sentinel: RedisSentinel | null;
  readonly user: string | null;
  readonly password: string | null;
  readonly database: number;
  /** Null: plain text. The server's certificate is verified against the system's authorities. */
  readonly tls: { readonly isVerified: true } | null;
}

interface RedisSentinel {
  /** The name that the sentinels have for the primary. */
  readonly name: string;
  /** The login of the sentinels, beside that of Redis. */
  readonly user: string | null;
  readonly password: string | null;
}

const example = 'redis://user:password@host:port/number, rediss:// or unix://user:password@/path';
const defaultPort = 6379;
const defaultSentinelPort = 26_379;

/**
 * Returns the server that a `redis://`, `rediss://` or `unix://` URL names. What the URL says is
 * read here or rejected by its name.
 *
 * @throws InvalidValueError
 */
export function parseRedisUrl(text: string): RedisServer {
  const url = parseConnectionUrl(text, ['redis', 'rediss', 'unix'], example, true);
  const isSocket = url.scheme === 'unix';
  const { parameters } = url;
  rejectParameters(url, isSocket ? ['db'] : ['cluster', 'sentinel', 'sentinel_user', 'sentinel_password']);
  const isCluster = readCluster(parameters.get('cluster'));
  const sentinel = readSentinel(parameters);
  if (isCluster && sentinel !== null) throw new InvalidValueError('must have cluster or sentinel, and not both');
  const [first, ...others] = isSocket ? [getSocket(url)] : readAddresses(url, sentinel);
  if (others.length > 0 && !isCluster && sentinel === null)
    throw new InvalidValueError('must name one host, or say what several are: ?cluster=true or ?sentinel=NAME');
  if (url.user !== null && url.password === null)
    throw new InvalidValueError('must have a password with its user; a password alone is written :password@');
  const database = readNumber((isSocket ? parameters.get('db') : url.path) || '0');
  if (isCluster && database !== 0) throw new InvalidValueError('must have no number with cluster=true');
  return Object.freeze({
    protocol: 'redis',
    ...first,
    others: Object.freeze(others),
    isCluster,
    sentinel,
    user: url.user,
    password: url.password,
    database,
    tls: url.scheme === 'rediss' ? Object.freeze({ isVerified: true }) : null,
  });
}

function getSocket({ host, port, others, path }: ConnectionUrl): RedisAddress {
  if (host !== '' || port !== null || others.length > 0 || path === '')
    throw new InvalidValueError('must have a path and no host with unix://');
  return { host: readHost(encodeURIComponent(`/${path}`)), port: defaultPort };
}

function readAddresses(url: ConnectionUrl, sentinel: RedisSentinel | null): [RedisAddress, ...RedisAddress[]] {
  const toAddress = ({ host, port }: Pick<ConnectionUrl, 'host' | 'port'>): RedisAddress => {
    if (host === '') throw new InvalidValueError('must name a host');
    if (host.startsWith('/')) throw new InvalidValueError('must be unix://path for a socket');
    return Object.freeze({ host, port: port ?? (sentinel === null ? defaultPort : defaultSentinelPort) });
  };
  return [toAddress(url), ...url.others.map(toAddress)];
}

function readNumber(text: string): number {
  if (/^\d{1,5}$/.test(text)) return Number(text);
  throw new InvalidValueError('must name its database by a number');
}

function readCluster(text: string | undefined): boolean {
  if (text === undefined || text === 'true') return text === 'true';
  throw new InvalidValueError('must have cluster=true, or no cluster');
}

function readSentinel(parameters: ReadonlyMap<string, string>): RedisSentinel | null {
  const [name, user = null, password = null] = ['sentinel', 'sentinel_user', 'sentinel_password'].map((parameter) =>
    parameters.get(parameter),
  );
  if (name === undefined && user === null && password === null) return null;
  if (!name) throw new InvalidValueError('must have the name of the primary in sentinel');
  if (user !== null && password === null) throw new InvalidValueError('must have sentinel_password with sentinel_user');
  return Object.freeze({ name, user, password });
}

/** Returns a URL that reads as the server. */
export function formatRedisUrl(server: RedisServer): string {
  const { host, others, isCluster, sentinel, user, password, database, tls } = server;
  const login = password === null ? '' : `${encodeURIComponent(user ?? '')}:${encodeURIComponent(password)}@`;
  if (host.startsWith('/')) return `unix://${login}${host.split('/').map(encodeURIComponent).join('/')}?db=${database}`;
  const hosts = [server, ...others].map(hostAndPort).join(',');
  const parameters = Object.entries({
    cluster: isCluster ? 'true' : null,
    sentinel: sentinel?.name,
    sentinel_user: sentinel?.user,
    sentinel_password: sentinel?.password,
  }).flatMap(([name, value]) => (value ? [`${name}=${encodeURIComponent(value)}`] : []));
  const query = parameters.length === 0 ? '' : `?${parameters.join('&')}`;
  const number = database === 0 ? '' : `/${database}`;
  return `${tls === null ? 'redis' : 'rediss'}://${login}${hosts}${number}${query}`;
}

type ServerOptions = Pick<
  RedisOptions,
  'path' | 'host' | 'port' | 'username' | 'password' | 'db' | 'tls' | keyof SentinelOptions
>;
type SentinelOptions = Pick<
  RedisOptions,
  'sentinels' | 'name' | 'sentinelUsername' | 'sentinelPassword' | 'sentinelTLS' | 'enableTLSForSentinelMode'
>;

/** Returns the options of ioredis that say where a connection leads and as whom; not for a cluster. */
export function redisOptions(server: RedisServer): ServerOptions {
  const { host, port, sentinel, database } = server;
  const tls = tlsOptions(server);
  return {
    ...(sentinel === null && (host.startsWith('/') ? { path: host } : { host, port })),
    ...(sentinel !== null && sentinelOptions(server, sentinel)),
    ...loginOptions(server),
    db: database,
    ...(tls !== null && { tls }),
  };
}

function sentinelOptions(server: RedisServer, { name, user, password }: RedisSentinel): SentinelOptions {
  const tls = tlsOptions(server);
  return {
    sentinels: [{ host: server.host, port: server.port }, ...server.others],
    name,
    ...(user !== null && { sentinelUsername: user }),
    ...(password !== null && { sentinelPassword: password }),
    ...(tls !== null && { sentinelTLS: tls, enableTLSForSentinelMode: true }),
  };
}

/** The same for a cluster: its nodes, and the options with those of each connection. */
export function clusterOptions(server: RedisServer) {
  const { host, port, others } = server;
  const tls = tlsOptions(server);
  return {
    nodes: [{ host, port }, ...others],
    options: {
      // A certificate has the name of its node, not the address.
      dnsLookup: ((name, callback) => callback(null, name)) satisfies ClusterOptions['dnsLookup'],
      redisOptions: { ...loginOptions(server), ...(tls !== null && { tls }) },
    },
  };
}

const loginOptions = ({ user, password }: RedisServer): Pick<RedisOptions, 'username' | 'password'> => ({
  ...(user !== null && { username: user }),
  ...(password !== null && { password }),
});

/** `rejectUnauthorized` is set because a variable could turn it off. */
const tlsOptions = ({ tls }: RedisServer) => (tls === null ? null : { rejectUnauthorized: tls.isVerified });
