import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import type { Database } from '#domain/db/database.ts';
import { openDatabase } from '#domain/open-database.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { webhookSecretKeys } from '#runtime/settings/types.ts';
import { type AppProcess, startAppProcess } from '#test/app-processes.ts';
import { readConfig as readConsoleConfig } from '../../../apps/console/config.ts';
import { getFreePort } from '../../../apps/dev/servers/ports.ts';
import { becomesTrue } from '../../../apps/dev/servers/process.ts';
import { startRedis } from '../../../apps/dev/servers/redis.ts';
import { startTemporal } from '../../../apps/dev/servers/temporal.ts';
import { prepareWorkflowBundle, workflowBundle } from '../../../apps/dev/workflow-bundle.ts';
import { migrate } from '../../../apps/migrate/migrate.ts';
import { type Receiver, startReceiver } from '../deliveries/processes.ts';
import { makeSecrets } from '../reads/region.ts';
import { type BenchServers, startServers } from '../servers.ts';

/** The processes of one installation: two APIs, two workers and a console. */
export const appNames = ['api 1', 'api 2', 'worker 1', 'worker 2', 'console'] as const;
export type AppName = (typeof appNames)[number];

/** Days: the shortest permitted retention of deliveries. */
export const retention = { deliveryDays: 31, auditLogDays: 92 };

/** One installation with separate servers, each in a separate process. */
export interface SoakStack {
  database: Database;
  /** A connection of the owner, to insert rows. */
  owner: Client;
  /** A connection of the worker's login. */
  worker: Client;
  secrets: ReturnType<typeof makeSecrets>;
  sealingKeys: ReturnType<typeof webhookSecretKeys.parse>;
  consoleConfig: ReturnType<typeof readConsoleConfig>;
  apiUrls: readonly [string, string];
  consoleUrl: string;
  receiver: Receiver;
  serverPids: Record<'postgres' | 'redis' | 'temporal', number>;
  /** Starts the processes; the database should be filled by then. Resolves when all are ready. */
  startApps(): Promise<Record<AppName, AppProcess>>;
  stop(): Promise<void>;
}

const namespace = 'org-api-soak';
const name = 'bench_soak';
const logins = ['api', 'worker', 'console'] as const;
const readyMs = 60_000;
const secret = () => randomBytes(32).toString('base64');

/**
 * Starts PostgreSQL, Redis, Temporal and a receiver. `stop` ends and removes everything.
 * `extraWorkerSettings` are set in the environment of the workers.
 */
export function startStack(
  report: (line: string) => void,
  extraWorkerSettings: Record<string, string>,
): Promise<SoakStack> {
  return startServers(report, (servers) => openStack(servers, report, extraWorkerSettings));
}

