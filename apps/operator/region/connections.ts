import type { CoreV1Api, V1Secret } from '@kubernetes/client-node';
import { Connection } from '@temporalio/client';
import type { Pool } from 'pg';
import { type Database, openDatabase } from '#domain/db/connect.ts';
import { findPlaintext } from '#runtime/settings/plaintext.ts';
import type { TemporalServer } from '#runtime/settings/temporal.ts';
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
  let database: { url: string; opened: Promise<Database> } | null = null;
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

  /** Returns the URL of a login. @throws ReconcileFailed */
  async function readUrl(ref: SecretRef): Promise<string> {
    const url = await readKey(ref);
    refusePlaintext('DATABASE_URL', url);
    return url;
  }

  function refusePlaintext(name: string, value: string, tls = false): void {
    const environment = { ALLOW_PLAINTEXT: allowPlaintext, TEMPORAL_TLS: String(tls) };
    const [problem] = findPlaintext({ [name]: value }, environment);
    if (problem !== undefined) throw new ReconcileFailed('PlaintextRefused', `${problem}.`);
  }

  /** The address of a Region's Temporal, and a key that changes with it. @throws ReconcileFailed */
  async function serverOf({ spec: { temporal: spec } }: Region): Promise<{ key: string; server: TemporalServer }> {
    refusePlaintext('TEMPORAL_ADDRESS', spec.address, spec.tls);
    const read = async (ref?: SecretRef) => (ref === undefined ? null : readKey(ref));
    const ca = await read(spec.caSecretRef);
    const cert = await read(spec.certificateSecretRef);
    const certKey = await read(spec.certificateKeySecretRef);
    const apiKey = await read(spec.apiKeySecretRef);
    const own = cert === null || certKey === null ? null : { cert, key: certKey };
    const server: TemporalServer = {
      address: spec.address,
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
      const url = await readUrl(spec.database.secretRef);
      if (database?.url !== url) {
        const before = database;
        database = { url, opened: openDatabase({ url, applicationName, poolMax: 4 }) };
        await (await before?.opened)?.close();
      }
      return database.opened;
    },
    /** Runs `work` with a login that is opened for it alone. @throws ReconcileFailed */
    async withLogin<T>(ref: SecretRef, work: (pool: Pool) => Promise<T>): Promise<T> {
      const opened = await openDatabase({ url: await readUrl(ref), applicationName, poolMax: 1 });
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
