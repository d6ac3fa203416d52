import { hostAndPort, InvalidValueError, parseConnectionUrl, rejectParameters } from './connection-url.ts';

/** Where an OTLP/HTTP collector listens: one reading of a URL. */
export interface OtlpEndpoint {
  readonly protocol: 'otlp';
  /** A name or an address (IPv6 without brackets). */
  readonly host: string;
  readonly port: number;
  /** Below which `/v1/traces` and `/v1/logs` are; without a slash at either end. */
  readonly path: string;
  /** Null: plain text. The collector's certificate is verified against the system's authorities. */
  readonly tls: { readonly isVerified: true } | null;
}

const example = 'http://host:port/path or https://, with an IPv6 address in brackets';

/**
 * Returns the collector that an `http://` or `https://` URL names.
 *
 * @throws InvalidValueError
 */
export function parseOtlpEndpoint(text: string): OtlpEndpoint {
  const url = parseConnectionUrl(text, ['http', 'https'], example);
  rejectParameters(url);
  if (url.host === '' || url.host.startsWith('/')) throw new InvalidValueError('must name a host');
  if (url.user !== null || url.password !== null) throw new InvalidValueError('must have no user and no password');
  const isTls = url.scheme === 'https';
  return Object.freeze({
    protocol: 'otlp',
    host: url.host,
    port: url.port ?? (isTls ? 443 : 80),
    path: url.path.replace(/^\/+|\/+$/g, ''),
    tls: isTls ? Object.freeze({ isVerified: true }) : null,
  });
}

/** Returns the URL that a signal's records are sent to. */
export function buildOtlpUrl({ host, port, path, tls }: OtlpEndpoint, signal: 'traces' | 'logs'): string {
  const origin = `${tls === null ? 'http' : 'https'}://${hostAndPort({ host, port })}`;
  const base = path.split('/').map(encodeURIComponent).join('/');
  return `${origin}${base === '' ? '' : `/${base}`}/v1/${signal}`;
}
