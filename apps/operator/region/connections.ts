import type { CoreV1Api, V1Secret } from '@kubernetes/client-node';
import { Connection } from '@temporalio/client';
import { z } from 'zod';
import type { Database } from '#domain/db/database.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import { openDatabase } from '#domain/open-database.ts';
import { InvalidSettingsError } from '#runtime/errors.ts';
import { findSignal } from '#runtime/flow/cancellation.ts';
import { readSettings } from '#runtime/settings/read.ts';
import { findTemporalServer, type TemporalServer, temporalAccess } from '#runtime/settings/temporal.ts';
import { TriedValue, type TryValue } from '#runtime/settings/tried-value.ts';
import { tryLogin } from '#runtime/settings/try-connection.ts';
import { databaseUrl, temporalAddress } from '#runtime/settings/types.ts';
import type { SettingReport } from '#runtime/settings/watch.ts';
import { connectionOptions, tryTemporal } from '#workflows/connection.ts';
import { findStatus } from '../kube/client.ts';
import { ReconcileError, type SecretRef } from '../kube/custom-resource.ts';
import type { Region } from '../kube/resources.ts';

const connectTimeoutMs = 5_000;
const applicationName = 'org-api-operator';
/** After how long a Secret is read again. A new value closes what the old one opened. */
const secretLifetimeMs = 300_000;

const TemporalSettings = z.object({ TEMPORAL_ADDRESS: temporalAddress, ...temporalAccess });

/** What says which server gets an API key: keys of the Secret that has it, and the settings that a Region gives. */
const serverOfApiKey = [
  ['TEMPORAL_ADDRESS', 'TEMPORAL_ADDRESS'],
  ['TEMPORAL_TLS_SERVER_NAME', 'TEMPORAL_TLS_SERVER_NAME'],
  ['ca.crt', 'TEMPORAL_TLS_CA'],
] as const;

/** What is read again from Secrets, by the name in the log and in the metrics. */
export const settingNames = ['DATABASE_URL', 'TEMPORAL_ADDRESS', 'WEBHOOK_SECRET_KEYS'] as const;
type SettingName = (typeof settingNames)[number];

interface ReadValue<T> {
  /** Changes when the Region declares something else. */
  identity: string;
  text: string;
  /** @throws InvalidSettingsError */
  parse: (text: string) => T;
  tryValue?: TryValue<T>;
}

/**
 * Opens the PostgreSQL and the Temporal that a Region names, once, from the Secrets that it names.
 * Values of Secrets stay in this process.
 */
export class Connections {
  readonly #api: CoreV1Api;
  readonly #namespace: string;
  readonly #report: SettingReport;
  /** Returns milliseconds, by which Secrets age. */
  readonly #now: () => number;
  readonly #secrets = new Map<string, { secret: V1Secret; at: number }>();
  readonly #values = new Map<SettingName, { identity: string; value: TriedValue<unknown> }>();
  #database: { server: PostgresServer; opened: Promise<Database> } | null = null;
  #temporal: { key: string; opened: Connection } | null = null;

  constructor(options: { api: CoreV1Api; namespace: string; report: SettingReport; now?: () => number }) {
    this.#api = options.api;
    this.#namespace = options.namespace;
    this.#report = options.report;
    this.#now = options.now ?? (() => performance.now());
  }

  async #readSecret(name: string): Promise<Record<string, string>> {
    const known = this.#secrets.get(name);
    if (known !== undefined && this.#now() - known.at < secretLifetimeMs) return known.secret.data ?? {};
    try {
      const secret = await this.#api.readNamespacedSecret({ namespace: this.#namespace, name });
      this.#secrets.set(name, { secret, at: this.#now() });
      return secret.data ?? {};
    } catch (cause) {
      const status = findStatus(cause);
      if (status === 404) throw new ReconcileError('SecretMissing', `There is no Secret ${name}.`, { cause });
      if (status === 403)
        throw new ReconcileError('SecretForbidden', `The operator's Role does not allow it to read ${name}.`, {
          cause,
        });
      throw cause;
    }
  }

  /** @throws ReconcileError when the Secret or the key is missing. */
  async readKey(ref: SecretRef, key: string): Promise<string> {
    const text = await this.#findKey(ref, key);
    if (text === undefined) throw new ReconcileError('SecretKeyMissing', `Secret ${ref.name} has no key ${key}.`);
    return text;
  }

  /** Returns undefined without that key. @throws ReconcileError when the Secret is missing. */
  async #findKey({ name }: SecretRef, key: string): Promise<string | undefined> {
    const encoded = (await this.#readSecret(name))[key];
    return encoded && Buffer.from(encoded, 'base64').toString('utf8').trim();
  }

  /**
   * Returns the value of a text that may change, as that of the last text that could be used. A new
   * `identity` says that the Region declares something else, and starts again.
   *
   * @throws ReconcileError when no text could be used so far.
   */
  async readValue<T>(name: SettingName, options: ReadValue<T>): Promise<TriedValue<T>> {
    const { identity, text, parse, tryValue } = options;
    const known = this.#values.get(name);
    if (known?.identity === identity) {
      await known.value.offer(text, {
        onChanged: () => this.#report.onChanged(name),
        onRejected: (reason) => this.#report.onRejected(name, reason),
      });
      return known.value as TriedValue<T>;
    }
    const value = new TriedValue(
      text,
      parseOrFail(() => parse(text)),
      { parse, tryValue },
    );
    this.#values.set(name, { identity, value: value as TriedValue<unknown> });
    this.#report.onRead(name);
    return value;
  }

