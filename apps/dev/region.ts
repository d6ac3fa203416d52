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
   * A server's URL with rights to make databases and roles, and the name of this region's database
   * there.
   */
  serverUrl: string;
  databaseName: string;
  redisUrl: string | null;
  /** Its pages (`ui`) are null for a server that we did not bring up. */
  temporal: { address: string; ui: string | null };
  ports: RegionPorts;
  /**
   * `BASE_URL_…` of every region that is brought up, for the message that says where a key
   * belongs.
   */
  baseUrls: Record<string, string>;
  sources: ImportSource[];
  report: (line: string) => void;
  /** Notified of each app as soon as it runs, so that it is stopped even when a later step fails. */
  onStarted: (app: AppProcess) => void;
}

/** A region's namespace: nothing is shared across regions, not even on one development server. */
export const temporalNamespaceOf = (region: Region) => `org-api-${region}`;

/**
 * A region that serves: its entry for `stack.json`, and what is said of it once and kept nowhere.
 */
export interface StartedRegion {
  stack: StackRegion;
  /** Null when no organization has an owner. */
  owner: SampleOwner | null;
}

/**
 * Brings one region up: database, migrations, data, sample keys, worker, API, console. Resolves
 * when it serves.
 */
export async function startRegion(options: RegionOptions): Promise<StartedRegion> {
  const { region, state, redisUrl, temporal, report, onStarted } = options;
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

  const folder = path.join(state.folder, region);
  const { ports } = options;
  const receiver = `http://127.0.0.1:${ports.receiver}`;
  const sealingKeys = secrets.webhookSecretKeys;
  const webhooks = await ensureSampleWebhooks({
    ownerUrl,
    receiverUrl: receiver,
    sealingKeys,
    organizations,
    known: memory.webhooks ?? [],
  });
  state.writeMemory(region, { ...memory, organizations, webhooks });
  const receiverProcess = await startApp({
    name: 'receiver',
    folder: path.join(folder, 'receiver'),
    env: {
      ...passedSettings(ReceiverSettings),
      REGION: region,
      RECEIVER_PORT: String(ports.receiver),
      RECEIVER_SECRETS: JSON.stringify(
        Object.fromEntries(webhooks.map(({ organizationId, secret }) => [organizationId, [secret]])),
      ),
    },
    isReady: () => answersOk(receiver),
  });
  onStarted(receiverProcess);
  report(`${region}: the sample receiver shows what comes at ${receiver}`);

  const common = { REGION: region, HOST: '127.0.0.1' };
  // The sample receiver stays reachable whatever the caller allows.
  const allowed = [stackAllow, process.env.WEBHOOK_ALLOW].filter(Boolean).join(',');
  const workerUrl = `http://127.0.0.1:${ports.workerMetrics}`;
  const worker = await startApp({
    name: 'worker',
    folder: path.join(folder, 'worker'),
    env: {
      ...passedSettings(WorkerSettings),
      ...common,
      WORKER_DATABASE_URL: urls.worker,
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: temporalNamespaceOf(region),
      WEBHOOK_SECRET_KEYS: secrets.webhookSecretKeys,
      WEBHOOK_ALLOW: allowed,
      WORKFLOW_BUNDLE: workflowBundle,
      METRICS_PORT: String(ports.workerMetrics),
    },
    isReady: () => answersOk(`${workerUrl}/readyz`),
  });
  onStarted(worker);
  report(`${region}: the worker is running`);

  const api = `http://127.0.0.1:${ports.api}`;
  const apiProcess = await startApp({
    name: 'api',
    folder: path.join(folder, 'api'),
    env: {
      ...passedSettings(ApiSettings),
      ...common,
      ...options.baseUrls,
      PORT: String(ports.api),
      METRICS_PORT: String(ports.metrics),
      API_DATABASE_URL: urls.api,
      KEY_PEPPERS: secrets.keyPeppers,
      KEY_TAG_SECRETS: secrets.keyTagSecrets,
      ...(redisUrl === null ? {} : { REDIS_URL: redisUrl }),
    },
    isReady: () => answersOk(`${api}/readyz`),
  });
  onStarted(apiProcess);
  report(`${region}: the API answers at ${api}`);

  // By name, not by address: passkeys are bound to one, and browsers take http://localhost for as
  // safe as https.
  const consoleUrl = `http://localhost:${ports.console}`;
  const consoleProcess = await startApp({
    name: 'console',
    folder: path.join(folder, 'console'),
    env: {
      ...passedSettings(ConsoleSettings),
      ...common,
      CONSOLE_DATABASE_URL: urls.console,
      CONSOLE_URL: consoleUrl,
      API_URL: api,
      PORT: String(ports.console),
      METRICS_PORT: String(ports.consoleMetrics),
      KEY_PEPPERS: secrets.keyPeppers,
      KEY_TAG_SECRETS: secrets.keyTagSecrets,
      WEBHOOK_SECRET_KEYS: secrets.webhookSecretKeys,
      WEBHOOK_ALLOW: allowed,
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: temporalNamespaceOf(region),
    },
    isReady: () => answersOk(`http://127.0.0.1:${ports.console}/readyz`),
  });
  onStarted(consoleProcess);
  report(`${region}: the console is at ${consoleUrl}`);
  const firstSample = wasEmpty ? options.sources.find(({ isSample }) => isSample) : undefined;
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

/**
 * Six of the ten ports from `first` on, or others when they are taken. The system may offer a free
 * port twice, so each is remembered.
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
