import { statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { startCommand } from '#runtime/command-line.ts';
import { InvalidSettingsError, StartupError } from '#runtime/errors.ts';
import { once } from '#runtime/flow/once.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { parseRedisUrl } from '#runtime/settings/redis.ts';
import { stopLeftOver } from './app-process.ts';
import { type DevConfig, readConfig, usage } from './config.ts';
import { choosePorts, regionApps, temporalNamespaceOf } from './region-plan.ts';
import { stopLaunching, stopProcesses } from './servers/children.ts';
import { startPostgres } from './servers/postgres.ts';
import { allOrFirstFailure } from './servers/process.ts';
import { startRedis } from './servers/redis.ts';
import { startTemporal } from './servers/temporal.ts';
import { lockState, openState } from './state.ts';
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
/** Settles when everything is up or a step has failed. */
let starting: Promise<void> = Promise.resolve();
let isInterrupted = false;
let isStopping = false;

const stopAll = once(async () => {
  isStopping = true;
  for (const { name, stop } of open.reverse())
    await stop().catch((error: Error) => report(`${name} did not stop: ${error.message}`));
  await stopProcesses();
});

async function bringUp(config: DevConfig): Promise<void> {
  const { timed, lines } = createTimeline();
  const state = openState(config.stateFolder);
  const unlock = lockState(config.stateFolder);
  open.push({ name: 'the state folder', stop: async () => unlock() });
  for (const region of config.regions)
    for (const app of regionApps) await stopLeftOver(path.join(config.stateFolder, region, app));
  const ports = new Map<DevConfig['regions'][number], Awaited<ReturnType<typeof choosePorts>>>();
  for (const [index, region] of config.regions.entries())
    ports.set(region, await choosePorts(region, config.firstPort + index * 10, report));

  const servers = startServers(config, timed);
  const { prepareRegions, startRegion } = await timed('loading of the database code', () => import('./region.ts'));
  const start = { config, ports, state, report, timed };
  const [regions, redis] = await allOrFirstFailure([prepareRegions(start, servers.postgres), servers.redis]);
  const ends: Promise<string>[] = [];
  const serving = regions.map((prepared) =>
    startRegion(start, prepared, {
      ...servers,
      redis,
      onStarted({ name, stop, exited }) {
        const app = `${prepared.region} ${name}`;
        open.push({ name: `the ${app}`, stop });
        ends.push(exited.then((how) => `The ${app} ended by itself (${how})`));
      },
    }),
  );
  const started = await allOrFirstFailure(serving);
  if (isInterrupted) return;
  const { findSampleOrganization, summaryOf } = await import('./summary.ts');
  state.writeStack(started.map(({ stack }) => stack));
  for (const { stack } of started)
    state.writeCurlConfig(stack.region, findSampleOrganization(stack)?.sampleKey ?? null);
  console.log(`\nReady in ${(performance.now() / 1000).toFixed(1)} s. Each part: when it began, how long it took.`);
  console.log([...lines(), summaryOf(started, path.relative(process.cwd(), state.stackFile))].join('\n'));
  stayUntilAnAppEnds(ends);
}

/** Starts what needs nothing else. Each failure is reported by the step that awaits it. */
function startServers(config: DevConfig, timed: Timed) {
  const { postgres, redis, temporalAddress, stateFolder } = config;
  const servers = {
    temporal: timed('Temporal', async () => {
      if (temporalAddress !== null) return { address: temporalAddress, ui: null };
      const namespaces = config.regions.map(temporalNamespaceOf);
      const uiPort = config.firstPort + 9; // the last of the first region's ten
      return kept('Temporal', await startTemporal({ stateFolder, namespaces, uiPort, report }));
    }),
    postgres: timed('PostgreSQL', async () => {
      if (postgres !== null) return postgres;
      return parsePostgresUrl(kept('PostgreSQL', await startPostgres({ stateFolder, report })).adminUrl);
    }),
    redis: timed('Redis', async () => {
      if (redis !== null) return redis;
      const started = await startRedis({ stateFolder, report });
      return started === null ? null : parseRedisUrl(kept('Redis', started).url);
    }),
    bundle: timed('workflow bundle', prepareWorkflowBundle),
  };
  for (const server of Object.values(servers)) server.catch(() => {});
  return servers;
}

/** Remembers what is stopped at the end. */
function kept<Server extends { stop: () => Promise<void> }>(name: string, server: Server): Server {
  open.push({ name, stop: server.stop });
  return server;
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
  stopLaunching();
  await Promise.race([starting.catch(() => {}), wait(interruptedStepsMs)]);
  await stopAll();
}

try {
  startCommand({ usage, stop: stopInOrder });
  const config = readConfig(process.argv.slice(2));
  const missing = config.dataFiles.filter((file) => !statSync(file, { throwIfNoEntry: false })?.isFile());
  if (missing.length > 0) throw new InvalidSettingsError(missing.map((file) => `--data: ${file} is not a file`));
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
  const isExpected = error instanceof StartupError;
  console.error(`\n${isExpected ? error.message : `npm start failed by an internal error: ${defect}`}`);
  process.exit(1);
}
