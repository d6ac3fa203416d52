/**
 * `npm run bench:scale`: deliveries over Temporal's real server, its roles in separate processes.
 * README.md in this folder describes the measurement.
 */
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { readWhole, startCommand } from '#runtime/command-line.ts';
import { addOrganizations } from '../deliveries/changes.ts';
import { endChildren } from '../reads/children.ts';
import { type Costs, measureCosts } from './costs.ts';
import { killHistoryNode, type Outage } from './killed-node.ts';
import { startStack } from './stack.ts';

const options = startCommand({
  usage: [
    'Usage: npm run bench:scale -- [--deliveries N] [--rate N] [--rounds N] [--partitions N] [--shards N]',
    '         [--outage-seconds N]',
    '',
    'Runs deliveries over Temporal’s real server. README.md in test/bench/scale describes the options.',
  ].join('\n'),
  read() {
    const { values } = parseArgs({
      options: {
        deliveries: { type: 'string', default: '600' },
        rate: { type: 'string', default: '12' },
        rounds: { type: 'string', default: '2' },
        partitions: { type: 'string', default: '1' },
        shards: { type: 'string', default: '64' },
        'outage-seconds': { type: 'string', default: '90' },
      },
    });
    return {
      deliveries: readWhole('--deliveries', values.deliveries, 1_000_000),
      ratePerSecond: readWhole('--rate', values.rate, 10_000),
      rounds: readWhole('--rounds', values.rounds, 100),
      partitions: readWhole('--partitions', values.partitions, 64),
      shards: readWhole('--shards', values.shards, 16_384),
      outageSeconds: readWhole('--outage-seconds', values['outage-seconds'], 3_600),
    };
  },
});
const counts = { frontend: 2, history: 2, matching: 1, worker: 1 };
const workerCounts = [2, 4];
const organizationCount = 20;
const idleSeconds = 20;
const warmUpDeliveries = 150;
/** Operations that a delivery needs less often than this are not printed. */
const shownCalls = 0.05;

const startedAt = performance.now();
const say = (line = '') => console.log(line);
const report = (line: string) =>
  say(`  ${String(Math.round((performance.now() - startedAt) / 1000)).padStart(4)} s  ${line}`);
const number = (value: number, digits = 1) =>
  value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });

say(`Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model ?? 'unknown'}), everything on this machine`);
const stack = await startStack({
  shards: options.shards,
  counts,
  partitions: options.partitions,
  report,
});
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => {
    report('interrupted: stopping the servers');
    endChildren();
    void stack.stop().finally(() => process.exit(1));
  });
try {
  const organizations = await addOrganizations(stack, organizationCount);
  const perSecond = options.ratePerSecond;
  const results: Costs[] = [];
  for (const workers of workerCounts) {
    while (stack.workerPids().length < workers) await stack.addWorker();
    report(`${workers} workers are running`);
    await measureCosts(stack, organizations, { deliveries: warmUpDeliveries, perSecond, idleSeconds: 1 });
    for (let round = 1; round <= options.rounds; round += 1) {
      const load = { deliveries: options.deliveries, perSecond, idleSeconds };
      results.push(await measureCosts(stack, organizations, load));
      report(`${workers} workers, round ${round} of ${options.rounds}`);
    }
  }
  const seconds = options.outageSeconds;
  const outage = await killHistoryNode(stack, organizations, { perSecond: perSecond / 2, seconds }, report);
  for (const costs of results) printCosts(costs);
  printOutage(outage);
} finally {
  await stack.stop();
}

function printCosts(costs: Costs): void {
  const { workers, deliveries, deliveriesPerSecond, retried, micros, writes } = costs;
  say(`\n${workers} workers, ${deliveries} deliveries, ${number(deliveriesPerSecond)} a second, ${retried} retried`);
  const total = [...micros.values()].reduce((sum, each) => sum + each, 0);
  for (const [what, each] of [...micros, ['together', total] as const])
    say(`  ${what.padEnd(30)}${number(each / 1_000, 2).padStart(8)} ms of processor time a delivery`);
  for (const [what, { walBytes, walPages, transactions, rows }] of writes)
    say(
      `  ${what.padEnd(30)}${number(walBytes, 0).padStart(8)} bytes of WAL with ${number(walPages)} whole pages, ` +
        `${number(transactions)} transactions, ${number(rows)} rows written a delivery`,
    );
  say(`  history of a delivery: ${number(costs.historyEvents)} events, ${number(costs.historyBytes, 0)} bytes`);
  printOperations('requests to Temporal', costs.requests);
  printOperations("Temporal's requests to PostgreSQL", costs.persistence);
}

function printOperations(title: string, operations: Map<string, number>): void {
  const sorted = [...operations].sort(([, one], [, other]) => other - one);
  const total = sorted.reduce((sum, [, count]) => sum + count, 0);
  say(`  ${title}: ${number(total)} a delivery`);
  for (const [what, count] of sorted) if (count >= shownCalls) say(`    ${what.padEnd(50)}${number(count, 2)}`);
}

function printOutage({ events, beforeMs, longestMs, delayed, delayedSeconds, retried }: Outage): void {
  say(`\none of ${counts.history} history nodes killed and started again: ${events} of ${events} events arrived`);
  say(`  before: p50 ${number(beforeMs.p50)} ms, p99 ${number(beforeMs.p99)} ms from commit to the first byte`);
  say(`  the longest: ${number(longestMs / 1_000)} s; ${retried} deliveries took more than one attempt`);
  say(`  ${delayed} events took more than three times that p99, over ${number(delayedSeconds)} s`);
}
