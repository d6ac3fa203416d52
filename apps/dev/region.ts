import path from 'node:path';
import type { Region } from '#domain/contract/regions.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import { postgresUrlOf } from '#runtime/settings/postgresql.ts';
import { type RedisServer, redisUrlOf } from '#runtime/settings/redis.ts';
import { Settings as ApiSettings } from '../api/config.ts';
import { Settings as ConsoleSettings } from '../console/config.ts';
import { migrate } from '../migrate/migrate.ts';
import { Settings as ReceiverSettings } from '../receiver/config.ts';
import { Settings as WorkerSettings } from '../worker/config.ts';
import { type AppProcess, startApp } from './app-process.ts';
import { getRegionDatabase, loginsOf } from './databases.ts';
import { passedSettings } from './passed-settings.ts';
import { type RegionApp, type RegionPorts, temporalNamespaceOf } from './region-plan.ts';
import { ensureSampleKeys } from './sample-keys.ts';
import { createOwnerLink, type SampleOwner } from './sample-owner.ts';
import { causeFirstEvent, ensureSampleWebhooks, stackAllow } from './sample-webhooks.ts';
import { type ImportSource, importSources } from './samples.ts';
import { allOrFirstFailure, secondsSince } from './servers/process.ts';
import { keySecretsOf, type StackRegion, type State } from './state.ts';
import type { Timed } from './timeline.ts';
import { workflowBundle } from './workflow-bundle.ts';

export interface RegionOptions {
  region: Region;
  state: State;
  /** A login with rights to create databases and roles, and the region's database on its server. */
  server: PostgresServer;
  databaseName: string;
  ports: RegionPorts;
  /** `BASE_URL_…` of every region, for the message that names the region of a key. */
  baseUrls: Record<string, string>;
  sources: ImportSource[];
  report: (line: string) => void;
  timed: Timed;
}

/** The Temporal of a stack. `ui` is null for a server that `npm start` did not bring up. */
export interface StackTemporal {
  address: string;
  ui: string | null;
  /** Resolves when the server answers. */
  ready: Promise<void>;
}

/** The servers that a region's apps use beside PostgreSQL. */
export interface RegionServers {
  redis: RedisServer | null;
  /** Resolves when Temporal's process runs: the console and the worker wait for its address. */
  temporal: Promise<StackTemporal>;
  /** Resolves when the workflow bundle is written: the worker waits for it. */
  bundle: Promise<void>;
  /** Called for each app as soon as it runs, so that it is stopped even when another one fails. */
  onStarted: (app: AppProcess) => void;
}

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
  const { region, state, report, timed } = options;
  const secrets = state.getSecrets(region);
  const owner = await getRegionDatabase(options.server, options.databaseName);
  const servers = loginsOf(owner, region, secrets.passwords);
  const logins = (['api', 'worker', 'console', 'platform'] as const).map((role) => ({ role, server: servers[role] }));
  const { applied, current } = await timed(`${region} schema`, () =>
    migrate({ owner, logins, report: (line) => report(`${region}: ${line}`) }),
  );
  if (applied.length === 0) report(`${region}: the schema is current (${current})`);

  const wasEmpty = state.getMemory(region).imported.length === 0;
  const { sources } = options;
  const memory = await timed(`${region} import`, () =>
    importSources({ region, owner, sources, memory: state.getMemory(region), report }),
  );
  const receiver = `http://127.0.0.1:${options.ports.receiver}`;
  const { organizations, webhooks } = await timed(`${region} keys and webhooks`, async () => {
    const organizations = await ensureSampleKeys(owner, keySecretsOf(region, secrets), memory.organizations);
    const webhooks = await ensureSampleWebhooks({
      owner,
      receiverUrl: receiver,
      sealingKeys: secrets.webhookSecretKeys,
      organizations,
      known: memory.webhooks ?? [],
    });
    return { organizations, webhooks };
  });
  state.writeMemory(region, { ...memory, organizations, webhooks });
  return { ...options, secrets, owner, logins: servers, wasEmpty, organizations, webhooks, receiver };
}

