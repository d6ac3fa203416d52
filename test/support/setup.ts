import type { DestinationStream } from 'pino';
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest';
import type { Database } from '#domain/db/database.ts';
import { openDatabase } from '#domain/open-database.ts';
import { createLog } from '#runtime/log.ts';
import type { RunningApp } from '#runtime/serve-app.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { startApi } from '../../apps/api/app.ts';
import { readConfig } from '../../apps/api/config.ts';
import { type TestSettings, withConstants } from './constants.ts';
import { createTestDatabase, type TestDatabase } from './database.ts';
import { createFactories, type Factories } from './make.ts';
import { testKeySettings, testWebhookSecretKeys } from './secrets.ts';
import { allowSettings, allowSockets, guardSockets } from './socket-guard.ts';

/** A test's installation: database, API and factories, which are deleted when the test ends. */
export interface TestInstallation {
  database: TestDatabase;
  /** The owner's connections, to insert and inspect rows. */
  owner: Database;
  make: Factories;
  api: TestApi;
  /** The API's log lines so far. */
  logLines: string[];
}

export interface TestApi extends RunningApp {
  /** Sends a GET request; `key` becomes the bearer. */
  get(path: string, options?: { key?: string; headers?: Record<string, string>; method?: string }): Promise<Response>;
}

/**
 * Starts an installation for one test. `settings` replace the API's; `REDIS_URL: ''` runs the
 * limiter in-process. `template` is a database to copy.
 */
export async function setup(
  settings: TestSettings = {},
  onFinished: OnFinished = onTestFinished,
  template?: string,
): Promise<TestInstallation> {
  const { database, owner, make } = await setupDatabase(onFinished, template);
  const logLines: string[] = [];
  const api = await startTestApi(database, settings, logLines, onFinished);
  return { database, owner, make, api, logLines };
}

/**
 * Registers a function that ends a part of an installation when its test or its file has finished.
 */
export type OnFinished = (end: () => void | Promise<void>) => void;

/**
 * Sets up an installation once for the tests of a file, or of a `describe`. For tests that do not
 * see each other's rows, because each creates a separate organization.
 * @returns a function that returns it in a test.
 */
export function shareInstallation<T>(setUp: (onFinished: OnFinished) => Promise<T>): () => T {
  const ends: (() => void | Promise<void>)[] = [];
  let installation: T;
  beforeAll(async () => {
    installation = await setUp((end) => void ends.push(end));
  });
  afterAll(async () => {
    for (const end of ends.reverse()) await end();
  });
  return () => installation;
}

/** An API that the tests of a file share; each creates the organizations and keys that it needs. */
export const shareApi = (settings: TestSettings = {}) => shareInstallation((onFinished) => setup(settings, onFinished));

/** The same without an API. */
export async function setupDatabase(onFinished: OnFinished = onTestFinished, template?: string) {
  const database = await createTestDatabase(template === undefined ? {} : { template });
  onFinished(() => database.drop());
  const owner = await openDatabase({
    server: parsePostgresUrl(database.ownerUrl),
    applicationName: 'test',
    poolMax: 5,
    connectTimeoutMs: 20_000,
    statementTimeoutMs: 60_000,
  });
  onFinished(() => owner.close());
  return { database, owner, make: createFactories(owner) };
}

/** Returns what an API of `database` reads from its environment, also as a separate process. */
export function apiEnvironment(database: TestDatabase, settings: TestSettings = {}): TestSettings {
  return {
    REGION: 'us',
    API_DATABASE_URL: database.urls.api,
    REDIS_URL: inject('redisUrl'),
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: '0',
    DRAIN_DELAY_MS: '0',
    ...testKeySettings,
    ...settings,
  };
}

/**
 * Returns what a console of `database` at `origin` reads from its environment, also as a separate
 * process.
 */
export function consoleEnvironment(database: TestDatabase, origin: string, settings: TestSettings = {}): TestSettings {
  return {
    REGION: 'us',
    CONSOLE_URL: origin,
    API_URL: 'http://127.0.0.1:8080',
    CONSOLE_DATABASE_URL: database.urls.console,
    WEBHOOK_SECRET_KEYS: testWebhookSecretKeys,
    HOST: '127.0.0.1',
    PORT: '0',
    METRICS_PORT: '0',
    DRAIN_DELAY_MS: '0',
    ...testKeySettings,
    ...settings,
  };
}

/** Starts another API on a test's database, in this process; it stops when the test ends. */
export async function startTestApi(
  database: TestDatabase,
  settings: TestSettings = {},
  logLines: string[] = [],
  onFinished: OnFinished = onTestFinished,
): Promise<TestApi> {
  const environment = apiEnvironment(database, settings);
  const config = withConstants(readConfig(environment), settings);
  allowSettings(environment);
  guardSockets(onFinished, 'api');
  const destination = { write: (line: string) => void logLines.push(line) };
  const log = createLog({
    level: 'info',
    name: 'api',
    region: config.region,
    destination: destination as DestinationStream,
  });
  const running = await startApi(config, log);
  allowSockets('test', running.url, running.metricsUrl);
  onFinished(() => running.stop());
  return {
    ...running,
    get: (path, { key, headers = {}, method = 'GET' } = {}) =>
      fetch(`${running.url}${path}`, {
        method,
        headers: { ...(key === undefined ? {} : { authorization: `Bearer ${key}` }), ...headers },
      }),
  };
}
