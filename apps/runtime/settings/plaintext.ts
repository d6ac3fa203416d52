import { isIPv4 } from 'node:net';
import { parseIntoClientConfig } from 'pg-connection-string';

/** Servers whose connections carry keys, people's names or families' records. */
const servers = ['postgresql', 'redis', 'temporal'] as const;
type Server = (typeof servers)[number];

const remedies: Record<Server, string> = {
  postgresql: 'add ?sslmode=verify-full to the URL',
  redis: 'use rediss://',
  temporal: 'set TEMPORAL_TLS=true',
};

/**
 * Finds settings that would reach a server on another machine in plain text, one sentence each,
 * without their values. `ALLOW_PLAINTEXT` names the servers that may be reached so, for example
 * `redis,temporal` where a service mesh encrypts.
 */
export function findPlaintext(
  values: Readonly<Record<string, string>>,
  environment: Readonly<Record<string, string | undefined>>,
): string[] {
  const allowed = (environment.ALLOW_PLAINTEXT ?? '').split(',').map((name) => name.trim());
  if (allowed.some((name) => name !== '' && !servers.includes(name as Server)))
    return [`ALLOW_PLAINTEXT: must be names separated by commas, of ${servers.join(', ')}`];
  return Object.entries(values).flatMap(([name, value]) => {
    const server = serverOf(name);
    if (server === null || allowed.includes(server) || !isPlaintext(server, value, environment.TEMPORAL_TLS)) return [];
    return [
      `${name}: reaches another machine without TLS: ${remedies[server]}, or allow it with ALLOW_PLAINTEXT=${server}`,
    ];
  });
}

function serverOf(name: string): Server | null {
  if (name === 'DATABASE_URL' || name.endsWith('_DATABASE_URL')) return 'postgresql';
  if (name === 'REDIS_URL') return 'redis';
  return name === 'TEMPORAL_ADDRESS' ? 'temporal' : null;
}

function isPlaintext(server: Server, value: string, temporalTls: string | undefined): boolean {
  if (server === 'temporal') return temporalTls !== 'true' && !isThisMachine(value.replace(/:\d+$/, ''));
  try {
    if (server === 'redis') {
      const { protocol, hostname } = new URL(value);
      return protocol === 'redis:' && !isThisMachine(hostname);
    }
    // Parsed by the driver, which knows sslmode and a host given as a parameter.
    const { ssl, host } = parseIntoClientConfig(value);
    return !ssl && !isThisMachine(host ?? '');
  } catch {
    return false; // malformed, or a certificate's file is missing: the schema or the driver reports it
  }
}

/** An empty host is not this machine: drivers then read the environment. */
function isThisMachine(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, '$1').toLowerCase();
  return name === 'localhost' || name === '::1' || name.startsWith('/') || (isIPv4(name) && name.startsWith('127.'));
}
