import { createPrivateKey, X509Certificate } from 'node:crypto';
import { z } from 'zod';
import { InvalidSettingsError } from '../errors.ts';
import { hostAndPort } from './connection-url.ts';
import { canParse, pemCertificate } from './pem.ts';
import type { TemporalAddress } from './temporal-address.ts';

export interface TemporalServer {
  /** `host:port`. */
  address: string;
  namespace: string;
  /** Null or absent: plain text. */
  tls?: TemporalTls | null;
  /** Looked up at each use, because its file may change; null or absent: none. */
  apiKey?: (() => string) | null;
}

export interface TemporalTls {
  /** The name in the server's certificate; null: the host of the address. */
  serverName: string | null;
  /** PEM of the only trusted authorities; null: those of the system. */
  ca: string | null;
  /** PEM of the client certificate and its key; null: none. */
  own: { cert: string; key: string } | null;
}

/** The settings of each app that connects to Temporal, besides address and namespace. */
export const temporalAccess = {
  TEMPORAL_TLS: z
    .enum(['true', 'false'], { error: 'must be true or false' })
    .optional()
    .meta({ description: 'Whether Temporal is reached by TLS.', shown: 'false' }),
  TEMPORAL_TLS_SERVER_NAME: z
    .string()
    .regex(/^[a-z\d]([a-z\d.-]*[a-z\d])?$/i, 'must be a host name, without a port')
    .optional()
    .meta({ description: 'Name that Temporal’s certificate is for.', shown: 'the host of the address' }),
  TEMPORAL_TLS_CA: pemCertificate
    .optional()
    .meta({ description: 'PEM of the only authorities that Temporal’s certificate may be of.', shown: 'the system’s' }),
  TEMPORAL_TLS_CERT: pemCertificate
    .optional()
    .describe('PEM of the certificate that Temporal asks for (mutual TLS). Read at the start.'),
  TEMPORAL_TLS_KEY: z
    .string()
    .refine((text) => canParse(() => createPrivateKey(text)), { error: 'must be a private key in PEM, unencrypted' })
    .optional()
    .describe('PEM of the private key of `TEMPORAL_TLS_CERT`, unencrypted. Read at the start.'),
  TEMPORAL_API_KEY: z
    .string()
    .regex(/^[\x21-\x7e]+$/, 'must be one word without spaces')
    .optional()
    .describe('Temporal’s API key. Only with TLS.'),
};

const Access = z.object(temporalAccess);

/** Settings of Temporal, each well-formed by itself. */
type Parsed = z.output<typeof Access> & { TEMPORAL_ADDRESS?: TemporalAddress | undefined };

/**
 * Returns the server that the settings describe, or null without an address. `apiKeyNow` looks the
 * key up when it may change while the app runs.
 *
 * @throws InvalidSettingsError when they are incomplete or contradict each other: nothing is ever
 * sent with less protection than was configured.
 */
export function findTemporalServer<S extends Parsed>(
  s: S,
  namespace: string,
  apiKeyNow?: () => string | undefined,
): TemporalServer | (S extends { TEMPORAL_ADDRESS: TemporalAddress } ? never : null);
export function findTemporalServer(
  s: Parsed,
  namespace: string,
  apiKeyNow?: () => string | undefined,
): TemporalServer | null {
  const problems = findContradictions(s);
  if (problems.length > 0) throw new InvalidSettingsError(problems);
  if (s.TEMPORAL_ADDRESS === undefined) return null;
  const { TEMPORAL_TLS_CERT: cert, TEMPORAL_TLS_KEY: key, TEMPORAL_API_KEY: apiKey } = s;
  const tls: TemporalTls = {
    serverName: s.TEMPORAL_TLS_SERVER_NAME ?? null,
    ca: s.TEMPORAL_TLS_CA ?? null,
    own: cert === undefined || key === undefined ? null : { cert, key },
  };
  return {
    address: hostAndPort(s.TEMPORAL_ADDRESS),
    namespace,
    tls: s.TEMPORAL_TLS === 'true' ? tls : null,
    apiKey: apiKey === undefined ? null : () => apiKeyNow?.() ?? apiKey,
  };
}

function findContradictions(s: Parsed): string[] {
  const { TEMPORAL_TLS_CERT: cert, TEMPORAL_TLS_KEY: key } = s;
  const problems: string[] = [];
  const set = (Object.keys(temporalAccess) as (keyof typeof temporalAccess)[]).filter((name) => s[name] !== undefined);
  if (s.TEMPORAL_ADDRESS === undefined && set.length > 0)
    problems.push(`TEMPORAL_ADDRESS is missing: host:port of Temporal, as ${set.join(', ')} is set`);
  const needingTls = set.filter((name) => name !== 'TEMPORAL_TLS');
  if (s.TEMPORAL_TLS !== 'true' && needingTls.length > 0)
    problems.push(
      `TEMPORAL_TLS must be true with ${needingTls.join(', ')}: otherwise the connection to Temporal is in plain text`,
    );
  if (cert !== undefined && key === undefined)
    problems.push('TEMPORAL_TLS_KEY is missing: the private key of TEMPORAL_TLS_CERT');
  if (key !== undefined && cert === undefined)
    problems.push('TEMPORAL_TLS_CERT is missing: the certificate of TEMPORAL_TLS_KEY');
  if (cert !== undefined && key !== undefined && !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    problems.push('TEMPORAL_TLS_KEY is not the private key of TEMPORAL_TLS_CERT');
  return problems;
}
