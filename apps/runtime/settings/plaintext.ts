import { isIPv4 } from 'node:net';

/** Servers whose connections carry keys, people's names or families' records. */
const protocols = ['postgresql', 'redis', 'temporal'] as const;

/** What the settings of servers are parsed into; Temporal's TLS is a setting of its own. */
interface Server {
  protocol: (typeof protocols)[number];
  host: string;
  /** More of its nodes. */
  others?: readonly { host: string }[];
  tls?: { isVerified: boolean } | null;
}

const remedies: Record<Server['protocol'], string> = {
  postgresql: 'add ?sslmode=verify-full to the URL',
  redis: 'use rediss://',
  temporal: 'set TEMPORAL_TLS=true',
};

/**
 * Finds settings that would reach a server on another machine without verified TLS, one sentence
 * each, without their values. `ALLOW_PLAINTEXT` names the servers that may be reached so, for
 * example `redis,temporal` where a service mesh encrypts.
 *
 * @param values - parsed settings by name.
 */
export function findPlaintext(
  values: Readonly<Record<string, unknown>>,
  environment: Readonly<Record<string, string | undefined>>,
): string[] {
  const allowed = (environment.ALLOW_PLAINTEXT ?? '').split(',').map((name) => name.trim());
  if (allowed.some((name) => name !== '' && !protocols.some((protocol) => protocol === name)))
    return [`ALLOW_PLAINTEXT: must be names separated by commas, of ${protocols.join(', ')}`];
  return Object.entries(values).flatMap(([name, value]) => {
    if (!isServer(value) || allowed.includes(value.protocol)) return [];
    if ([value, ...(value.others ?? [])].every(({ host }) => isThisMachine(host))) return [];
    if (value.protocol === 'temporal' ? environment.TEMPORAL_TLS === 'true' : value.tls?.isVerified) return [];
    const how = value.tls ? 'TLS that verifies it' : 'TLS';
    return [
      `${name}: reaches another machine without ${how}: ${remedies[value.protocol]}, ` +
        `or allow it (allowPlaintext of the chart) with ALLOW_PLAINTEXT=${value.protocol}`,
    ];
  });
}

const isServer = (value: unknown): value is Server =>
  typeof value === 'object' && value !== null && protocols.some((name) => name === (value as Server).protocol);

/** Returns whether a host, as the drivers get it, cannot be another machine. */
function isThisMachine(host: string): boolean {
  const name = host.toLowerCase();
  return name === 'localhost' || name === '::1' || name.startsWith('/') || (isIPv4(name) && name.startsWith('127.'));
}