/** Starts the apps of a region, each as soon as it has what it needs, until all serve. */
export async function startRegion(prepared: PreparedRegion, servers: RegionServers): Promise<StartedRegion> {
  const { region, state, ports, baseUrls, report, timed, secrets, owner, logins } = prepared;
  const { organizations, webhooks, receiver } = prepared;
  const { redis } = servers;
  const folder = path.join(state.folder, region);
  const start = async (name: RegionApp, readyUrl: string, line: string, env: Record<string, string>) => {
    const startedAt = performance.now();
    const app = await timed(`${region} ${name}`, () =>
      startApp({ name, folder: path.join(folder, name), env, readyUrl }),
    );
    servers.onStarted(app);
    report(`${region}: ${line} (${secondsSince(startedAt)})`);
  };
  const common = { REGION: region, HOST: '127.0.0.1' };
  const keySettings = { KEY_PEPPERS: secrets.keyPeppers, KEY_TAG_SECRETS: secrets.keyTagSecrets };
  const deliverySettings = {
    TEMPORAL_NAMESPACE: temporalNamespaceOf(region),
    WEBHOOK_SECRET_KEYS: secrets.webhookSecretKeys,
    // The sample receiver stays reachable even when the caller sets other addresses.
    WEBHOOK_ALLOW: [stackAllow, process.env.WEBHOOK_ALLOW].filter(Boolean).join(','),
  };
  const api = `http://127.0.0.1:${ports.api}`;
  // By name: passkeys are bound to one, and browsers treat http://localhost as secure.
  const consoleUrl = `http://localhost:${ports.console}`;
  const startReceiver = () =>
    start('receiver', receiver, `the sample receiver lists events at ${receiver}`, {
      ...passedSettings(ReceiverSettings),
      REGION: region,
      HOST: '127.0.0.1',
      PORT: String(ports.receiver),
      RECEIVER_SECRETS: JSON.stringify(
        Object.fromEntries(webhooks.map(({ organizationId, secret }) => [organizationId, [secret]])),
      ),
    });
  const startApi = () =>
    start('api', `${api}/readyz`, `the API answers at ${api}`, {
      ...passedSettings(ApiSettings),
      ...common,
      ...keySettings,
      ...baseUrls,
      PORT: String(ports.api),
      METRICS_PORT: String(ports.metrics),
      API_DATABASE_URL: postgresUrlOf(logins.api),
      ...(redis === null ? {} : { REDIS_URL: redisUrlOf(redis) }),
    });
  const startConsole = async () => {
    const { address } = await servers.temporal;
    await start('console', `http://127.0.0.1:${ports.console}/readyz`, `the console is at ${consoleUrl}`, {
      ...passedSettings(ConsoleSettings),
      ...common,
      ...keySettings,
      ...deliverySettings,
      TEMPORAL_ADDRESS: address,
      CONSOLE_DATABASE_URL: postgresUrlOf(logins.console),
      CONSOLE_URL: consoleUrl,
      API_URL: api,
      PORT: String(ports.console),
      METRICS_PORT: String(ports.consoleMetrics),
    });
  };
  const startWorker = async () => {
    const { address, ready } = await servers.temporal;
    await allOrFirstFailure([ready, servers.bundle]);
    await start('worker', `http://127.0.0.1:${ports.workerMetrics}/readyz`, 'the worker is running', {
      ...passedSettings(WorkerSettings),
      ...common,
      ...deliverySettings,
      TEMPORAL_ADDRESS: address,
      WORKER_DATABASE_URL: postgresUrlOf(logins.worker),
      WORKFLOW_BUNDLE: workflowBundle,
      READY_AFTER: '0s',
      METRICS_PORT: String(ports.workerMetrics),
    });
  };
  await allOrFirstFailure([startWorker(), startConsole(), startApi(), startReceiver()]);
  const hasNewSamples = prepared.wasEmpty && prepared.sources.some(({ isSample }) => isSample);
  const [first] = organizations;
  if (hasNewSamples && first !== undefined) {
    await causeFirstEvent(owner, first.id);
    report(`${region}: a first client of ${first.name} was started; its event is on the receiver's page`);
  }
  const temporal = await servers.temporal;
  const stack = {
    region,
    api,
    console: consoleUrl,
    metrics: `http://127.0.0.1:${ports.metrics}`,
    databaseUrl: postgresUrlOf(owner),
    receiver,
    ...(redis === null ? {} : { redisUrl: redisUrlOf(redis) }),
    temporalAddress: temporal.address,
    temporalNamespace: temporalNamespaceOf(region),
    ...(temporal.ui === null ? {} : { temporalUi: temporal.ui }),
    organizations,
  };
  return { stack, owner: await createOwnerLink(owner, consoleUrl, organizations) };
}
