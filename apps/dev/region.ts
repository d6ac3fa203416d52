import path from 'node:path';
import type { Region } from '#domain/contract/regions.ts';
import { migrate } from '#domain/db/migrate.ts';
import { Settings as ApiSettings } from '../api/config.ts';
import { Settings as ConsoleSettings } from '../console/config.ts';
import { Settings as ReceiverSettings } from '../receiver/config.ts';
import { Settings as WorkerSettings } from '../worker/config.ts';
import { type AppProcess, answersOk, startApp } from './app-process.ts';
import { getRegionDatabase, loginUrls } from './databases.ts';
import { passedSettings } from './passed-settings.ts';
import { workflowBundle } from './prebuilt.ts';
import { ensureSampleKeys } from './sample-keys.ts';
import { createOwnerLink, type SampleOwner } from './sample-owner.ts';
import { causeFirstEvent, ensureSampleWebhooks, stackAllow } from './sample-webhooks.ts';
import { type ImportSource, importSources } from './samples.ts';
import { choosePort } from './servers/ports.ts';
import { allOrFirstFailure, secondsSince } from './servers/process.ts';
import { keySecretsOf, type StackRegion, type State } from './state.ts';

export interface RegionPorts {
  api: number;
  metrics: number;
  workerMetrics: number;
  console: number;
  consoleMetrics: number;
  receiver: number;
}

export interface RegionOptions {
  region: Region;
  state: State;
  /**
   * A server's URL with rights to create databases and roles, and the name of this region's
   * database on it.
   */
  serverUrl: string;
  databaseName: string;
  ports: RegionPorts;
  /**
   * `BASE_URL_…` of every region that is brought up, for the message that names the region of a
   * key.
   */
  baseUrls: Record<string, string>;
  sources: ImportSource[];
  report: (line: string) => void;
}

/** The servers that a region's apps use beside PostgreSQL. */
export interface RegionServers {
  redisUrl: string | null;
  /** `ui` is null for a server that `npm start` did not bring up. */
  temporal: { address: string; ui: string | null };
  /** Called for each app as soon as it runs, so that it is stopped even when another one fails. */
  onStarted: (app: AppProcess) => void;
}

/** Returns a region's namespace. Regions share nothing, not even on one development server. */
export const temporalNamespaceOf = (region: Region) => `org-api-${region}`;

/** A region that serves: its entry for `stack.json`, and what is printed once and never stored. */
export interface StartedRegion {
  stack: StackRegion;
  /** Null when no organization has an owner. */
  owner: SampleOwner | null;
}

/** A region with its data, and what its apps need. */
export type PreparedRegion = Awaited<ReturnType<typeof prepareRegion>>;

/** Prepares a region's data: database, migrations, imports, sample keys and webhooks. */
export async function prepareRegion(options: RegionOptions) {
  const { region, state, report } = options;
  const secrets = state.getSecrets(region);
  const ownerUrl = await getRegionDatabase(options.serverUrl, options.databaseName);
  const urls = loginUrls(ownerUrl, region, secrets.passwords);
  const logins = (['api', 'worker', 'console', 'platform'] as const).map((role) => ({ role, url: urls[role] }));
  const { applied, current } = await migrate({ ownerUrl, logins, report: (line) => report(`${region}: ${line}`) });
  if (applied.length === 0) report(`${region}: the schema is current (${current})`);

  const wasEmpty = state.getMemory(region).imported.length === 0;
  const memory = await importSources({
    region,
    ownerUrl,
    sources: options.sources,
    memory: state.getMemory(region),
    report,
  });
  const organizations = await ensureSampleKeys(ownerUrl, keySecretsOf(region, secrets), memory.organizations);

  const receiver = `http://127.0.0.1:${options.ports.receiver}`;
  const sealingKeys = secrets.webhookSecretKeys;
  const webhooks = await ensureSampleWebhooks({
    ownerUrl,
    receiverUrl: receiver,
    sealingKeys,
    organizations,
    known: memory.webhooks ?? [],
  });
  state.writeMemory(region, { ...memory, organizations, webhooks });
  return { ...options, secrets, ownerUrl, urls, wasEmpty, organizations, webhooks, receiver };
}

