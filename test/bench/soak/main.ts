/**
 * `npm run bench -- soak`: a day of constant load in 20 minutes. README.md in this folder describes
 * the measurement.
 */
import { cpus } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { readWhole, startCommand } from '#runtime/command-line.ts';
import { onInterruption } from '#runtime/interruption.ts';
import type { AppProcess } from '#test/app-processes.ts';
import { settles } from '../deliveries/changes.ts';
import { readSetting } from '../deliveries/options.ts';
import { endVisits } from '../growth/measure.ts';
import { createHours, restartedApps } from './hours.ts';
import { type Finding, isMissed, judgeDeadRows, judgeIndexes, judgeMemory } from './judge.ts';
import { type Load, startLoad } from './load.ts';
import { fillRegion, type SoakRegion } from './region.ts';
import { privateMemoryOf, type Sample, takeTables } from './samples.ts';
import { type AppName, appNames, type SoakStack, startStack } from './stack.ts';

const { minutes, rates, settings } = startCommand({
  usage: [
    'Usage: npm run bench -- soak [--minutes N] [--reads N] [--deliveries N] [--set NAME=VALUE]...',
    'Runs a day of constant load in 20 minutes.',
  ].join('\n\n'),
  read() {
    const { values } = parseArgs({
      options: {
        minutes: { type: 'string', default: '20' },
        reads: { type: 'string', default: '40' },
        deliveries: { type: 'string', default: '8' },
        set: { type: 'string', multiple: true, default: [] },
      },
    });
    return {
      minutes: readWhole('--minutes', values.minutes, 1_440),
      rates: {
        readsPerSecond: readWhole('--reads', values.reads, 10_000),
        deliveriesPerSecond: readWhole('--deliveries', values.deliveries, 1_000),
        visitsPerSecond: 1,
      },
      /** Settings of the workers for this run, such as `MALLOC_ARENA_MAX=2`. */
      settings: Object.fromEntries(values.set.map(readSetting)),
    };
  },
});
const hours = 24;
const runSeconds = minutes * 60;
/** Time after which a process counts as warm. */
const warmUpSeconds = Math.min(120, runSeconds / 4);
const sampleSeconds = Math.min(5, runSeconds / 120);
const settleDeadlineMs = 300_000;
const shownRatio = 0.5;

const startedAt = performance.now();
const say = (line: string) => console.log(line);
const report = (line: string) =>
  say(`  ${String(Math.round((performance.now() - startedAt) / 1000)).padStart(4)} s  ${line}`);

/** Runs the day, and returns its samples. */
async function runDay(
  stack: SoakStack,
  region: SoakRegion,
  apps: Record<AppName, AppProcess>,
  load: Load,
): Promise<Sample[]> {
  const { counts, runHour } = createHours(stack, region, apps);
  const samples: Sample[] = [];
  const dayStartedAt = performance.now();
  const secondsPassed = () => (performance.now() - dayStartedAt) / 1_000;

  async function sample(): Promise<void> {
    while (secondsPassed() < runSeconds) {
      samples.push({ atSeconds: secondsPassed(), memory: takeMemory(), tables: await takeTables(stack.owner) });
      await wait(sampleSeconds * 1_000);
    }
  }
  function takeMemory(): Map<string, number> {
    const kept = appNames.filter((name) => !restartedApps.some((restarted) => restarted === name));
    const pids = [...kept.map((name) => [name, apps[name].pid()] as const), ...Object.entries(stack.serverPids)];
    return new Map(pids.map(([name, pid]) => [name, privateMemoryOf(pid)]));
  }
  async function passHours(): Promise<void> {
    for (let hour = 1; hour <= hours; hour += 1) {
      await wait(Math.max(0, (hour * runSeconds * 1_000) / hours - secondsPassed() * 1_000 - 1_000));
      if (hour < hours) await runHour(hour); // the last hour includes what the others left
      const { reads, deliveries } = load.counts;
      report(
        `hour ${hour} of ${hours}: ${reads} reads, ${deliveries} deliveries, ${counts.purgedDeliveries} purged, ` +
          `${counts.rotations} rotations, ${counts.restarts} restarts, ` +
          `worker 1 at ${Math.round((takeMemory().get('worker 1') ?? 0) / 1_048_576)} MiB`,
      );
    }
  }
  await Promise.all([sample(), passHours()]);
  return samples;
}

/** Compares the number of delivered events with the number of committed ones. */
async function judgeLoad(stack: SoakStack, region: SoakRegion, { counts }: Load): Promise<Finding[]> {
  await settles(stack.database.pool, region.organizations, settleDeadlineMs).catch((error: unknown) => {
    report(String(error)); // they count as not delivered
  });
  const { rows } = await stack.owner.query<{ delivered: number }>(
    `select count(*)::int as delivered from delivery where organization_id = any ($1) and state = 'delivered'`,
    [region.organizations.map(({ id }) => id)],
  );
  const failures = [...counts.failures.values()].reduce((sum, each) => sum + each, 0);
  const requests = counts.reads + counts.visits;
  const lost = counts.deliveries - (rows[0]?.delivered ?? 0);
  const kinds = [...counts.failures].map(([what, times]) => `${times} x ${what}`).join('; ');
  return [
    { what: 'failed requests', ratio: failures, limit: 0, detail: `of ${requests}${kinds === '' ? '' : `: ${kinds}`}` },
    { what: 'events not delivered', ratio: lost, limit: 0, detail: `of ${counts.deliveries}` },
  ];
}

function print(findings: readonly Finding[]): void {
  for (const finding of findings) {
    const isShown = isMissed(finding) || finding.ratio >= shownRatio || finding.limit === 0;
    if (!isShown) continue;
    const { what, ratio, limit, detail } = finding;
    const note = isMissed(finding) ? '  MISSED' : '';
    say(`${what.padEnd(44)}${ratio.toFixed(2).padStart(7)}  (at most ${limit})  ${detail}${note}`);
  }
}

async function run(stack: SoakStack): Promise<Finding[]> {
  const region = await fillRegion(stack, Math.ceil(runSeconds * rates.deliveriesPerSecond), minutes);
  report('the region is filled');
  const apps = await stack.startApps();
  const load = startLoad(stack, region, rates);
  const day = runDay(stack, region, apps, load);
  day.catch(() => {}); // rejects when the load does
  const samples = await Promise.race([day, load.ended.then(() => day)]).finally(() => load.stop());
  report('the load has ended');
  const ended = appNames.map((name) => ({
    what: `unexpected ends of ${name}`,
    ratio: apps[name].endedByItself(),
    limit: 0,
    detail: '',
  }));
  return [
    ...(await judgeLoad(stack, region, load)),
    ...ended,
    ...judgeMemory(samples, warmUpSeconds),
    ...judgeDeadRows(samples, warmUpSeconds),
    ...judgeIndexes(samples, warmUpSeconds),
  ];
}

say(`Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model ?? 'unknown'}), everything on this machine`);
const stack = await startStack(report, settings);
onInterruption(() => {
  report('interrupted: stopping the servers');
  void stack.stop().finally(() => process.exit(1));
});
try {
  const findings = await run(stack);
  say(`\n${minutes} minutes, ${rates.readsPerSecond} reads and ${rates.deliveriesPerSecond} deliveries a second\n`);
  print(findings);
  const missed = findings.filter(isMissed).length;
  say(missed === 0 ? '\nEverything is within its limit.' : `\n${missed} over their limits.`);
  process.exitCode = missed === 0 ? 0 : 1;
} finally {
  endVisits();
  await stack.stop();
}
