import { existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { Region } from '#domain/contract/regions.ts';
import type { PostgresServer } from '#domain/db/server.ts';
import { startCommand } from '#runtime/command-line.ts';
import { SettingsRefused, StartRefused } from '#runtime/errors.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { parseRedisUrl, type RedisServer } from '#runtime/settings/redis.ts';
import { type AppProcess, stopLeftOver } from './app-process.ts';
import { type DevConfig, readConfig, usage } from './config.ts';
import type { PreparedRegion, StackTemporal } from './region.ts';
import { choosePorts, type RegionPorts, regionApps, temporalNamespaceOf } from './region-plan.ts';
import { refuseProcesses, stopProcesses } from './servers/children.ts';
import { startPostgres } from './servers/postgres.ts';
import { allOrFirstFailure } from './servers/process.ts';
import { startRedis } from './servers/redis.ts';
import { launchTemporal } from './servers/temporal.ts';
import { lockState, openState } from './state.ts';
import { findSampleOrganization, summaryOf } from './summary.ts';
import { createTimeline, type Timed } from './timeline.ts';
import { prepareWorkflowBundle } from './workflow-bundle.ts';

/**
 * `npm start`: brings up everything that the service needs, imports data, serves, and stops in
 * reverse order on Ctrl-C. README.md in this folder lists what waits for what.
 */
const report = (line: string) => console.error(`  ${line}`);
/** How long an interrupted start may take to end its steps. What runs then is stopped. */
const interruptedStepsMs = 5_000;

/** What is running, in the order in which it was started; stopped in reverse. */
const open: { name: string; stop: () => Promise<void> }[] = [];
let stopping: Promise<void> | undefined;
/** Settles when everything is up or a step has failed. */
let starting: Promise<void> = Promise.resolve();
let isInterrupted = false;

function stopAll(): Promise<void> {
  stopping ??= (async () => {
    for (const { name, stop } of open.reverse()) {
      await stop().catch((error: Error) => report(`${name} did not stop: ${error.message}`));
    }
    await stopProcesses();
  })();
  return stopping;
}

async function bringUp(config: DevConfig): Promise<void> {
  const { timed, lines } = createTimeline();
  const state = openState(config.stateFolder);
  const unlock = lockState(config.stateFolder);
  open.push({ name: 'the state folder', stop: async () => unlock() });
  for (const region of config.regions) {
    for (const app of regionApps) await stopLeftOver(path.join(config.stateFolder, region, app));
  }

  const ports = new Map<Region, RegionPorts>();
  for (const [index, region] of config.regions.entries())
    ports.set(region, await choosePorts(region, config.firstPort + index * 10, report));
  const servers = startServers(config, timed);
  const { prepareRegions, startRegion } = await timed('loading of the database code', () => import('./regions.ts'));
  const preparing = prepareRegions(config, ports, servers.postgres, { state, report, timed });
  const [regions, redis] = await allOrFirstFailure([preparing, servers.redis]);
  const ended: Promise<string>[] = [];
  const start = (prepared: PreparedRegion) =>
    startRegion(prepared, {
      ...servers,
      redis,
      onStarted: (app) => {
        open.push({ name: `the ${prepared.region} ${app.name}`, stop: app.stop });
        ended.push(endOf(app, prepared.region));
      },
    });
  const started = await allOrFirstFailure(regions.map(start));
  if (isInterrupted) return;
  state.writeStack(started.map(({ stack }) => stack));
  for (const { stack } of started)
    state.writeCurlConfig(stack.region, findSampleOrganization(stack)?.sampleKey ?? null);
  console.log(`\nReady in ${(performance.now() / 1000).toFixed(1)} s. Each part: when it began, how long it took.`);
  console.log([...lines(), summaryOf(started, path.relative(process.cwd(), state.stackFile))].join('\n'));
  stayUntilAnAppEnds(ended);
}

/** Starts what needs nothing else. Each failure is reported by the step that awaits it. */
function startServers(config: DevConfig, timed: Timed) {
  const servers = {
    temporal: launchTemporalServer(config, timed),
    postgres: timed('PostgreSQL', () => getPostgres(config)),
    redis: timed('Redis', () => getRedis(config)),
    bundle: timed('workflow bundle', prepareWorkflowBundle),
  };
  for (const server of Object.values(servers)) server.catch(() => {});
  return servers;
}

/** The apps and servers are detached, so a timer keeps this process running until it is stopped. */
function stayUntilAnAppEnds(ended: Promise<string>[]): void {
  const staying = setInterval(() => {}, 3_600_000);
  open.push({ name: 'the wait', stop: async () => clearInterval(staying) });
  Promise.race(ended).then(async (what) => {
    if (stopping !== undefined) return;
    console.error(`\n${what}; stopping the rest. Its log says why.`);
    await stopAll();
    process.exit(1);
  });
}

async function endOf(app: AppProcess, region: Region): Promise<string> {
  const how = await app.exited;
  return `The ${region} ${app.name} ended by itself (${how})`;
}

async function getPostgres({ postgres: given, stateFolder }: DevConfig): Promise<PostgresServer> {
  if (given !== null) return given;
  const postgres = await startPostgres({ stateFolder, report });
  open.push({ name: 'PostgreSQL', stop: postgres.stop });
  return parsePostgresUrl(postgres.adminUrl);
}

async function getRedis({ redis: given, stateFolder }: DevConfig): Promise<RedisServer | null> {
  if (given !== null) return given;
  const redis = await startRedis({ stateFolder, report });
  if (redis === null) return null;
  open.push({ name: 'Redis', stop: redis.stop });
  return parseRedisUrl(redis.url);
}

/** Resolves when Temporal's address is known. Its web UI has port 9 of the first region's ten. */
async function launchTemporalServer(config: DevConfig, timed: Timed): Promise<StackTemporal> {
  const { temporalAddress, stateFolder, regions, firstPort } = config;
  if (temporalAddress !== null) return { address: temporalAddress, ui: null, ready: Promise.resolve() };
  const namespaces = regions.map(temporalNamespaceOf);
  const launching = launchTemporal({ stateFolder, namespaces, uiPort: firstPort + 9, report });
  const ready = timed('Temporal', async () => (await launching).ready);
  ready.catch(() => {}); // the start of the worker reports it
  const { address, ui, stop } = await launching;
  open.push({ name: 'Temporal', stop });
  return { address, ui, ready };
}

/** Stops everything on a signal, after the steps of a start in progress have ended. */
function stopOnSignals(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (isInterrupted) process.exit(1);
      console.error('\n  stopping: the API drains, then the servers stop; Ctrl-C again ends this at once');
      void stopInOrder().then(() => {
        console.error('  stopped; the next npm start continues with this data');
        process.exit(0);
      });
    });
  }
}

async function stopInOrder(): Promise<void> {
  isInterrupted = true;
  refuseProcesses();
  await Promise.race([starting.catch(() => {}), wait(interruptedStepsMs)]);
  await stopAll();
}

try {
  startCommand({ usage, stop: stopInOrder });
  const config = readConfig(process.argv.slice(2));
  const missing = config.dataFiles.filter((file) => !existsSync(file));
  if (missing.length > 0) throw new SettingsRefused(missing.map((file) => `--data: there is no file ${file}`));
  stopOnSignals();
  starting = bringUp(config);
  await starting;
} catch (error) {
  // An interrupted step fails; the signal's handler stops the rest and ends the process.
  if (!isInterrupted) await fail(error);
}

async function fail(error: unknown): Promise<never> {
  await stopAll();
  const defect = error instanceof Error ? error.stack : error;
  const isExpected = error instanceof StartRefused;
  console.error(`\n${isExpected ? error.message : `npm start failed by an internal error: ${defect}`}`);
  process.exit(1);
}
