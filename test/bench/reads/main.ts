/**
 * `npm run bench -- reads`: compares org-api's reads with a floor and a plain Fastify program.
 * README.md in this folder describes the measurement.
 */
import { mkdtempSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { startCommand } from '#runtime/command-line.ts';
import { StartupError } from '#runtime/errors.ts';
import { onInterruption } from '#runtime/interruption.ts';
import { asOwner, readWrites, type Writes } from '../servers.ts';
import { endChildren } from './children.ts';
import { type Comparison, compare, type Load, median } from './compare.ts';
import { BenchError, type BenchOptions, readOptions } from './options.ts';
import { printComparison, printProcessorRatio, printProcessorShare, printRatio } from './print.ts';
import { type ProgramName, type RunningProgram, runPacedLoad, startProgram } from './processes.ts';
import { findProfile, type ProfiledSpan, printDifferences, printProfile, sumUp, type TimeByOrigin } from './profile.ts';
import { highestRatePerSecond } from './region.ts';
import { type BenchRegion, type BenchStack, startStack } from './stack.ts';
import { requireWrk, runWrk, wrkConnections } from './wrk.ts';

const options = startCommand({
  usage: [
    'Usage: npm run bench -- reads [--quick] [--rounds N] [--seconds N] [--profile]',
    'Compares the reads with a floor and a plain Fastify program.',
  ].join('\n\n'),
  read: () => readOptions(process.argv.slice(2)),
});

const rosterFamilies = 40;
const smallGrants = 1_000;
const pacedShare = 0.7;
/** PostgreSQL's sessions publish their counts at most once a second. */
const countsAreOldMs = 1_500;
const reads = [
  { operation: 'getOrg', resource: '', aim: 3.5 },
  { operation: `getFirmRoster, ${rosterFamilies} families`, resource: '/clients', aim: 2.5 },
];

const say = (line: string) => console.log(line);
const number = (value: number) => value.toLocaleString('en');

async function main(): Promise<void> {
  requireWrk();
  say(`Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model ?? 'unknown'}), everything on this machine`);
  const stack = await startStack((line) => say(`  ${line}`));
  let interrupted = false;
  onInterruption(() => {
    interrupted = true;
    say('interrupted: stopping the servers');
    endChildren();
    void stack.stop().finally(() => process.exit(1));
  });
  try {
    const region = await stack.addRegion('main', { grantsEach: rosterFamilies });
    if (options.profile) await profilePrograms(stack, region, options);
    else {
      await compareReads(stack, region, options);
      await compareSizes(stack, options);
    }
  } catch (error) {
    if (!interrupted) throw error; // errors after an interruption are expected
  } finally {
    if (!interrupted) await stack.stop();
  }
}

async function compareReads(stack: BenchStack, region: BenchRegion, options: BenchOptions): Promise<void> {
  const programs = await Promise.all(
    (['org-api', 'floor', 'fastify'] as const).map(async (name) => ({
      name,
      program: await start(stack, region, name),
    })),
  );
  const orgApi = programs[0]?.program as RunningProgram;
  let responses = 0;
  try {
    for (const { operation, resource, aim } of reads) {
      await checkResponses(
        stack,
        programs.map(({ program }) => program.url),
        resource,
      );
      const comparison = await compare(programs, buildLoad(stack, options, resource));
      responses += comparison.responses;
      printComparison(
        `${operation}: wrk with ${wrkConnections} connections, ` +
          `${options.rounds} rounds of ${options.runSeconds} s in turn; processor time in µs a response`,
        comparison,
      );
      printRatio(comparison, 'org-api', 'floor', 'aim 0.85');
      printProcessorRatio(comparison, 'org-api', 'floor');
      printRatio(comparison, 'org-api', 'fastify', `aim ${aim}`);
      printProcessorRatio(comparison, 'org-api', 'fastify');
      responses += await printPaced(stack, region, orgApi, comparison, resource, options);
      rejectFailures(comparison);
    }
    responses += await compareEncodings(stack, orgApi, options);
    await printLines(region, responses);
  } finally {
    for (const { program } of programs) await program.stop();
  }
}

/** Measures what the encodings of a roster cost org-api. Returns the number of responses. */
async function compareEncodings(stack: BenchStack, program: RunningProgram, options: BenchOptions): Promise<number> {
  const encodings = ['identity', 'br', 'gzip'];
  const contenders = encodings.map((encoding) => ({ name: encoding, program, encoding }));
  const comparison = await compare(contenders, buildLoad(stack, options, '/clients'));
  printComparison(`getFirmRoster, ${rosterFamilies} families, by encoding`, comparison);
  for (const encoding of encodings.slice(1)) printProcessorShare(comparison, encoding, 'identity');
  rejectFailures(comparison);
  return comparison.responses;
}

/** Measures org-api alone at a constant rate, seven tenths of its highest. */
async function printPaced(
  stack: BenchStack,
  region: BenchRegion,
  orgApi: RunningProgram,
  comparison: Comparison,
  resource: string,
  options: BenchOptions,
): Promise<number> {
  const highest = median((comparison.runs.get('org-api') ?? []).map((run) => run.requestsPerSecond));
  const perSecond = Math.round(highest * pacedShare);
  const { pacedSeconds: seconds, warmUpSeconds } = options;
  const before = await asOwner(region.ownerUrl, readWrites);
  const run = await runPacedLoad({
    url: orgApi.url,
    keysFile: stack.keysFile,
    resource,
    perSecond,
    seconds,
    warmUpSeconds,
  });
  say(
    `  org-api at a constant ${number(perSecond)}/s (${pacedShare * 100} %), from when each request was due: ` +
      `p50 ${run.p50Ms.toFixed(1)} ms, p99 ${run.p99Ms.toFixed(1)} ms, ${run.errors} not 2xx`,
  );
  say(
    `  (of which the load itself was late p50 ${run.lateP50Ms.toFixed(1)} ms, ` +
      `p99 ${run.lateP99Ms.toFixed(1)} ms; it took ${(run.cpuShare * 100).toFixed(0)} % of a core)`,
  );
  await wait(countsAreOldMs);
  printWrites(before, await asOwner(region.ownerUrl, readWrites), perSecond * (seconds + warmUpSeconds));
  return run.requests;
}

/** Prints what PostgreSQL wrote during the constant rate: entries of the audit log. */
function printWrites(before: Writes, after: Writes, requests: number): void {
  const each = (kind: keyof Writes) => (after[kind] - before[kind]) / requests;
  say(
    `  PostgreSQL wrote ${each('walBytes').toFixed(0)} bytes of WAL and ${each('rows').toFixed(2)} rows a response, ` +
      `in ${each('transactions').toFixed(2)} transactions`,
  );
}

/**
 * Compares the cost of a read in a small and in a large region, with the same organizations, keys
 * and program.
 */
async function compareSizes(stack: BenchStack, options: BenchOptions): Promise<void> {
  const sizes = [smallGrants, options.largeGrants];
  const contenders: { name: string; program: RunningProgram }[] = [];
  try {
    for (const grants of sizes) {
      const region = await stack.addRegion(`of_${grants}`, { grants });
      contenders.push({ name: number(grants), program: await start(stack, region, 'org-api') });
    }
    const comparison = await compare(contenders, buildLoad(stack, options, ''));
    printComparison('getOrg by the number of grants in the region', comparison);
    printRatio(comparison, number(options.largeGrants), number(smallGrants), 'flat is 1.00');
    printProcessorRatio(comparison, number(options.largeGrants), number(smallGrants));
    rejectFailures(comparison);
  } finally {
    for (const { program } of contenders) await program.stop();
  }
}

/** Profiles org-api and the floor under the same load, and prints where they differ. */
async function profilePrograms(stack: BenchStack, region: BenchRegion, options: BenchOptions): Promise<void> {
  for (const { operation, resource } of reads) {
    const orgApi = await profileProgram('org-api', stack, region, options, resource);
    const floor = await profileProgram('floor', stack, region, options, resource);
    for (const [name, { time, file }] of Object.entries({ 'org-api': orgApi, floor })) {
      say(`\n${operation}, ${name}: time by origin of ${time.micros.toFixed(0)} µs for each response, not idle`);
      printProfile(time);
      say(`  the whole profile: ${file}`);
    }
    say(`\n${operation}: where org-api takes more than the floor, for each response`);
    printDifferences(orgApi.time, floor.time);
  }
}

async function profileProgram(
  name: ProgramName,
  stack: BenchStack,
  region: BenchRegion,
  { warmUpSeconds, runSeconds }: BenchOptions,
  resource: string,
): Promise<{ time: TimeByOrigin; file: string }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'org-api-profile-'));
  const program = await start(stack, region, name, ['--cpu-prof', `--cpu-prof-dir=${folder}`]);
  const nowMicros = () => Number(process.hrtime.bigint() / 1_000n);
  let span: ProfiledSpan;
  try {
    await runWrk(program.url, { ...stack, resource, seconds: warmUpSeconds });
    const fromMicros = nowMicros();
    const { requests: responses } = await runWrk(program.url, { ...stack, resource, seconds: runSeconds * 2 });
    span = { fromMicros, toMicros: nowMicros(), responses };
  } finally {
    await program.stop();
  }
  const file = findProfile(folder);
  return { time: sumUp(file, span), file };
}