/** Starts the apps of a region at the same time; resolves when all of them serve. */
export async function startRegion(prepared: PreparedRegion, servers: RegionServers): Promise<StartedRegion> {
  const { region, state, ports, baseUrls, report, secrets, ownerUrl, urls, organizations, webhooks, receiver } =
    prepared;
  const { redisUrl, temporal } = servers;
  const folder = path.join(state.folder, region);
  const start = async (name: RegionApp, env: Record<string, string>, readyUrl: string, line: string) => {
    const startedAt = performance.now();
    const app = await startApp({
      name,
      folder: path.join(folder, name),
      env,
      isReady: () => answersOk(readyUrl),
    });
    servers.onStarted(app);
    report(`${region}: ${line} (${secondsSince(startedAt)})`);
  };
  const common = { REGION: region, HOST: '127.0.0.1' };
  // The sample receiver stays reachable even when the caller sets other addresses.
  const allowed = [stackAllow, process.env.WEBHOOK_ALLOW].filter(Boolean).join(',');
  const keySettings = { KEY_PEPPERS: secrets.keyPeppers, KEY_TAG_SECRETS: secrets.keyTagSecrets };
  const deliverySettings = {
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: temporalNamespaceOf(region),
    WEBHOOK_SECRET_KEYS: secrets.webhookSecretKeys,
    WEBHOOK_ALLOW: allowed,
  };
  const api = `http://127.0.0.1:${ports.api}`;
  // By name, not by address: passkeys are bound to a name, and browsers treat http://localhost as
  // secure.
  const consoleUrl = `http://localhost:${ports.console}`;
  const receiverEnvironment = {
    ...passedSettings(ReceiverSettings),
    REGION: region,
    RECEIVER_PORT: String(ports.receiver),
    RECEIVER_SECRETS: JSON.stringify(
      Object.fromEntries(webhooks.map(({ organizationId, secret }) => [organizationId, [secret]])),
    ),
  };
  const workerEnvironment = {
    ...passedSettings(WorkerSettings),
    ...common,
    ...deliverySettings,
    WORKER_DATABASE_URL: urls.worker,
    WORKFLOW_BUNDLE: workflowBundle,
    METRICS_PORT: String(ports.workerMetrics),
  };
  const apiEnvironment = {
    ...passedSettings(ApiSettings),
    ...common,
    ...keySettings,
    ...baseUrls,
    PORT: String(ports.api),
    METRICS_PORT: String(ports.metrics),
    API_DATABASE_URL: urls.api,
    ...(redisUrl === null ? {} : { REDIS_URL: redisUrl }),
  };
  const consoleEnvironment = {
    ...passedSettings(ConsoleSettings),
    ...common,
    ...keySettings,
    ...deliverySettings,
    CONSOLE_DATABASE_URL: urls.console,
    CONSOLE_URL: consoleUrl,
    API_URL: api,
    PORT: String(ports.console),
    METRICS_PORT: String(ports.consoleMetrics),
  };
  const workerUrl = `http://127.0.0.1:${ports.workerMetrics}`;
  const consoleReady = `http://127.0.0.1:${ports.console}/readyz`;
  await allOrFirstFailure([
    start('worker', workerEnvironment, `${workerUrl}/readyz`, 'the worker is running'),
    start('console', consoleEnvironment, consoleReady, `the console is at ${consoleUrl}`),
    start('api', apiEnvironment, `${api}/readyz`, `the API answers at ${api}`),
    start('receiver', receiverEnvironment, receiver, `the sample receiver lists events at ${receiver}`),
  ]);
  const firstSample = prepared.wasEmpty ? prepared.sources.find(({ isSample }) => isSample) : undefined;
  const firstOrganization = firstSample === undefined ? undefined : organizations[0];
  if (firstOrganization !== undefined) {
    await causeFirstEvent(ownerUrl, firstOrganization.id);
    report(`${region}: a first client of ${firstOrganization.name} was started; its event is on the receiver's page`);
  }
  const metrics = `http://127.0.0.1:${ports.metrics}`;
  const stack = {
    region,
    api,
    console: consoleUrl,
    metrics,
    databaseUrl: ownerUrl,
    receiver,
    ...(redisUrl === null ? {} : { redisUrl }),
    temporalAddress: temporal.address,
    temporalNamespace: temporalNamespaceOf(region),
    ...(temporal.ui === null ? {} : { temporalUi: temporal.ui }),
    organizations,
  };
  return { stack, owner: await createOwnerLink(ownerUrl, consoleUrl, organizations) };
}

/** The apps of a region, each with a folder of its name in the region's. */
export const regionApps = ['receiver', 'worker', 'api', 'console'] as const;
type RegionApp = (typeof regionApps)[number];

/**
 * Chooses six ports of the ten from `first` on, or others when these are taken. The system may
 * offer a free port twice, so each chosen port is remembered.
 */
export async function choosePorts(region: Region, first: number, report: (line: string) => void): Promise<RegionPorts> {
  const chosen = new Set<number>();
  const choose = async (offset: number, server: string): Promise<number> => {
    for (;;) {
      const port = await choosePort(first + offset, `${region} ${server}`, report);
      if (chosen.has(port)) continue;
      chosen.add(port);
      return port;
    }
  };
  return {
    api: await choose(0, 'API'),
    metrics: await choose(1, 'API metrics'),
    workerMetrics: await choose(2, 'worker metrics'),
    console: await choose(3, 'console'),
    receiver: await choose(4, 'sample receiver'),
    consoleMetrics: await choose(5, 'console metrics'),
  };
}
