/**
 * `npm run bench -- deliveries`: compares org-api's deliveries with a bare Temporal workflow.
 * README.md in this folder describes the measurement.
 */
import { cpus } from 'node:os';
import { startCommand } from '#runtime/command-line.ts';
import { StartupError } from '#runtime/errors.ts';
import { onInterruption } from '#runtime/interruption.ts';
import { removeDeadRunFolders } from '#test/run-folder.ts';
import { endChildren } from '../reads/children.ts';
import { BenchError } from '../reads/options.ts';
import { findProfile, printProfile, sumUp } from '../reads/profile.ts';
import { compareBacklogs } from './backlog.ts';
import { compareConnections } from './connections.ts';
import { measureIdle } from './idle.ts';
import { compareIsolation, compareSlowReceivers } from './isolation.ts';
import { measureLatencies } from './latency.ts';
import { type BenchOptions, type Part, readOptions, type Store } from './options.ts';
import { compareOrder } from './ordered.ts';
import { printResults, type Result } from './results.ts';
import { type BenchStack, createClosers, startStack } from './stack.ts';
import { compareThroughput } from './throughput.ts';
import { compareWriters } from './writers.ts';

const options = startCommand({
  usage: [
    'Usage: npm run bench -- deliveries [--quick] [--only PART] [--store memory|file] [--rounds N] [--seconds N]',
    '         [--under-way N] [--per-second N] [--set NAME=VALUE]... [--profile]',
    '',
    'Compares deliveries with a bare Temporal workflow. README.md in test/bench/deliveries describes the options.',
  ].join('\n'),
  read: () => readOptions(process.argv.slice(2)),
});

const startedAt = performance.now();
const report = (line: string) =>
  console.error(`  ${String(Math.round((performance.now() - startedAt) / 1000)).padStart(3)} s  ${line}`);

async function main(): Promise<void> {
  console.log(
    `Node ${process.version}, ${cpus().length} cores (${cpus()[0]?.model ?? 'unknown'}), everything on this machine`,
  );
  const results: Result[] = [];
  const closers = createClosers();
  let starting: Promise<unknown> = Promise.resolve();
  let interrupted = false;
  onInterruption(() => {
    interrupted = true;
    console.log('interrupted: stopping the servers');
    endChildren();
    // A server that is still starting cannot be stopped yet.
    const started = starting.catch(() => {});
    void started
      .then(() => closers.closeAll())
      .finally(() => {
        printResults(results);
        process.exit(1);
      });
  });
  try {
    await removeDeadRunFolders(report);
    for (const store of options.stores) {
      const parts = selectParts(options, store);
      if (parts.length === 0) continue;
      report(`Temporal ${store === 'memory' ? 'in memory' : 'with a file'}`);
      const { settings, profile } = options;
      const opened = startStack({ store, settings, profile, closers, report });
      starting = opened;
      const stack = await opened;
      await measure(stack, store, parts, options, results);
      if (profile) {
        await stack.stopWorker();
        printProfile(sumUp(findProfile(stack.folder)));
      }
      await closers.closeAll();
    }
    printResults(results);
    report('done');
  } catch (error) {
    if (!interrupted) throw error; // errors after an interruption are expected
  } finally {
    if (!interrupted) await closers.closeAll();
  }
}

/**
 * All parts but throughput and latency depend on slots, queues and PostgreSQL, not on Temporal's
 * store. They run once, with the faster store, where a ratio is stricter.
 */
function selectParts({ parts, stores }: BenchOptions, store: Store): Part[] {
  return parts.filter((part) => part === 'throughput' || part === 'latency' || store === stores[0]);
}

async function measure(
  stack: BenchStack,
  store: Store,
  parts: readonly Part[],
  options: BenchOptions,
  results: Result[],
): Promise<void> {
  const measures: Record<Part, () => Promise<Result>> = {
    throughput: () => compareThroughput(stack, store, options, report),
    connections: () => compareConnections(options, report),
    latency: () => measureLatencies(stack, store, options, report),
    idle: () => measureIdle(stack, report),
    isolation: () => compareIsolation(stack, options, report),
    slow: () => compareSlowReceivers(stack, options, report),
    backlog: () => compareBacklogs(stack, options, report),
    ordered: () => compareOrder(stack, options, report),
    writers: () => compareWriters(stack, options, report),
  };
  for (const part of parts) results.push(await measures[part]());
}

main().catch((error: unknown) => {
  const isExpected = error instanceof BenchError || error instanceof StartupError;
  console.error(isExpected ? error.message : error);
  process.exitCode = 1;
});
