import { statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { regionCodes } from '#domain/contract/regions.ts';
import { startCommand } from '#runtime/command-line.ts';
import { InvalidSettingsError, StartupError } from '#runtime/errors.ts';
import { once } from '#runtime/flow/once.ts';
import { onInterruption } from '#runtime/interruption.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { parseRedisUrl } from '#runtime/settings/redis.ts';
import { type DevConfig, readConfig, usage } from './config.ts';
import { choosePorts, regionApps, serverPorts, temporalNamespaceOf } from './region-plan.ts';
import { startPostgres } from './servers/postgres.ts';
import { allOrFirstFailure, stopLaunching, stopProcesses } from './servers/process.ts';
import { startRedis } from './servers/redis.ts';
import { stopLeftOver } from './servers/server-program.ts';
import { startTemporal } from './servers/temporal.ts';
import { openState } from './state.ts';
import { prepareWorkflowBundle } from './workflow-bundle.ts';

/**
 * `npm start`: brings up everything that the service needs, imports data, serves, and stops in
 * reverse order on Ctrl-C. README.md in this folder lists what waits for what.
 */
const report = (line: string) => console.error(`  ${(performance.now() / 1000).toFixed(1).padStart(5)} s  ${line}`);
/** How long an interrupted start may take to end its steps. What runs then is stopped. */
const interruptedStepsMs = 5_000;

/** Settles when everything is up or a step has failed. */
let starting: Promise<void> = Promise.resolve();
let isInterrupted = false;
let isStopping = false;

const stopAll = once(async () => {
  isStopping = true;
  await stopProcesses(report);
});

async function bringUp(config: DevConfig): Promise<void> {
  const state = openState(config.stateFolder);
  // Before ports are chosen. The stack of a killed start may have had other regions.
  for (const region of regionCodes)
    for (const app of regionApps) await stopLeftOver(path.join(config.stateFolder, region, app));
  const ports = new Map<DevConfig['regions'][number], Awaited<ReturnType<typeof choosePorts>>>();
  for (const [index, region] of config.regions.entries())
    ports.set(region, await choosePorts(region, config.firstPort + index * 10, report));

  const servers = startServers(config);
  const { prepareRegions, startRegion } = await import('./region.ts');
  const start = { config, ports, state, report };
  const [regions, redis] = await allOrFirstFailure([prepareRegions(start, servers.postgres), servers.redis]);
  const serving = regions.map((prepared) => startRegion(start, prepared, { ...servers, redis }));
  const started = await allOrFirstFailure(serving);
  if (isInterrupted) return;
  const { summaryOf } = await import('./summary.ts');
  state.writeStack(started.map(({ stack }) => stack));
  console.log(`\nReady in ${(performance.now() / 1000).toFixed(1)} s.`);
  console.log(summaryOf(started, path.relative(process.cwd(), state.stackFile)));
  stayUntilAnAppEnds(started.flatMap(({ ends }) => ends));
}

/** Starts what needs nothing else. Each failure is reported by the step that awaits it. */
function startServers({ postgres, redis, temporalAddress, stateFolder, regions, firstPort }: DevConfig) {
  const ports = serverPorts(firstPort);
  const start = {
    async temporal() {
      if (temporalAddress !== null) return { address: temporalAddress, ui: null };
      const namespaces = regions.map(temporalNamespaceOf);
      return startTemporal({ stateFolder, namespaces, port: ports.temporal, uiPort: ports.temporalUi, report });
    },
    async postgres() {
      if (postgres !== null) return postgres;
      return parsePostgresUrl((await startPostgres({ stateFolder, port: ports.postgres, report })).adminUrl);
    },
    async redis() {
      if (redis !== null) return redis;
      const started = await startRedis({ stateFolder, port: ports.redis, report });
      return started && parseRedisUrl(started.url);
    },
  };
  const servers = {
    temporal: start.temporal(),
    postgres: start.postgres(),
    redis: start.redis(),
    bundle: prepareWorkflowBundle(report),
  };
  for (const server of Object.values(servers)) server.catch(() => {});
  return servers;
}

/** The apps and servers are detached, so a timer keeps this process running until it is stopped. */
function stayUntilAnAppEnds(ends: Promise<string>[]): void {
  setInterval(() => {}, 3_600_000);
  void Promise.race(ends).then(async (what) => {
    if (isStopping) return;
    console.error(`\n${what}; stopping the rest. Its log says why.`);
    await stopAll();
    process.exit(1);
  });
}

/** Stops everything, after the steps of a start in progress have ended. */
function interrupt(): void {
  console.error('\n  stopping: the API drains, then the servers stop; Ctrl-C again ends this at once');
  void stopInOrder().then(() => {
    console.error('  stopped; the next npm start continues with this data');
    process.exit(0);
  });
}

async function stopInOrder(): Promise<void> {
  isInterrupted = true;
  stopLaunching();
  await Promise.race([starting.catch(() => {}), wait(interruptedStepsMs)]);
  await stopAll();
}

try {
  startCommand({ usage, stop: stopInOrder });
  const config = readConfig(process.argv.slice(2));
  const missing = config.dataFiles.filter((file) => !statSync(file, { throwIfNoEntry: false })?.isFile());
  if (missing.length > 0) throw new InvalidSettingsError(missing.map((file) => `--data: ${file} is not a file`));
  onInterruption(interrupt);
  starting = bringUp(config);
  await starting;
} catch (error) {
  // An interrupted step fails; the signal's handler stops the rest and ends the process.
  if (!isInterrupted) await fail(error);
}

async function fail(error: unknown): Promise<never> {
  await stopAll();
  const defect = error instanceof Error ? error.stack : error;
  const isExpected = error instanceof StartupError;
  console.error(`\n${isExpected ? error.message : `npm start failed by an internal error: ${defect}`}`);
  process.exit(1);
}
