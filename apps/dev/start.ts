import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Region } from '#domain/contract/regions.ts';
import { SettingsRefused } from '#runtime/settings/read.ts';
import { type AppProcess, stopLeftOver } from './app-process.ts';
import { type DevConfig, readConfig, usage } from './config.ts';
import { prepareWorkflowBundle } from './prebuilt.ts';
import {
  choosePorts,
  type PreparedRegion,
  prepareRegion,
  type RegionPorts,
  type RegionServers,
  regionApps,
  type StartedRegion,
  startRegion,
  temporalNamespaceOf,
} from './region.ts';
import { listSources, SourceRefused } from './samples.ts';
import { startPostgres } from './servers/postgres.ts';
import { allOrFirstFailure, ServerUnavailableError, secondsSince } from './servers/process.ts';
import { startRedis } from './servers/redis.ts';
import { startTemporal } from './servers/temporal.ts';
import { holdState } from './single.ts';
import { openState, type State } from './state.ts';
import { summaryOf } from './summary.ts';

/**
 * `npm start`: brings up everything that the service needs, imports data, serves, and stops in
 * reverse order on Ctrl-C.
 */
const report = (line: string) => console.log(`  ${line}`);

/**
 * What is running, in the order in which it was started; stopped in reverse. Can be called twice.
 */
const open: { name: string; stop: () => Promise<void> }[] = [];
let stopping: Promise<void> | undefined;

function stopAll(): Promise<void> {
  stopping ??= (async () => {
    for (const { name, stop } of open.reverse()) {
      await stop().catch((error: Error) => report(`${name} did not stop: ${error.message}`));
    }
  })();
  return stopping;
}

async function bringUp(config: DevConfig): Promise<void> {
  const startedAt = performance.now();
  const state = openState(config.stateFolder);
  open.push({ name: 'the state folder', stop: holdState(config.stateFolder) });
  for (const region of config.regions) {
    for (const app of regionApps) await stopLeftOver(path.join(config.stateFolder, region, app));
  }

  const ports = new Map<Region, RegionPorts>();
  for (const [index, region] of config.regions.entries())
    ports.set(region, await choosePorts(region, config.firstPort + index * 10, report));
  const ended: Promise<string>[] = [];
  const [regions, redisUrl, temporal] = await allOrFirstFailure([
    prepareRegions(config, state, ports),
    config.redisUrl === null ? startEmbeddedRedis(config.stateFolder) : Promise.resolve(config.redisUrl),
    config.temporalAddress === null
      ? startEmbeddedTemporal(config)
      : Promise.resolve({ address: config.temporalAddress, ui: null }),
    prepareWorkflowBundle(),
  ]);
  const serversReadyAt = performance.now();
  const started: StartedRegion[] = [];
  for (const prepared of regions) {
    const { region } = prepared;
    const onStarted: RegionServers['onStarted'] = (app) => {
      open.push({ name: `the ${region} ${app.name}`, stop: app.stop });
      ended.push(endOf(app, region));
    };
    started.push(await startRegion(prepared, { redisUrl, temporal, onStarted }));
  }
  state.writeStack(started.map(({ stack }) => stack));
  // The apps and servers are detached, so only this timer keeps the process running until it is
  // stopped.
  const staying = setInterval(() => {}, 3_600_000);
  open.push({ name: 'the wait', stop: async () => clearInterval(staying) });
  console.log(`\nReady in ${secondsSince(startedAt)} (apps: ${secondsSince(serversReadyAt)}).`);
  console.log(summaryOf(started, path.relative(process.cwd(), state.stackFile)));
  Promise.race(ended).then(async (what) => {
    if (stopping !== undefined) return;
    console.error(`\n${what}; stopping the rest. Its log says why.`);
    await stopAll();
    process.exit(1);
  });
}

/**
 * Brings up PostgreSQL, then prepares the regions' data one after another, because their logins
 * share the server.
 */
async function prepareRegions(
  config: DevConfig,
  state: State,
  ports: ReadonlyMap<Region, RegionPorts>,
): Promise<PreparedRegion[]> {
  const sources = await listSources(config);
  const serverUrl = config.databaseUrl ?? (await startEmbeddedPostgres(config.stateFolder));
  const startedAt = performance.now();
  const baseUrls = Object.fromEntries(
    [...ports].map(([region, { api }]) => [`BASE_URL_${region.toUpperCase()}`, `http://127.0.0.1:${api}`]),
  );
  const prepared: PreparedRegion[] = [];
  for (const [region, regionPorts] of ports) {
    prepared.push(
      await prepareRegion({
        region,
        state,
        report,
        serverUrl,
        databaseName: databaseName(config, region),
        ports: regionPorts,
        baseUrls,
        sources: sources.filter((source) => source.region === region),
      }),
    );
  }
  report(`the data is ready (${secondsSince(startedAt)})`);
  return prepared;
}

async function endOf(app: AppProcess, region: Region): Promise<string> {
  const how = await app.exited;
  return `The ${region} ${app.name} ended by itself (${how})`;
}

async function startEmbeddedPostgres(stateFolder: string): Promise<string> {
  const postgres = await startPostgres({ stateFolder, report });
  open.push({ name: 'PostgreSQL', stop: postgres.stop });
  return postgres.adminUrl;
}

async function startEmbeddedRedis(stateFolder: string): Promise<string | null> {
  const redis = await startRedis({ stateFolder, report });
  if (redis === null) return null;
  open.push({ name: 'Redis', stop: redis.stop });
  return redis.url;
}

/** Starts Temporal. The port of its web UI is 9 above that of the first region's API. */
async function startEmbeddedTemporal({
  stateFolder,
  regions,
  firstPort,
}: DevConfig): Promise<{ address: string; ui: string | null }> {
  const temporal = await startTemporal({
    stateFolder,
    namespaces: regions.map(temporalNamespaceOf),
    uiPort: firstPort + 9,
    report,
  });
  open.push({ name: 'Temporal', stop: temporal.stop });
  return temporal;
}

/**
 * Returns the database's name. With an external server and one region, the URL's own database is
 * used; otherwise each region has a database beside it.
 */
function databaseName(config: DevConfig, region: Region): string {
  if (config.databaseUrl === null) return `org_api_${region}`;
  const name = decodeURIComponent(new URL(config.databaseUrl).pathname.slice(1));
  return config.regions.length === 1 ? name : `${name}_${region}`;
}

function stopOnSignals(): void {
  let asked = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (asked) process.exit(1);
      asked = true;
      console.log('\n  stopping: the API drains, then the servers stop; Ctrl-C again ends this at once');
      stopAll().then(() => {
        console.log('  stopped; the next npm start continues with this data');
        process.exit(0);
      });
    });
  }
}

try {
  const config = readConfig(process.argv.slice(2));
  if (config === null) {
    console.log(usage);
  } else {
    const missing = config.dataFiles.filter((file) => !existsSync(file));
    if (missing.length > 0) throw new SettingsRefused(missing.map((file) => `--data: there is no file ${file}`));
    stopOnSignals();
    await bringUp(config);
  }
} catch (error) {
  await stopAll();
  const isExpected =
    error instanceof ServerUnavailableError || error instanceof SettingsRefused || error instanceof SourceRefused;
  const defect = error instanceof Error ? error.stack : error;
  console.error(`\n${isExpected ? error.message : `npm start failed by an internal error: ${defect}`}`);
  process.exit(1);
}