function start(
  stack: BenchStack,
  region: BenchRegion,
  name: ProgramName,
  nodeOptions: string[] = [],
): Promise<RunningProgram> {
  return startProgram(name, {
    databaseUrl: region.apiUrl,
    redisUrl: stack.redisUrl,
    secrets: stack.secrets,
    nodeOptions,
  });
}

function buildLoad(stack: BenchStack, options: BenchOptions, resource: string): Load {
  return { ...stack, ...options, resource };
}

/** Checks that all programs give the same, correct response. */
async function checkResponses(stack: BenchStack, urls: string[], resource: string): Promise<void> {
  const { key, organizationId } = stack.keys[0] ?? { key: '', organizationId: '' };
  const bodies = await Promise.all(
    urls.map(async (url) => {
      const response = await fetch(`${url}/v1/orgs/${organizationId}${resource}`, {
        headers: { Authorization: `Bearer ${key}` },
      });
      return `${response.status} ${await response.text()}`;
    }),
  );
  const clients = bodies[0]?.split('"grantId"').length ?? 0;
  if (
    !bodies.every((body) => body === bodies[0] && body.startsWith('200 ')) ||
    (resource === '/clients' && clients !== rosterFamilies + 1)
  )
    throw new Error(
      `the programs do not give the same good response: ${bodies.map((body) => body.slice(0, 120)).join(' | ')}`,
    );
}

/**
 * Checks that every counted response has its audit entry. Entries of responses that wrk no longer
 * waited for may be added.
 */
async function printLines(region: BenchRegion, responses: number): Promise<void> {
  const lines = await asOwner(region.ownerUrl, async (owner) =>
    Number((await owner.query('select count(*) from audit_entry')).rows[0].count),
  );
  say(`\n${number(lines)} entries in the audit log for ${number(responses)} responses counted`);
  if (lines < responses) throw new Error('responses without an entry');
}

function rejectFailures({ failures, runs }: Comparison): void {
  if (failures > 0)
    throw new Error(`${failures} responses were not 2xx or never came: these numbers measure error responses`);
  const highest = Math.max(...[...runs.values()].flat().map((run) => run.requestsPerSecond));
  if (highest * 2 > highestRatePerSecond)
    throw new Error(
      `the keys admit ${number(highestRatePerSecond)}/s and the runs came near it: give the region more keys`,
    );
}

main().catch((error: unknown) => {
  const isExpected = error instanceof BenchError || error instanceof StartupError;
  console.error(isExpected ? error.message : error);
  process.exitCode = 1;
});
