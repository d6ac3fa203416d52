import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startCommand } from '#runtime/command-line.ts';
import { StartupError } from '#runtime/errors.ts';
import { once } from '#runtime/flow/once.ts';
import { onInterruption } from '#runtime/interruption.ts';
import { secondsSince, stopLaunching } from '../../apps/dev/servers/process.ts';
import { ClusterUnavailableError } from './cluster.ts';
import { CommandFailedError } from './command.ts';
import { runClusterTest } from './run.ts';

/**
 * `npm run test:cluster`: installs both regions on a real Kubernetes. It counts, at the client and
 * at the receiver, losses while the regions are upgraded, scaled, drained, broken and repaired.
 * With `-- --quick` it stops after install, reads, a delivery and one rolling upgrade, which every
 * change must pass. With `-- --keep` it leaves a cluster running that it started. The exit code is
 * 1 when a problem is found. Ctrl-C takes down what it started.
 */
const values = startCommand({
  usage: 'Usage: npm run test:cluster -- [--quick] [--keep]\n\nInstalls both regions on a real Kubernetes.',
  read: () => parseArgs({ options: { quick: { type: 'boolean' }, keep: { type: 'boolean' } } }).values,
});
const startedAt = performance.now();
const report = (line: string) => console.error(`  [${secondsSince(startedAt)}] ${line}`);
const folder = mkdtempSync(path.join(tmpdir(), 'org-api-cluster-values-'));
const started = new AsyncDisposableStack();
started.defer(() => rmSync(folder, { recursive: true, force: true }));
const takeDown = once(() => started.disposeAsync());
let isInterrupted = false;
onInterruption(() => {
  isInterrupted = true;
  report('interrupted: taking down what was started');
  stopLaunching();
  void takeDown()
    .catch(fail)
    .finally(() => process.exit(130));
});

try {
  const { lines, problems } = await runClusterTest({
    quick: values.quick === true,
    keepsCluster: () => values.keep === true && !isInterrupted,
    folder,
    started,
    seed: Number(process.env.CLUSTER_SEED) || randomInt(1, 1_000_000),
    report,
  });
  for (const line of lines) console.log(line);
  for (const problem of problems) console.error(`WRONG: ${problem}`);
  console.log(problems.length === 0 ? 'No read failed, no event was lost.' : `${problems.length} things are wrong.`);
  console.log(`test:cluster: ${((performance.now() - startedAt) / 60_000).toFixed(1)} min`);
  process.exitCode = problems.length === 0 ? 0 : 1;
} catch (error) {
  if (started.disposed) await new Promise(() => {}); // interrupted: the rest fails, and the signal ends the process
  fail(error);
} finally {
  await takeDown().catch(fail);
}

function fail(error: unknown): void {
  const isExpected = [ClusterUnavailableError, CommandFailedError, StartupError].some((kind) => error instanceof kind);
  console.error(isExpected ? (error as Error).message : error);
  process.exitCode = 1;
}
