/**
 * `npm run bench -- growth`: the cost of reads, deliveries, maintenance and pages as the region's
 * tables grow. README.md in this folder describes the measurement.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { readWhole, startCommand } from '#runtime/command-line.ts';
import { startRedis } from '../../../apps/dev/servers/redis.ts';
import { type BenchServers, startServers } from '../servers.ts';
import { measureClaims } from './claims.ts';
import { endVisits, quantile } from './measure.ts';
import { comparePlans, preparePlans } from './plans.ts';
import { type GrownRegion, growRegion } from './region.ts';
import { type Budget, keepsBudget, type Task, tasks } from './tasks.ts';

const { sizes, rounds } = startCommand({
  usage: [
    'Usage: npm run bench -- growth [--rows N,N,N] [--rounds N]',
    'Measures reads, deliveries, maintenance and pages as the tables grow.',
  ].join('\n\n'),
  read() {
    const { rows, rounds } = parseArgs({
      options: {
        rows: { type: 'string', default: '10000,1000000,10000000' },
        rounds: { type: 'string', default: '30' },
      },
    }).values;
    return {
      sizes: rows.split(',').map((each) => readWhole('--rows', each, 100_000_000)),
      rounds: readWhole('--rounds', rounds, 10_000),
    };
  },
});
const warmUpRounds = 5;

const startedAt = performance.now();
const say = (line: string) => console.log(line);
const report = (line: string) =>
  say(`  ${String(Math.round((performance.now() - startedAt) / 1000)).padStart(4)} s  ${line}`);
const count = (value: number) => value.toLocaleString('en');

type Times = Map<string, number[][]>;

/**
 * Each round runs every task once in each region, in turn, so that other work on the machine
 * affects all of them.
 */
async function measure(regions: readonly GrownRegion[]): Promise<Times> {
  const times: Times = new Map();
  for (let round = -warmUpRounds; round < rounds; round += 1) {
    for (const task of tasks.flatMap((group) => group.tasks))
      for (const place of regions.keys())
        await measureOnce(task, regions, (place + round + warmUpRounds) % regions.length);
    if (round > 0 && round % 10 === 0) report(`${round} of ${rounds} rounds`);
  }
  return times;

  async function measureOnce(task: Task, all: readonly GrownRegion[], place: number): Promise<void> {
    const taken = await task.run(all[place] as GrownRegion);
    for (const [name, ms] of Object.entries(taken)) {
      const each = times.get(name) ?? all.map((): number[] => []);
      times.set(name, each);
      each[place]?.push(ms);
    }
  }
}

/**
 * Prints times and ratios. Returns the tasks over their budget. The time is the lower quartile,
 * because other work on the machine only adds to times.
 */
function judge(times: Times): string[] {
  const missed: string[] = [];
  for (const { title, tasks: group } of tasks) {
    say(`\n${`${title}, ms`.padEnd(46)}${sizes.map((rows) => count(rows).padStart(12)).join('')}   ratio`);
    for (const { names, budget } of group)
      for (const name of names) missed.push(...judgeTask(name, budget, times.get(name) ?? []));
  }
  return missed;
}

function judgeTask(name: string, budget: Budget, times: readonly number[][]): string[] {
  const taken = times.map((each) => quantile(each.slice(warmUpRounds), 0.25));
  const smallest = taken[0] ?? Number.NaN;
  const ratios = taken.map((ms) => (ms / smallest).toFixed(2));
  const isKept = taken.every((ms) => keepsBudget(budget, ms, smallest));
  const cells = taken.map((ms) => ms.toFixed(2).padStart(12)).join('');
  say(`${name.padEnd(46)}${cells}   ${ratios.slice(1).join(' ')}${isKept ? '' : '  OVER'}`);
  return isKept ? [] : [`${name} takes ${ratios.at(-1)} of its time in the smallest region`];
}

async function run(servers: BenchServers): Promise<string[]> {
  const redis = await startRedis({ stateFolder: servers.folder, report });
  if (redis === null) throw new Error('This benchmark needs a real Redis: install redis-server.');
  servers.onStop(() => redis.stop());
  await preparePlans(servers);
  const regions: GrownRegion[] = [];
  for (const rows of sizes) regions.push(await growRegion(servers, redis.url, rows, report));
  const missed = judge(await measure(regions));
  missed.push(...(await comparePlans(servers, regions, say)));
  missed.push(...(await measureClaims(servers, Math.max(...sizes), { report, say })));
  return missed;
}

say(`Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model ?? 'unknown'}), everything on this machine`);
const { missed, stop } = await startServers(report, async (servers) => ({
  missed: await run(servers),
  stop: servers.stop,
})).finally(endVisits);
await stop();
for (const line of missed) console.error(`OVER BUDGET: ${line}`);
say(missed.length === 0 ? '\nEverything is within its budget.' : `\n${missed.length} over their budgets.`);
process.exitCode = missed.length === 0 ? 0 : 1;
