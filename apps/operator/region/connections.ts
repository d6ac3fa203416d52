import { isDeepStrictEqual } from 'node:util';
import type { CoreV1Api, V1Secret } from '@kubernetes/client-node';
import { Connection } from '@temporalio/client';
import type { Pool } from 'pg';
import { type Database, openDatabase } from '#domain/db/connect.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import { ValueRefused } from '#runtime/settings/connection-url.ts';
import { findPlaintext } from '#runtime/settings/plaintext.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
import { hostAndPort, parseTemporalAddress } from '#runtime/settings/temporal-address.ts';
import { connectionOptions } from '#workflows/connection.ts';
import { ReconcileFailed, type SecretRef } from '../controller/contract.ts';
import { statusOf } from '../kube/client.ts';
import type { Region } from '../resources.ts';

/** After how long a Secret is read again. A new value closes what was opened with the old one. */
const secretLifetimeMs = 300_000;
const connectTimeoutMs = 5_000;
const applicationName = 'org-api-operator';

/**
 * Opens the PostgreSQL and the Temporal that a Region names, once, from the Secrets that it names.
 * Values of Secrets stay in this process.
 */
export function createConnections(options: { api: CoreV1Api; namespace: string; allowPlaintext: string }) {
  const { api, namespace, allowPlaintext } = options;
  const secrets = new Map<string, { secret: V1Secret; at: number }>();
  let database: { server: PostgresServer; opened: Promise<Database> } | null = null;
  let temporal: { key: string; opened: Connection } | null = null;

  async function readSecret(name: string): Promise<Record<string, string>> {
    const known = secrets.get(name);
    if (known !== undefined && performance.now() - known.at < secretLifetimeMs) return known.secret.data ?? {};
    try {
      const secret = await api.readNamespacedSecret({ namespace, name });
      secrets.set(name, { secret, at: performance.now() });
      return secret.data ?? {};
    } catch (cause) {
      const status = statusOf(cause);
      if (status === 404) throw new ReconcileFailed('SecretMissing', `There is no Secret ${name}.`, { cause });
      if (status === 403)
        throw new ReconcileFailed('SecretForbidden', `The operator's Role does not allow it to read ${name}.`, {
          cause,
        });
      throw cause;
    }
  }

  /** @throws ReconcileFailed when the Secret or the key is missing. */
  async function readKey({ name, key }: SecretRef): Promise<string> {
    const encoded = (await readSecret(name))[key];
    if (encoded === undefined) throw new ReconcileFailed('SecretKeyMissing', `Secret ${name} has no key ${key}.`);
    return Buffer.from(encoded, 'base64').toString('utf8').trim();
  }

  /** Returns the server and login of a URL. @throws ReconcileFailed */
  async function readServer(ref: SecretRef): Promise<PostgresServer> {
    return parse(`Key ${ref.key} of Secret ${ref.name}`, await readKey(ref), parsePostgresUrl);
  }

  /** Returns a parsed value, whose server is then reached as the installation allows. */
  function parse<T>(name: string, text: string, parser: (text: string) => T, tls = false): T {
    const environment = { ALLOW_PLAINTEXT: allowPlaintext, TEMPORAL_TLS: String(tls) };
    try {
      const value = parser(text);
      const [problem] = findPlaintext({ [name]: value }, environment);
      if (problem !== undefined) throw new ReconcileFailed('PlaintextRefused', `${problem}.`);
      return value;
    } catch (error) {
      if (error instanceof ValueRefused) throw new ReconcileFailed('ValueRefused', `${name} ${error.message}.`);
      throw error;
    }
  }

  /** The address of a Region's Temporal, and a key that changes with it. @throws ReconcileFailed */
  async function serverOf({ spec: { temporal: spec } }: Region): Promise<{ key: string; server: TemporalServer }> {
    const address = parse('temporal.address', spec.address, parseTemporalAddress, spec.tls);
    const read = async (ref?: SecretRef) => (ref === undefined ? null : readKey(ref));
    const ca = await read(spec.caSecretRef);
    const cert = await read(spec.certificateSecretRef);
    const certKey = await read(spec.certificateKeySecretRef);
    const apiKey = await read(spec.apiKeySecretRef);
    const own = cert === null || certKey === null ? null : { cert, key: certKey };
    const server: TemporalServer = {
      address: hostAndPort(address),
      namespace: spec.namespace,
      tls: spec.tls ? { serverName: spec.tlsServerName ?? null, ca, own } : null,
      apiKey: apiKey === null ? null : () => apiKey,
    };
    return { key: JSON.stringify([spec, ca, cert, certKey, apiKey]), server };
  }

  return {
    readKey,
    /** The database of a Region. @throws ReconcileFailed */
    async openDatabase({ spec }: Region): Promise<Database> {
      const server = await readServer(spec.database.secretRef);
      if (database === null || !isDeepStrictEqual(database.server, server)) {
        const before = database;
        database = { server, opened: openDatabase({ server, applicationName, poolMax: 4 }) };
        await (await before?.opened)?.close();
      }
      return database.opened;
    },
    /** Runs `work` with a login that is opened for it alone. @throws ReconcileFailed */
    async withLogin<T>(ref: SecretRef, work: (pool: Pool) => Promise<T>): Promise<T> {
      const opened = await openDatabase({ server: await readServer(ref), applicationName, poolMax: 1 });
      try {
        return await work(opened.pool);
      } finally {
        await opened.close();
      }
    },
    serverOf,
    /** A connection to a Region's Temporal, opened by the first call. @throws ReconcileFailed */
    async openTemporal(region: Region): Promise<Connection> {
      const { key, server } = await serverOf(region);
      if (temporal?.key !== key) {
        const before = temporal;
        temporal = { key, opened: Connection.lazy({ ...connectionOptions(server), connectTimeout: connectTimeoutMs }) };
        await before?.opened.close();
      }
      return temporal.opened;
    },
    async close(): Promise<void> {
      await (await database?.opened)?.close();
      await temporal?.opened.close();
    },
  };
}

export type Connections = ReturnType<typeof createConnections>;
