import { InvalidValueError, readHost, readPort } from './connection-url.ts';

export interface TemporalAddress {
  readonly protocol: 'temporal';
  /** A name or an address (IPv6 without brackets). */
  readonly host: string;
  readonly port: number;
}

/**
 * Returns the address that `host:port` names.
 *
 * @throws InvalidValueError
 */
export function parseTemporalAddress(text: string): TemporalAddress {
  const [, host, port] = /^(\[[^\]]*\]|[^:[\]%/\s]+):(\d{1,5})$/.exec(text) ?? [];
  if (host === undefined || port === undefined)
    throw new InvalidValueError('must be host:port, with an IPv6 address in brackets');
  return Object.freeze({ protocol: 'temporal', host: readHost(host), port: readPort(port) });
}