async function openStack(
  servers: BenchServers,
  report: (line: string) => void,
  extraWorkerSettings: Record<string, string>,
): Promise<SoakStack> {
  const { folder, postgres, onStop, stop } = servers;
  const redis = await startRedis({ stateFolder: folder, report });
  if (redis === null) throw new Error('This benchmark needs a real Redis: install redis-server.');
  onStop(() => redis.stop());
  const temporal = await startTemporal({ stateFolder: folder, namespaces: [namespace], report });
  onStop(() => temporal.stop());
  await prepareWorkflowBundle(report);

  const admin = await connect(postgres.adminUrl);
  await admin.query(`create database ${name} template template0 encoding 'UTF8'`);
  const urlOf = (role?: string) => {
    const url = new URL(postgres.adminUrl);
    url.pathname = name;
    if (role !== undefined) Object.assign(url, { username: `${name}_${role}`, password: 'bench' });
    return url.href;
  };
  await migrate({
    owner: parsePostgresUrl(urlOf()),
    logins: logins.map((role) => ({ role, server: parsePostgresUrl(urlOf(role)) })),
  });
  const database = await openDatabase({
    server: parsePostgresUrl(urlOf()),
    applicationName: 'bench',
    poolMax: 8,
    connectTimeoutMs: 60_000,
    statementTimeoutMs: 120_000,
  });
  onStop(() => database.close());
  const receiver = await startReceiver();
  onStop(() => receiver.stop());

  async function connect(url: string): Promise<Client> {
    const client = new Client({ connectionString: url });
    await client.connect();
    onStop(() => client.end());
    return client;
  }

  const secrets = makeSecrets();
  const sealing = `1:${secret()}`;
  const ports = { 'api 1': await getFreePort(), 'api 2': await getFreePort(), console: await getFreePort() };
  const apiUrls = [`http://127.0.0.1:${ports['api 1']}`, `http://127.0.0.1:${ports['api 2']}`] as const;
  const common = {
    REGION: secrets.region,
    KEY_PEPPERS: secrets.peppers.map((pepper) => `${pepper.version}:${pepper.secret.toString('base64')}`).join(','),
    KEY_TAG_SECRETS: secrets.tagSecrets.map((each) => each.toString('base64')).join(','),
  };
  const apiSettings = { ...common, API_DATABASE_URL: urlOf('api'), REDIS_URL: redis.url };
  const workerSettings = {
    REGION: secrets.region,
    WORKER_DATABASE_URL: urlOf('worker'),
    TEMPORAL_ADDRESS: temporal.address,
    TEMPORAL_NAMESPACE: namespace,
    WEBHOOK_SECRET_KEYS: sealing,
    WEBHOOK_ALLOW: '127.0.0.0/8',
    WORKFLOW_BUNDLE: workflowBundle,
    READY_AFTER: '0s',
    DELIVERY_SCHEDULE: '10s,10s,10s,10s',
    DELIVERY_RETENTION: `${retention.deliveryDays}d`,
    AUDIT_LOG_RETENTION: `${retention.auditLogDays}d`,
    ...extraWorkerSettings,
  };
  const consoleSettings = {
    ...common,
    CONSOLE_DATABASE_URL: urlOf('console'),
    CONSOLE_URL: `http://localhost:${ports.console}`,
    API_URL: apiUrls[0],
    WEBHOOK_SECRET_KEYS: sealing,
    PORT: String(ports.console),
  };
  const settings: Record<AppName, Record<string, string>> = {
    'api 1': { ...apiSettings, PORT: String(ports['api 1']) },
    'api 2': { ...apiSettings, PORT: String(ports['api 2']) },
    'worker 1': workerSettings,
    'worker 2': workerSettings,
    console: consoleSettings,
  };

  async function startApp(app: AppName): Promise<AppProcess> {
    const running = await startAppProcess({
      name: app.split(' ')[0] as 'api' | 'console' | 'worker',
      label: app.replace(' ', '-'),
      folder,
      environment: { NODE_ENV: 'production', ...settings[app] },
    });
    onStop(() => running.stop());
    const port = ports[app as keyof typeof ports];
    const healthUrl = port === undefined ? running.metricsUrl : `http://127.0.0.1:${port}`;
    if (!(await becomesTrue(() => isReady(healthUrl), readyMs, 200))) throw new Error(`${app} did not become ready`);
    report(`${app} is ready`);
    return running;
  }

  return {
    database,
    owner: await connect(urlOf()),
    worker: await connect(urlOf('worker')),
    secrets,
    sealingKeys: webhookSecretKeys.parse(sealing),
    consoleConfig: readConsoleConfig(consoleSettings),
    apiUrls,
    consoleUrl: consoleSettings.CONSOLE_URL,
    receiver,
    serverPids: { postgres: postgres.pid, redis: redis.pid, temporal: temporal.pid },
    async startApps() {
      const running = {} as Record<AppName, AppProcess>;
      for (const app of appNames) running[app] = await startApp(app);
      return running;
    },
    stop,
  };
}

function isReady(healthUrl: string): Promise<boolean> {
  return fetch(`${healthUrl}/readyz`).then(
    (response) => response.ok,
    () => false,
  );
}
