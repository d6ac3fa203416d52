import path from 'node:path';
import type { Region } from '#domain/contract/regions.ts';
import { migrate } from '#domain/db/migrate.ts';
import { type AppProcess, answersOk, startApp } from './app-process.ts';
import { getRegionDatabase, loginUrls } from './databases.ts';
import { ensureSampleKeys } from './sample-keys.ts';
import { type ImportSource, importSources } from './samples.ts';
import { choosePort } from './servers/ports.ts';
import { keySecretsOf, type StackRegion, type State } from './state.ts';

export interface RegionPorts {
  api: number;
  metrics: number;
  workerMetrics: number;
}

export interface RegionOptions {
  region: Region;
  state: State;
  /** A server's URL with rights to make databases and roles, and the name of this region's database there. */
  serverUrl: string;
  databaseName: string;
  redisUrl: string | null;
  ports: RegionPorts;
  /** `BASE_URL_…` of every region that is brought up, for the message that tells a key where it belongs. */
  baseUrls: Record<string, string>;
  sources: ImportSource[];
  report: (line: string) => void;
  /** Told of each app as soon as it runs, so that it is stopped even when a later step fails. */
  onStarted: (app: AppProcess) => void;
}

/** Brings one region up: database, migrations, data, sample keys, worker, API. Resolves with its entry for `stack.json` when it serves. */
export async function startRegion(options: RegionOptions): Promise<StackRegion> {
  const { region, state, redisUrl, report, onStarted } = options;
  const secrets = state.getSecrets(region);
  const ownerUrl = await getRegionDatabase(options.serverUrl, options.databaseName);
  const urls = loginUrls(ownerUrl, region, secrets.passwords);
  const logins = (['api', 'worker', 'console', 'platform'] as const).map((role) => ({ role, url: urls[role] }));
  const { applied, current } = await migrate({ ownerUrl, logins, report: (line) => report(`${region}: ${line}`) });
  if (applied.length === 0) report(`${region}: the schema is current (${current})`);

  const memory = await importSources({
    region,
    ownerUrl,
    sources: options.sources,
    memory: state.getMemory(region),
    report,
  });
  const organizations = await ensureSampleKeys(ownerUrl, keySecretsOf(region, secrets), memory.organizations);
  state.writeMemory(region, { ...memory, organizations });

  const folder = path.join(state.folder, region);
  const { ports } = options;
  const common = { REGION: region, HOST: '127.0.0.1' };
  const workerUrl = `http://127.0.0.1:${ports.workerMetrics}`;
  const worker = await startApp({
    name: 'worker',
    folder: path.join(folder, 'worker'),
    env: { ...common, WORKER_DATABASE_URL: urls.worker, METRICS_PORT: String(ports.workerMetrics) },
    isReady: () => answersOk(`${workerUrl}/metrics`),
  });
  onStarted(worker);
  report(`${region}: the worker is running`);

  const api = `http://127.0.0.1:${ports.api}`;
  const apiProcess = await startApp({
    name: 'api',
    folder: path.join(folder, 'api'),
    env: {
      ...{
        ...common,
        ...options.baseUrls,
        PORT: String(ports.api),
        METRICS_PORT: String(ports.metrics),
        API_DATABASE_URL: urls.api,
      },
      ...{ KEY_PEPPERS: secrets.keyPeppers, KEY_TAG_SECRETS: secrets.keyTagSecrets },
      ...(redisUrl === null ? {} : { REDIS_URL: redisUrl }),
    },
    isReady: () => answersOk(`${api}/readyz`),
  });
  onStarted(apiProcess);
  report(`${region}: the API answers at ${api}`);
  const metrics = `http://127.0.0.1:${ports.metrics}`;
  return { region, api, metrics, databaseUrl: ownerUrl, ...(redisUrl === null ? {} : { redisUrl }), organizations };
}

/** Three of the ten ports from `first` on, or others when they are taken. */
export async function choosePorts(region: Region, first: number, report: (line: string) => void): Promise<RegionPorts> {
  return {
    api: await choosePort(first, `${region} API`, report),
    metrics: await choosePort(first + 1, `${region} API metrics`, report),
    workerMetrics: await choosePort(first + 2, `${region} worker metrics`, report),
  };
}
