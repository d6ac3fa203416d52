import { isIPv6 } from 'node:net';

interface Host {
  /** A name, an address (IPv6 without brackets), an absolute path (of a socket), or '' if absent. */
  host: string;
  port: number | null;
}

/** The parts of a URL that names a server, decoded. `host` and `port` are the first of several. */
export interface ConnectionUrl extends Host {
  scheme: string;
  user: string | null;
  password: string | null;
  /** The hosts after the first one. */
  others: readonly Host[];
  /** Without the slash before it; '' if absent. */
  path: string;
  parameters: ReadonlyMap<string, string>;
}

/**
 * A value that cannot be used. The message ends a sentence that begins with the setting's name, and
 * repeats nothing of the value.
 */
export class InvalidValueError extends Error {}

const oneHost = 'must name one host: several are not supported';

/** No part may contain a character that ends it; those of user and password are percent-encoded. */
const form =
  /^(?<scheme>[a-z]+):\/\/(?:(?<user>[^:@/?#\s]*)(?::(?<password>[^@/?#\s]*))?@)?(?<hosts>[^@/?#\s]*)(?:\/(?<path>[^?#\s]*))?(?:\?(?<query>[^#@\s]*))?$/;

const hostForm = /^(?<host>\[[^\]]*\]|[^:[\]]*)(?::(?<port>\d{1,5}))?$/;

/**
 * Returns the one reading of a URL of a server. No driver reads the text again, because each reads
 * it differently: `pg` takes `?host=`, MikroORM does not, and ioredis takes any option.
 *
 * @param example - the form that is expected, for the message.
 * @param takesSeveral - whether the URL may name several hosts, separated by commas.
 * @throws InvalidValueError
 */
export function parseConnectionUrl(
  text: string,
  schemes: readonly string[],
  example: string,
  takesSeveral = false,
): ConnectionUrl {
  const parts = form.exec(text)?.groups;
  const named = parts?.hosts?.split(',').map((host) => hostForm.exec(host)?.groups) ?? [];
  if (parts === undefined || !schemes.includes(parts.scheme ?? '') || named.includes(undefined))
    throw new InvalidValueError(`must be ${example}, with other characters percent-encoded`);
  const { scheme = '', user, password, path = '', query } = parts;
  const [first = { host: '', port: null }, ...others] = named.map((each) => ({
    host: readHost(each?.host ?? ''),
    port: each?.port === undefined ? null : readPort(each.port),
  }));
  if (others.length > 0 && !takesSeveral) throw new InvalidValueError(oneHost);
  return {
    scheme,
    user: user ? decode(user, 'user') : null,
    password: password ? decode(password, 'password') : null,
    ...first,
    others,
    path: decode(path, 'path'),
    parameters: readParameters(query),
  };
}

/** Returns a host without brackets and percent-encoding. @throws InvalidValueError */
export function readHost(text: string): string {
  const bracketed = /^\[(.*)\]$/.exec(text)?.[1];
  if (bracketed !== undefined) {
    if (isIPv6(bracketed) && !bracketed.includes('%')) return bracketed;
    throw new InvalidValueError('must have an IPv6 address in the brackets, without a zone');
  }
  const host = decode(text, 'host');
  if (host.includes(',')) throw new InvalidValueError(oneHost);
  if (host === '' || /^\/[^\0]+$/.test(host) || /^[\w.-]+$/.test(host)) return host;
  throw new InvalidValueError(
    'must have a host that is a name, an IPv4 address, an IPv6 address in brackets, or the path of a socket',
  );
}

/** Returns a host and a port as URLs and clients write them. */
export const hostAndPort = ({ host, port }: { host: string; port: number }): string =>
  `${isIPv6(host) ? `[${host}]` : host}:${port}`;

/** @throws InvalidValueError */
export function readPort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0;
  if (port >= 1 && port <= 65_535) return port;
  throw new InvalidValueError('must have a port from 1 to 65535');
}

/** @throws InvalidValueError for parameters that `known` does not name. */
export function rejectParameters({ parameters }: ConnectionUrl, known: readonly string[] = []): void {
  const unknown = [...parameters.keys()].filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  const names = unknown.map((name) => (/^\w{1,40}$/.test(name) ? name : 'one with another character')).join(', ');
  const read = known.length === 0 ? 'none is' : `only ${known.join(', ')} are`;
  throw new InvalidValueError(`has parameters that are not read (${names}): ${read}`);
}

function readParameters(query: string | undefined): Map<string, string> {
  const parameters = new Map<string, string>();
  for (const part of query?.split('&') ?? []) {
    if (part === '') continue;
    const [name = '', ...value] = part.split('=');
    const key = decode(name, 'parameters');
    if (parameters.has(key)) throw new InvalidValueError('has a parameter twice');
    parameters.set(key, decode(value.join('='), 'parameters'));
  }
  return parameters;
}

function decode(text: string, what: string): string {
  let decoded: string;
  try {
    decoded = decodeURIComponent(text);
  } catch {
    throw new InvalidValueError(`has a % in its ${what} that encodes no character; write it as %25`);
  }
  if (decoded.includes('\0')) throw new InvalidValueError(`has a zero byte in its ${what}`);
  return decoded;
}
