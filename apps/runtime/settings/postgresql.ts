import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';
import { userInfo } from 'node:os';
import type { PemFile, PostgresServer, PostgresTls } from '#domain/db/server.ts';
import {
  type ConnectionUrl,
  InvalidValueError,
  parseConnectionUrl,
  readHost,
  readPort,
  rejectParameters,
} from './connection-url.ts';

const example = 'postgresql://user:password@host:port/database';
const read = ['host', 'port', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey'] as const;
const defaultPort = 5432;

/**
 * Returns the server that a `postgresql://` URL names. What the URL says is read here or rejected
 * by its name.
 *
 * @throws InvalidValueError
 */
export function parsePostgresUrl(text: string): PostgresServer {
  const url = parseConnectionUrl(text, ['postgresql', 'postgres'], example);
  rejectParameters(url, read);
  const host = getHost(url);
  if (url.user === null && url.password !== null) throw new InvalidValueError('must have a user with its password');
  if (url.path === '') throw new InvalidValueError('must name a database');
  return Object.freeze({
    protocol: 'postgresql',
    host,
    port: getPort(url),
    database: url.path,
    user: url.user ?? findProcessUser(),
    password: url.password,
    tls: findTls(url, host),
  });
}

/** Returns a URL that reads as the server. */
export function formatPostgresUrl(server: PostgresServer): string {
  const { user, password, host, port, database, tls } = server;
  const login = [user, ...(password === null ? [] : [password])].map(encodeURIComponent).join(':');
  const url = `postgresql://${login}@${isIPv6(host) ? `[${host}]` : encodeURIComponent(host)}:${port}/`;
  const parameters = Object.entries({
    sslmode: tls === null ? undefined : tls.isVerified ? 'verify-full' : 'require',
    sslrootcert: tls?.ca?.file,
    sslcert: tls?.own?.certificate.file,
    sslkey: tls?.own?.key.file,
  }).flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`]));
  return `${url}${encodeURIComponent(database)}${parameters.length > 0 ? `?${parameters.join('&')}` : ''}`;
}

/** The host of the authority or, when that has none, of the parameter. */
function getHost({ host, parameters }: ConnectionUrl): string {
  const parameter = parameters.get('host');
  if (host !== '' && parameter !== undefined)
    throw new InvalidValueError('names a host twice: before its path and in the parameter host');
  // In a parameter, an IPv6 address has no brackets.
  const given = parameter?.includes(':') ? `[${parameter}]` : encodeURIComponent(parameter ?? '');
  const found = parameter === undefined ? host : readHost(given);
  if (found === '') throw new InvalidValueError('must name a host');
  return found;
}

function getPort({ port, parameters }: ConnectionUrl): number {
  const parameter = parameters.get('port');
  if (parameter === undefined) return port ?? defaultPort;
  if (port !== null) throw new InvalidValueError('names a port twice: before its path and in the parameter port');
  return readPort(parameter);
}

/** As in libpq, a login that is not named is that of the operating system. */
function findProcessUser(): string {
  try {
    return userInfo().username;
  } catch {
    throw new InvalidValueError('must name a user, because the user of this process has no name');
  }
}

/**
 * Plain text: no `sslmode`, `disable`, and `allow` and `prefer`, which may end in it. `require` and
 * `no-verify` encrypt for a server that may be any. Only `verify-full` counts as TLS.
 */
function findTls({ parameters }: ConnectionUrl, host: string): PostgresTls | null {
  const mode = parameters.get('sslmode') ?? 'disable';
  const files = ['sslrootcert', 'sslcert', 'sslkey'].filter((name) => parameters.has(name));
  if (['disable', 'allow', 'prefer'].includes(mode)) {
    if (files.length > 0) throw new InvalidValueError(`must have sslmode=verify-full with ${files.join(', ')}`);
    return null;
  }
  if (!['require', 'no-verify', 'verify-full'].includes(mode))
    throw new InvalidValueError(
      'must have an sslmode that is verify-full, require, no-verify, prefer, allow or disable',
    );
  if (host.startsWith('/')) throw new InvalidValueError('must have no sslmode with a Unix socket');
  const isVerified = mode === 'verify-full';
  const [ca, cert, key] = ['sslrootcert', 'sslcert', 'sslkey'].map((name) => parameters.get(name));
  if (ca !== undefined && !isVerified) throw new InvalidValueError('must have sslmode=verify-full with sslrootcert');
  if ((cert === undefined) !== (key === undefined))
    throw new InvalidValueError('must have sslcert and sslkey, or neither');
  return Object.freeze({
    isVerified,
    ca: ca === undefined || ca === 'system' ? null : readPem('sslrootcert', ca, (pem) => new X509Certificate(pem)),
    own:
      cert === undefined || key === undefined
        ? null
        : Object.freeze({
            certificate: readPem('sslcert', cert, (pem) => new X509Certificate(pem)),
            key: readPem('sslkey', key, createPrivateKey),
          }),
  });
}

function readPem(name: string, file: string, parse: (text: string) => unknown): PemFile {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new InvalidValueError(`has an ${name} whose file cannot be read (${code ?? 'unknown reason'})`);
  }
  try {
    parse(text);
  } catch {
    throw new InvalidValueError(
      `has an ${name} whose file is not ${name === 'sslkey' ? 'a private key' : 'a certificate'} in PEM`,
    );
  }
  return Object.freeze({ file, text });
}