  /** Drops a value that the Region does not declare any more. */
  forget(name: SettingName): void {
    if (this.#values.delete(name)) this.#report.onForgotten(name);
  }

  /** The Temporal of a Region, and a key that changes with it. @throws ReconcileError */
  async readTemporalServer({
    spec: { temporal: spec, ...region },
  }: Region): Promise<{ key: string; server: TemporalServer }> {
    const texts: Record<string, string | undefined> = {
      TEMPORAL_ADDRESS: spec.address,
      TEMPORAL_TLS: String(spec.tls),
      TEMPORAL_TLS_SERVER_NAME: spec.tlsServerName,
      ALLOW_PLAINTEXT: formatPlaintext(region),
    };
    const references = [
      ['TEMPORAL_TLS_CA', spec.caSecretRef, 'ca.crt'],
      ['TEMPORAL_TLS_CERT', spec.certificateSecretRef, 'tls.crt'],
      ['TEMPORAL_TLS_KEY', spec.certificateKeySecretRef, 'tls.key'],
      ['TEMPORAL_API_KEY', spec.apiKeySecretRef, 'TEMPORAL_API_KEY'],
    ] as const;
    for (const [setting, ref, key] of references) if (ref !== undefined) texts[setting] = await this.readKey(ref, key);
    await this.#assertApiKeyFor(spec.apiKeySecretRef, texts);
    const { text, value } = await this.readValue<TemporalServer>('TEMPORAL_ADDRESS', {
      identity: JSON.stringify([spec, region.allowPlaintext]),
      text: JSON.stringify(texts),
      parse: (json) => findTemporalServer(readSettings(TemporalSettings, JSON.parse(json)), spec.namespace),
      tryValue: tryTemporal,
    });
    return { key: JSON.stringify([spec, text]), server: value };
  }

  /**
   * The API key is all that is sent to a server that the Region names, so who may write Regions must
   * choose neither where it goes nor whose certificate is trusted there: the key's own Secret does.
   *
   * @throws ReconcileError when that Secret has another value than the Region, or only one has any.
   */
  async #assertApiKeyFor(ref: SecretRef | undefined, texts: Record<string, string | undefined>): Promise<void> {
    if (ref === undefined) return;
    for (const [key, setting] of serverOfApiKey) {
      if ((await this.#findKey(ref, key)) === texts[setting]) continue;
      const message = `${key} in Secret ${ref.name} is not that of the Region, so its API key is not sent.`;
      throw new ReconcileError('ApiKeyOfOtherServer', message);
    }
  }

  /** The database of a Region. @throws ReconcileError */
  async openDatabase(region: Region): Promise<Database> {
    const { secretRef } = region.spec.database;
    const { value: server } = await this.readValue<PostgresServer>('DATABASE_URL', {
      identity: JSON.stringify([secretRef, formatPlaintext(region.spec)]),
      text: await this.readKey(secretRef, 'OPERATOR_DATABASE_URL'),
      parse: (text) => parseDatabase(text, region, 'OPERATOR_DATABASE_URL'),
      tryValue: (next) => tryLogin(next, 'operator'),
    });
    if (this.#database?.server !== server) {
      const before = this.#database;
      this.#database = { server, opened: openDatabase({ server, applicationName, poolMax: 4, findSignal }) };
      await (await before?.opened)?.close();
    }
    return this.#database.opened;
  }

  /**
   * Runs `work` with the login that a Secret has as DATABASE_URL, opened for it alone.
   *
   * @throws ReconcileError
   */
  async withLogin<T>(region: Region, ref: SecretRef, work: (database: Database) => Promise<T>): Promise<T> {
    const url = await this.readKey(ref, 'DATABASE_URL');
    const opened = await openDatabase({
      server: parseOrFail(() => parseDatabase(url, region, 'DATABASE_URL')),
      applicationName,
      poolMax: 1,
      findSignal,
    });
    try {
      return await work(opened);
    } finally {
      await opened.close();
    }
  }

  /** A connection to a Region's Temporal, opened by the first call. @throws ReconcileError */
  async openTemporal(region: Region): Promise<Connection> {
    const { key, server } = await this.readTemporalServer(region);
    if (this.#temporal?.key !== key) {
      const before = this.#temporal;
      this.#temporal = {
        key,
        opened: Connection.lazy({ ...connectionOptions(server), connectTimeout: connectTimeoutMs }),
      };
      await before?.opened.close();
    }
    return this.#temporal.opened;
  }

  /**
   * Drops a Region that is gone, or that another replica works on: what it opened is closed, and no
   * value of it is shown as read or rejected.
   */
  async drop(): Promise<void> {
    this.#secrets.clear();
    for (const name of settingNames) this.forget(name);
    await this.close();
  }

  async close(): Promise<void> {
    const [openedDatabase, openedTemporal] = [this.#database, this.#temporal];
    this.#database = null;
    this.#temporal = null;
    await (await openedDatabase?.opened)?.close();
    await openedTemporal?.opened.close();
  }
}

/** @throws InvalidSettingsError that names the key of the Secret. */
function parseDatabase(text: string, { spec }: Region, key: string): PostgresServer {
  const values = { [key]: text, ALLOW_PLAINTEXT: formatPlaintext(spec) };
  return readSettings(z.object({ [key]: databaseUrl }), values)[key] as PostgresServer;
}

/** Servers that a Region allows to be reached without TLS, as the setting of the other apps has them. */
const formatPlaintext = ({ allowPlaintext = [] }: Pick<Region['spec'], 'allowPlaintext'>): string =>
  allowPlaintext.join(',');

/** @throws ReconcileError instead of InvalidSettingsError. */
function parseOrFail<T>(parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    if (!(cause instanceof InvalidSettingsError)) throw cause;
    throw new ReconcileError('ValueInvalid', `${cause.problems.join('; ')}.`, { cause });
  }
}
