import { statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { type Region, regionCodes } from '#domain/contract/regions.ts';
import { startCommand } from '#runtime/command-line.ts';
import { InvalidSettingsError, StartupError } from '#runtime/errors.ts';
import { onInterruption } from '#runtime/interruption.ts';
import { parsePostgresUrl } from '#runtime/settings/postgresql.ts';
import { type DevConfig, readConfig, usage } from './config.ts';
import { startInbox } from './inbox.ts';
import { choosePorts, getTemporalNamespace, type RegionPorts, regionApps } from './region-plan.ts';
import type { SampleProvider } from './sample-provider.ts';
import { choosePort } from './servers/ports.ts';
import { startPostgres } from './servers/postgres.ts';
import { allOrFirstFailure, isEnding, stopLaunching, stopProcesses } from './servers/process.ts';
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

async function bringUp(config: DevConfig): Promise<void> {
  const state = openState(config.stateFolder);
  // Before ports are chosen. The stack of a killed start may have had other regions.
  for (const region of regionCodes)
    for (const app of regionApps) await stopLeftOver(path.join(config.stateFolder, region, app));
  const ports = new Map<Region, RegionPorts>();
  for (const [index, region] of config.regions.entries())
    ports.set(region, await choosePorts(region, config.firstPort + index * 10, report));

  const afterRegions = config.firstPort + config.regions.length * 10;
  const preferred = (offset: number) => (afterRegions + offset <= 65_535 ? afterRegions + offset : null);
  const servers = {
    ...startServers(config),
    mail: startInbox({
      smtpPort: await choosePort(preferred(0), 'mail server', report),
      pagePort: await choosePort(preferred(1), 'inbox', report),
    }),
  };
  servers.mail.catch(() => {});
  const providerPort = await choosePort(preferred(2), 'sample provider', report);
  const { prepareRegions, startRegion } = await import('./region.ts');
  const start = { config, ports, state, report, issuer: `http://127.0.0.1:${providerPort}` };
  const [regions, redisUrl] = await allOrFirstFailure([prepareRegions(start, servers.postgres), servers.redisUrl]);
  const samples = regions.flatMap(({ provider }) => provider ?? []);
  const serving = regions.map((prepared) => startRegion(start, prepared, { ...servers, redisUrl }));
  const [started] = await allOrFirstFailure([allOrFirstFailure(serving), startProvider(providerPort, samples)]);
  if (isEnding) return;
  const { formatSummary } = await import('./summary.ts');
  state.writeStack(started.map(({ stack }) => stack));
  console.log(`\nReady in ${(performance.now() / 1000).toFixed(1)} s.`);
  console.log(formatSummary(started, path.relative(process.cwd(), state.stackFile)));
  void stayUntilAnAppEnds(started.flatMap(({ ends }) => ends));
}

/** Starts the sample OpenID provider, which loads in a tenth of a second, unless no organization has it. */
async function startProvider(port: number, samples: readonly SampleProvider[]): Promise<void> {
  if (samples.length === 0) return;
  const { startOpenIdProvider } = await import('./openid-provider.ts');
  await startOpenIdProvider({ port, samples });
}

/** Starts what needs nothing else, on the last of the first ten ports. The step that awaits it reports a failure. */
function startServers({ postgres, redisUrl, temporalAddress, stateFolder, regions, firstPort }: DevConfig) {
  const namespaces = regions.map(getTemporalNamespace);
  const servers = {
    temporal:
      temporalAddress === null
        ? startTemporal({ stateFolder, namespaces, port: firstPort + 8, uiPort: firstPort + 9, report })
        : Promise.resolve({ address: temporalAddress, ui: null }),
    postgres:
      postgres === null
        ? startPostgres({ stateFolder, port: firstPort + 6, report }).then(({ adminUrl }) => parsePostgresUrl(adminUrl))
        : Promise.resolve(postgres),
    redisUrl:
      redisUrl === null
        ? startRedis({ stateFolder, port: firstPort + 7, report }).then((redis) => redis?.url ?? null)
        : Promise.resolve(redisUrl),
    bundle: prepareWorkflowBundle(report),
  };
  for (const server of Object.values(servers)) server.catch(() => {});
  return servers;
}

/** The apps and servers are detached, so a timer keeps this process running until it is stopped. */
async function stayUntilAnAppEnds(ends: Promise<string>[]): Promise<void> {
  setInterval(() => {}, 3_600_000);
  const what = await Promise.race(ends);
  if (isEnding) return;
  console.error(`\n${what}; stopping the rest. Its log says why.`);
  await stopProcesses(report);
  process.exit(1);
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
  stopLaunching();
  await Promise.race([starting.catch(() => {}), wait(interruptedStepsMs)]);
  await stopProcesses(report);
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
  if (!isEnding) {
    await stopProcesses(report);
    const { message, stack } = error as Error;
    console.error(`\n${error instanceof StartupError ? message : `npm start failed by an internal error: ${stack}`}`);
    process.exit(1);
  }
}
